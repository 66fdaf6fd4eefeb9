"""Chained stages on real servers: what passes in memory, and workers that chain beside workers that do not."""

from collections.abc import Sequence

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.stage_lag import stage_lags
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, MEMORY_EVENTS, topic_name
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
)
from tests.support.servers.kafka_client import publish, read_all, wait_until

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


async def wait_until_all_is_committed(settings: StreamsSettings) -> None:
    async def is_committed() -> bool:
        lags = await stage_lags(settings.kafka or "", prefix=settings.topic_prefix)
        return not any(one.lag for one in lags)

    await wait_until(is_committed)


async def wait_until_written(settings: StreamsSettings, topic: str, count: int) -> None:
    async def is_written() -> bool:
        return (await record_counts(settings, topic))[topic] == count

    await wait_until(is_written)


async def test_a_worker_with_all_stages_writes_nothing_between_them(settings: StreamsSettings, database: str) -> None:
    async with running_worker(settings):
        await publish_statements(settings, range(5))
        assert set((await wait_for_outcomes(database, 5)).values()) == {"facts"}
        await wait_until_all_is_committed(settings)
        lags = {one.stage: one.workers for one in await stage_lags(settings.kafka or "", prefix=settings.topic_prefix)}
    assert lags == dict.fromkeys(("journal", "extract", "embed", "match", "resolve", "project"), 1)
    assert await record_counts(settings, *BETWEEN) == dict.fromkeys(BETWEEN, 0)
    assert await committed_sources(settings) == [f"t{number}" for number in range(5)]


async def test_a_chain_ends_where_the_next_stage_is_another_workers(settings: StreamsSettings, database: str) -> None:
    async with (
        running_worker(settings, ["journal", "extract", "embed"]),
        running_worker(settings, ["resolve"]),
        running_worker(settings, ["match", "project"]),
    ):
        await publish_statements(settings, range(3))
        await wait_for_outcomes(database, 3)
    counts = await record_counts(settings, *BETWEEN)
    assert counts == {"extracted_facts": 0, "embedded_facts": 3, "matched_facts": 3}


async def test_a_chain_begins_once_what_other_workers_left_between_the_stages_is_done(
    settings: StreamsSettings, database: str
) -> None:
    """The later turns are published while the earlier ones of their owner wait in a topic between."""
    async with running_worker(settings, ["extract", "embed"]):
        await publish_statements(settings, range(20))
        await wait_until_written(settings, "embedded_facts", 20)
    await publish_statements(settings, range(20, 40))
    async with running_worker(settings):
        await wait_for_outcomes(database, 40)
    assert await committed_sources(settings) == [f"t{number}" for number in range(40)]
    counts = await record_counts(settings, *BETWEEN)
    assert counts == {"extracted_facts": 0, "embedded_facts": 20, "matched_facts": 20}


async def test_workers_that_chain_and_workers_that_do_not_keep_the_order_of_an_owner(
    settings: StreamsSettings, database: str
) -> None:
    """`extract` alone joins and leaves twice, so that partitions move between it and the chain while turns come in."""
    users, rounds, each = [f"user{number}" for number in range(12)], 6, 5

    async def publish_round(number: int) -> None:
        for place in range(number * each, (number + 1) * each):
            turns = [
                user_turn(f"{user}-{place}", f"I have thing number {place}.", user=user, infer=False) for user in users
            ]
            await publish_records(settings, *turns)

    async def wait_until_passed_between(count: int) -> None:
        async def has_passed() -> bool:
            return (await record_counts(settings, "extracted_facts"))["extracted_facts"] >= count

        await wait_until(has_passed)

    async with running_worker(settings), running_worker(settings, ["resolve"]):
        for number in range(0, rounds, 3):
            await publish_round(number)
            before = (await record_counts(settings, "extracted_facts"))["extracted_facts"]
            async with running_worker(settings, ["extract"]):
                await publish_round(number + 1)
                await wait_until_passed_between(before + 1)
            await publish_round(number + 2)
        await wait_for_outcomes(database, rounds * each * len(users), 120)
    first = list(dict.fromkeys(await committed_sources(settings)))
    for user in users:
        mine = [source for source in first if source.startswith(f"{user}-")]
        assert mine == [f"{user}-{place}" for place in range(rounds * each)]
    assert await query_rows(database, "SELECT source_id FROM rejections") == []


async def test_a_turn_under_a_wrong_key_is_processed_in_its_owners_partition(
    settings: StreamsSettings, database: str
) -> None:
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    await ensure_topics(settings.kafka or "", partitions=settings.partitions, prefix=settings.topic_prefix)
    turns = [user_turn(f"t{number}", f"I have thing number {number}.", infer=False) for number in range(8)]
    await publish(
        settings.kafka or "", topic, [(b"key-%d" % place, turn.to_bytes()) for place, turn in enumerate(turns)]
    )
    async with running_worker(settings):
        await wait_for_outcomes(database, 8)
    log = await read_all(settings.kafka or "", topic_name(MEMORY_EVENTS, settings.topic_prefix))
    origins = {Commit.from_bytes(record.value).origin.partition for record in log}
    assert origins == {record.partition for record in log}
    assert len(origins) == 1
