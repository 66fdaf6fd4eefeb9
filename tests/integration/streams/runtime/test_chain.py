"""Chained stages on real servers: what passes in memory, and which workers refuse to run beside one another."""

import asyncio
from collections.abc import Sequence

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.errors import MixedLayouts
from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka.lag import group_members, stage_lags
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, group_id, topic_name
from mnemolog.streams.runtime import worker as wiring
from mnemolog.streams.runtime.worker import ALL_STAGES, CHAINABLE, run_worker
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    publish_records,
    running_worker,
    user_turn,
    wait_for_outcomes,
)
from tests.support.servers.kafka_client import read_all, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

BETWEEN = ("extracted_facts", "embedded_facts", "matched_facts")


async def record_counts(settings: StreamsSettings, *topics: str) -> dict[str, int]:
    kafka, prefix = settings.kafka or "", settings.topic_prefix
    return {topic: len(await read_all(kafka, f"{prefix}{topic}")) for topic in topics}


async def committed_sources(settings: StreamsSettings) -> list[str]:
    """The sources of the log, in its order."""
    topic = topic_name(MEMORY_EVENTS, settings.topic_prefix)
    commits = [Commit.from_bytes(record.value) for record in await read_all(settings.kafka or "", topic)]
    return [commit.source_id for commit in commits]


async def publish_statements(settings: StreamsSettings, numbers: Sequence[int]) -> None:
    turns = [user_turn(f"t{number}", f"I have thing number {number}.", infer=False) for number in numbers]
    await publish_records(settings, *turns)


async def wait_until_read(settings: StreamsSettings, *stages: str) -> None:
    async def is_read() -> bool:
        lags = await stage_lags(settings.kafka_address, prefix=settings.topic_prefix)
        return not any(one.lag for one in lags if one.stage in stages)

    await wait_until(is_read)


async def test_a_worker_with_all_stages_writes_nothing_between_them_and_no_single_stage_starts_beside_it(
    settings: StreamsSettings, database: str
) -> None:
    async with running_worker(settings):
        await publish_statements(settings, range(5))
        assert set((await wait_for_outcomes(database, 5)).values()) == {"stored"}
        await wait_until_read(settings, *ALL_STAGES)
        lags = {
            one.stage: one.workers for one in await stage_lags(settings.kafka_address, prefix=settings.topic_prefix)
        }
        for stage in ("extract", "resolve"):
            with pytest.raises(MixedLayouts, match="workers chain the stages extract, embed, match, resolve"):
                await start(settings, [stage])
        with pytest.raises(MixedLayouts):
            await start(settings.model_copy(update={"chain": False}))
    assert lags == dict.fromkeys(ALL_STAGES, 1)
    assert await record_counts(settings, *BETWEEN) == dict.fromkeys(BETWEEN, 0)
    assert await committed_sources(settings) == [f"t{number}" for number in range(5)]


async def test_a_worker_without_all_of_the_chain_sends_each_record_through_its_topic(
    settings: StreamsSettings, database: str
) -> None:
    async with (
        running_worker(settings, ["journal", "extract", "embed"]),
        running_worker(settings, ["resolve"]),
        running_worker(settings, ["match", "project"]),
    ):
        await publish_statements(settings, range(3))
        await wait_for_outcomes(database, 3)
    assert await record_counts(settings, *BETWEEN) == dict.fromkeys(BETWEEN, 3)


async def test_a_chain_refuses_to_start_until_single_stages_are_stopped_and_what_they_left_is_read(
    settings: StreamsSettings, database: str
) -> None:
    """The later turns are published while the earlier ones of their owner wait in a topic between."""

    async def is_written() -> bool:
        return await record_counts(settings, "embedded_facts") == {"embedded_facts": 20}

    async with running_worker(settings, ["extract", "embed"]):
        await publish_statements(settings, range(20))
        await wait_until(is_written)
    await publish_statements(settings, range(20, 40))
    with pytest.raises(MixedLayouts) as refused:
        await start(settings)
    assert "20 records of" in str(refused.value)
    assert "embedded_facts (read by match)" in str(refused.value)
    assert "Start `mnemolog worker embed match resolve project`" in str(refused.value)
    async with running_worker(settings, ["embed", "match", "resolve", "project"]):
        await wait_for_outcomes(database, 20)
        await wait_until_read(settings, "embed", "match", "resolve")
        with pytest.raises(MixedLayouts, match=r"single stages \(embed, match, resolve\)"):
            await start(settings)
    async with running_worker(settings):
        await wait_for_outcomes(database, 40)
    assert await committed_sources(settings) == [f"t{number}" for number in range(40)]
    assert await record_counts(settings, *BETWEEN) == dict.fromkeys(BETWEEN, 20)


async def test_the_broker_lets_no_worker_of_the_other_layout_into_the_group(
    settings: StreamsSettings, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that start at the same moment find nobody when they look: the second stays out, and has no partition.

    Stages that read and write no topic between may run beside a chain.
    """
    other = settings.model_copy(update={"chain": False})
    async with running_worker(settings, CHAINABLE), running_worker(settings, ["project"]):
        monkeypatch.setattr(wiring, "check_layout", no_check)
        newcomer = asyncio.create_task(start(other, CHAINABLE))
        await asyncio.sleep(3)
        await publish_statements(settings, range(12))
        assert set((await wait_for_outcomes(database, 12)).values()) == {"stored"}
        assert await members(settings, "extract") == 1
        newcomer.cancel()
        await asyncio.gather(newcomer, return_exceptions=True)
    assert await record_counts(settings, *BETWEEN) == dict.fromkeys(BETWEEN, 0)


async def members(settings: StreamsSettings, stage: str) -> int:
    async with connected_admin(settings.kafka_address) as admin:
        return await group_members(admin, group_id(stage, settings.topic_prefix))


async def no_check(*_: object, **__: object) -> None:
    return


async def start(settings: StreamsSettings, stages: Sequence[Stage] = ALL_STAGES) -> None:
    """Run a worker until it gives up."""
    async with asyncio.timeout(60):
        await run_worker(settings, stages, asyncio.Event())
