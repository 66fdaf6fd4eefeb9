"""Durable sends and dead letters on a real broker."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime

import pytest
from aiokafka.errors import (  # type: ignore[import-untyped] # aiokafka ships no types
    KafkaConnectionError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
)

from mnemolog.streams.errors import ProducerDead, RecordTooLarge
from mnemolog.streams.kafka.dead_letters import DeadLetter, DeadLetterWriter
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, DEAD_LETTERS, MIB, Headers, max_record_bytes, topic_name
from tests.support.servers.kafka_client import producer, read_all
from tests.support.servers.memory_broker import SentRecord

pytestmark = pytest.mark.kafka

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def sender(bootstrap: str, prefix: str) -> AsyncIterator[Sender]:
    async with producer(bootstrap) as client:
        yield Sender(client.send, limits=max_record_bytes(prefix))


@pytest.fixture
def turns(prefix: str) -> str:
    return topic_name(CONVERSATION_TURNS, prefix)


def record(value: bytes | None, key: bytes | None = b"user") -> KafkaRecord:
    return KafkaRecord(topic="t", partition=1, offset=7, key=key, value=value, timestamp=0.0)


class UnreliableBroker:
    """A producer that fails a few times and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.delays: list[float] = []

    async def send(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[RecordMetadata]:
        del key, value, headers
        answer: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        if self.errors:
            answer.set_exception(self.errors.pop(0))
        else:
            answer.set_result(SentRecord(topic=topic, partition=0, offset=1))
        return answer

    async def sleep(self, seconds: float) -> None:
        self.delays.append(seconds)


async def test_what_the_broker_takes_is_what_passes_the_check_before_it_is_sent(
    bootstrap: str, sender: Sender, turns: str
) -> None:
    with pytest.raises(RecordTooLarge, match="does not fit"):
        await sender.send(turns, key=b"user", value=bytes(MIB))
    assert await read_all(bootstrap, turns) == []
    await sender.send(turns, key=b"user", value=os.urandom(MIB - 512 - 4))


@pytest.mark.parametrize(
    ("error", "raised"), [(MessageSizeTooLargeError(), RecordTooLarge), (OutOfOrderSequenceNumber(), ProducerDead)]
)
async def test_what_does_not_pass_is_told_as_such(error: Exception, raised: type[Exception], turns: str) -> None:
    with pytest.raises(raised):
        await Sender(UnreliableBroker(error).send, limits={}).send(turns, key=None, value=b"")


async def test_what_passes_is_waited_out_with_growing_delays(turns: str) -> None:
    unsteady = UnreliableBroker(*(KafkaConnectionError() for _ in range(8)))
    sender = Sender(unsteady.send, limits={}, jitter=lambda: 1.0, sleep=unsteady.sleep)
    assert (await sender.send(turns, key=None, value=b"")).offset == 1
    assert unsteady.delays == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


async def test_a_dead_letter_keeps_bytes_origin_and_reason(bootstrap: str, sender: Sender, prefix: str) -> None:
    """Also of a record that holds nothing, and of one that fits into no topic, which is cut."""
    writer, huge = DeadLetterWriter(sender, prefix=prefix, now=lambda: NOON), os.urandom(3 * MIB)
    await writer.write(
        record(b"\xff{"), stage="extract", reason="not_json", detail="x" * 5000, tries=3, source_id="turn-1"
    )
    await writer.write(record(None, None), stage="s", reason="nothing", detail="\ud800", tries=0)
    await writer.write(record(huge), stage="s", reason="too_large", detail="", tries=1)
    found = map(DeadLetter.from_record, await read_all(bootstrap, topic_name(DEAD_LETTERS, prefix)))
    letters = {letter.reason: letter for letter in found}
    assert letters["not_json"] == DeadLetter(
        key=b"user",
        value=b"\xff{",
        stage="extract",
        reason="not_json",
        detail="x" * 2000,
        origin="t/1/7",
        source_id="turn-1",
        tries=3,
        at=NOON,
        size=2,
    )
    nothing, cut = letters["nothing"], letters["too_large"]
    assert (nothing.key, nothing.value, nothing.size, nothing.detail) == (None, None, -1, "\\ud800")
    assert (cut.size, cut.value) == (3 * MIB, huge[:MIB])
