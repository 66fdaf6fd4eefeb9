"""What a worker does beyond its stages: what it loads, what it refuses, what it shows."""

import asyncio
import re
import urllib.request

import pytest
from prometheus_client import REGISTRY

from mnemolog.projections.database import open_pool
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.streams.errors import LogMismatch
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, topic_name
from mnemolog.streams.llm.ports import ProviderConfigurationError
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.worker import ALL_STAGES, run_worker
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.project import projection_lag, start_offsets
from tests.support.builders.commits import added, commit
from tests.support.harnesses.worker_harness import (
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
)
from tests.support.polling import eventually
from tests.support.servers.kafka_client import publish, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


async def test_a_log_that_was_made_anew_stops_the_projection_instead_of_being_skipped(
    settings: StreamsSettings, database: str
) -> None:
    assert settings.kafka is not None
    async with running_worker(settings, ["project"]):
        first = commit("t1", added("Alice lives in Bern."))
        await publish(settings.kafka, topic_name(MEMORY_EVENTS, settings.topic_prefix), [(first.key, first.to_bytes())])
        await wait_for_outcomes(database, 1)
    elsewhere = settings.model_copy(update={"topic_prefix": f"new-{settings.topic_prefix}"})
    await ensure_topics(settings.kafka_address, partitions=settings.partitions, prefix=elsewhere.topic_prefix)
    worker = asyncio.create_task(run_worker(elsewhere, ["project"], asyncio.Event()))
    lost = commit("t2", added("Alice lives in Rome."))
    await publish(settings.kafka, topic_name(MEMORY_EVENTS, elsewhere.topic_prefix), [(lost.key, lost.to_bytes())])
    with pytest.raises(LogMismatch, match="created again"):
        await asyncio.wait_for(worker, 60)
    assert await query_rows(database, "SELECT source_id FROM commits") == [{"source_id": "t1"}]


async def test_a_worker_shows_how_far_the_tables_are_behind_and_refuses_tables_ahead_of_the_log(
    settings: StreamsSettings, database: str
) -> None:
    assert settings.kafka is not None
    topic = topic_name(MEMORY_EVENTS, settings.topic_prefix)
    await ensure_topics(settings.kafka_address, partitions=settings.partitions, prefix=settings.topic_prefix)
    commits = [commit(f"t{number}", added(f"thing {number}")) for number in range(3)]
    (place, *_) = await publish(settings.kafka, topic, [(each.key, each.to_bytes()) for each in commits])
    empty = (int(place.split("/")[1]) + 1) % settings.partitions
    log = KafkaLogReader(settings.kafka_address, prefix=settings.topic_prefix)
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool:
        projector = Projector(pool)
        assert sum((await projection_lag(projector, log)).values()) == 3
        async with running_worker(settings, ["project"]):
            await wait_for_outcomes(database, 3)
        assert sum((await projection_lag(projector, log)).values()) == 0
        await projector.apply({empty: [LogRecord(offset=0, value=commit("lost").to_bytes())]})
        with pytest.raises(LogMismatch, match=rf"offset 0 of partition {empty} .* created again"):
            await start_offsets(projector, log, TableLogSource(pool))(frozenset({("memory_events", empty)}))
    await log.close()


def stage_counts() -> dict[str, float]:
    """How often the time in each stage was measured."""
    name = "mnemolog_stage_seconds_count"
    return {stage: REGISTRY.get_sample_value(name, {"stage": stage}) or 0 for stage in ALL_STAGES}


async def test_a_worker_shows_what_waits_for_stages_that_nobody_runs(
    settings: StreamsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemolog.streams.runtime.worker.BACKLOG_SECONDS", 0.5)
    async with running_worker(settings, ["project"]):
        await publish_records(settings, user_turn("t1", "I live in Bern."))
        sample = REGISTRY.get_sample_value

        async def is_shown() -> bool:
            waiting = [
                (
                    sample("mnemolog_backlog_records", {"stage": "extract", "partition": str(partition)}),
                    sample("mnemolog_backlog_oldest_seconds", {"stage": "extract", "partition": str(partition)}),
                )
                for partition in range(settings.partitions)
            ]
            return any(records == 1 and seconds for records, seconds in waiting)

        await wait_until(is_shown)
        for figures in ("backlog", "lag", "quality"):
            assert sample("mnemolog_figures_last_success_timestamp_seconds", {"figures": figures})


async def test_health_and_metrics_name_no_user_and_another_embedding_model_is_refused(
    settings: StreamsSettings, database: str
) -> None:
    before = stage_counts()
    async with running_worker(settings) as report:
        await publish_records(settings, user_turn("t1", "I live in Zanzibar.", user="somebody"))
        await wait_for_outcomes(database, 1)

        async def healthy() -> bool:
            return b'"project": true' in await asyncio.to_thread(fetch, f"{report.metrics_url}/health")

        await wait_until(healthy)
        await eventually(lambda: stage_counts() == {stage: count + 1 for stage, count in before.items()})
        shown = (await asyncio.to_thread(fetch, f"{report.metrics_url}/metrics")).decode()
    assert 'mnemolog_stage_seconds_count{stage="extract"}' in shown
    assert re.search(r'mnemolog_events_projected_total\{[^}]*event="fact_added"', shown)
    for private in ("somebody", "Zanzibar", "t1"):
        assert f'"{private}"' not in shown
    other = {"embedding_provider": "openai", "base_url": "http://127.0.0.1:9/v1", "embedding_model": "e"}
    with pytest.raises(ProviderConfigurationError, match="facts have vectors of all-MiniLM"):
        await run_worker(settings.model_copy(update=other), ALL_STAGES, asyncio.Event())


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 -- our own worker on loopback
        body: bytes = response.read()
    return body


async def test_a_stage_that_asks_no_model_loads_none(settings: StreamsSettings, database: str) -> None:
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool:
        for stage, asked in {"journal": set(), "match": set(), "embed": {"embedder"}, "extract": {"chat"}}.items():
            models = StageModels(settings, ReplyStore(pool))
            models.build_for(stage)  # type: ignore[arg-type]  # a stage's name
            assert {"chat", "embedder"} & set(models.__dict__) == asked, stage
            await models.close()


async def test_conflicts_may_be_resolved_by_another_model(settings: StreamsSettings, database: str) -> None:
    ours = settings.model_copy(
        update={"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "chat_model": "small"}
    )
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool:
        for name, asked in ((None, "small"), ("small", "small"), ("large", "large")):
            models = StageModels(ours.model_copy(update={"resolve_model": name}), ReplyStore(pool))
            assert (models.chat.model, models.resolver.model) == ("small", asked)
            assert (models.chat is models.resolver) == (asked == "small")
            await models.close()


async def test_a_model_that_cannot_be_had_stops_the_start(
    settings: StreamsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ProviderConfigurationError, match="MNEMOLOG_API_KEY"):
        await run_worker(settings.model_copy(update={"provider": "openai"}), ALL_STAGES, asyncio.Event())
