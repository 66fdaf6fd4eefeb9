"""Dead letters, as a real broker has them."""

from datetime import UTC, datetime

import pytest

from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.dead_letters import DeadLetter, newest_dead_letters, read_dead_letter
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
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


async def test_the_newest_are_read_whatever_partition_they_are_in_and_each_by_its_position(
    bootstrap: str, prefix: str
) -> None:
    assert await newest_dead_letters(KafkaAddress(bootstrap), prefix=prefix, limit=5) == [], (
        "the topic does not exist yet"
    )
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    assert await newest_dead_letters(KafkaAddress(bootstrap), prefix=prefix, limit=10) == []
    positions = await write(bootstrap, prefix, *(letter(number) for number in range(8)), letter(8, None))
    await publish(bootstrap, topic_name(DEAD_LETTERS, prefix), [(b"x", b"no dead letter")])
    found = await newest_dead_letters(KafkaAddress(bootstrap), prefix=prefix, limit=5)
    assert [one.letter.source_id for one in found] == [f"turn-{number}" for number in (8, 7, 6, 5, 4)]
    assert [one.position for one in found] == positions[:3:-1]
    assert [one.letter.value for one in found[:2]] == [None, b"\xff{"]
    old = await newest_dead_letters(
        KafkaAddress(bootstrap), prefix=prefix, limit=2, wanted=lambda one: one.at < letter(3).at
    )
    assert [one.letter.source_id for one in old] == ["turn-2", "turn-1"]
    partition, offset = map(int, positions[8].split("/")[1:])
    one = await read_dead_letter(KafkaAddress(bootstrap), partition, offset, prefix=prefix)
    assert one is not None
    assert (one.position, one.letter.value, one.letter.size) == (positions[8], None, -1)
    assert await read_dead_letter(KafkaAddress(bootstrap), partition, offset + 100, prefix=prefix) is None
    assert await read_dead_letter(KafkaAddress(bootstrap), PARTITIONS, 0, prefix=prefix) is None
