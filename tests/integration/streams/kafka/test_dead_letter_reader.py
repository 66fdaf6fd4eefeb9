"""Dead letters and the lag of the stages, as a real broker has them."""

from datetime import UTC, datetime

import pytest

from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.dead_letters import DeadLetter, newest_dead_letters, read_dead_letter
from mnemolog.streams.kafka.lag import stage_lags
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, DEAD_LETTERS, topic_name
from tests.support.servers.kafka_client import PARTITIONS, publish

pytestmark = pytest.mark.kafka


@pytest.fixture
def prefix(topic_suffix: str) -> str:
    return f"{topic_suffix}-"


def letter(number: int, value: bytes | None = b"\xff{") -> DeadLetter:
    return DeadLetter(
        key=b"user",
        value=value,
        stage="extract",
        reason="not_json",
        detail="no JSON",
        origin=f"t/1/{number}",
        source_id=f"turn-{number}",
        tries=1,
        at=datetime(2026, 3, 1, 9, number, tzinfo=UTC),
        size=-1 if value is None else len(value),
    )


async def write(bootstrap: str, prefix: str, *letters: DeadLetter) -> list[str]:
    """Write these; their positions."""
    topic = topic_name(DEAD_LETTERS, prefix)
    written = [
        await publish(bootstrap, topic, [(f"{one.source_id}".encode(), one.value or b"")], one.headers)
        for one in letters
    ]
    return [position for (position,) in written]


async def test_the_newest_are_read_whatever_partition_they_are_in(bootstrap: str, prefix: str) -> None:
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    assert await newest_dead_letters(bootstrap, prefix=prefix, limit=10) == []
    positions = await write(bootstrap, prefix, *(letter(number) for number in range(9)))
    await publish(bootstrap, topic_name(DEAD_LETTERS, prefix), [(b"x", b"no dead letter")])
    found = await newest_dead_letters(bootstrap, prefix=prefix, limit=5)
    assert [one.letter.source_id for one in found] == [f"turn-{number}" for number in (8, 7, 6, 5, 4)]
    assert [one.position for one in found] == positions[:3:-1]
    assert found[0].letter.value == b"\xff{"


async def test_one_is_read_by_its_position(bootstrap: str, prefix: str) -> None:
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    (position,) = await write(bootstrap, prefix, letter(1, None))
    partition, offset = map(int, position.split("/")[1:])
    found = await read_dead_letter(bootstrap, partition, offset, prefix=prefix)
    assert found is not None
    assert (found.position, found.letter.value, found.letter.size) == (position, None, -1)
    assert await read_dead_letter(bootstrap, partition, offset + 1, prefix=prefix) is None
    assert await read_dead_letter(bootstrap, PARTITIONS, 0, prefix=prefix) is None


async def test_without_its_topic_there_are_none(bootstrap: str, prefix: str) -> None:
    assert await newest_dead_letters(bootstrap, prefix=prefix, limit=5) == []


async def test_a_stage_that_does_not_run_has_no_worker_and_all_records_wait(bootstrap: str, prefix: str) -> None:
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    await publish(bootstrap, topic_name(CONVERSATION_TURNS, prefix), [(b"a", b"x"), (b"b", b"y")])
    lags = {one.stage: one for one in await stage_lags(bootstrap, prefix=prefix)}
    assert list(lags) == ["journal", "extract", "embed", "match", "resolve", "project"]
    assert {stage: one.lag for stage, one in lags.items() if one.lag} == {"journal": 2, "extract": 2}
    assert {one.workers for one in lags.values()} == {0}
