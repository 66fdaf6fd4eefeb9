"""One suite for whatever a `Sender` sends through: a real Kafka, and the broker in memory that other tests use."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.dead_letters import DeadLetter, DeadLetterWriter
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import EnqueueRecord, Sender
from mnemolog.streams.kafka.topics import DEAD_LETTERS, EXTRACTED_FACTS, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.servers.kafka_client import PARTITIONS, producer, read_all
from tests.support.servers.memory_broker import MemoryBroker


@dataclass(frozen=True)
class Broker:
    """A broker with the topics of one prefix, and what is in them."""

    prefix: str
    enqueue: EnqueueRecord
    read: Callable[[str], Awaitable[list[KafkaRecord]]]

    @property
    def topic(self) -> str:
        return topic_name(EXTRACTED_FACTS, self.prefix)

    def sender(self, *, limit: int | None = None) -> Sender:
        return Sender(self.enqueue, limits={} if limit is None else {self.topic: limit})


@pytest.fixture
def memory_broker() -> Broker:
    broker = MemoryBroker(partitions=PARTITIONS)

    async def read(topic: str) -> list[KafkaRecord]:
        return broker.records(topic)

    return Broker("", broker.enqueue, read)


@pytest.fixture
async def kafka(bootstrap: str, topic_suffix: str) -> AsyncIterator[Broker]:
    prefix = f"{topic_suffix}-"
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    async with producer(bootstrap) as client:

        async def enqueue(topic: str, **record: object) -> Awaitable[object]:
            sent: Awaitable[object] = await client.send(topic, **record)
            return sent

        async def read(topic: str) -> list[KafkaRecord]:
            return await read_all(bootstrap, topic)

        yield Broker(prefix, enqueue, read)  # type: ignore[arg-type]  # aiokafka ships no types


@pytest.fixture(params=["memory_broker", pytest.param("kafka", marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Broker:
    found: Broker = request.getfixturevalue(request.param)
    return found


async def test_a_record_comes_back_as_it_was_sent(broker: Broker) -> None:
    sent = await broker.sender().send(broker.topic, key=b"k", value=b"\x00\xffv", headers=[("name", b"\xfe")])
    (record,) = await broker.read(broker.topic)
    assert (record.key, record.value, record.headers) == (b"k", b"\x00\xffv", (("name", b"\xfe"),))
    assert (record.topic, record.partition, record.offset) == (sent.topic, sent.partition, sent.offset)


async def test_records_of_one_key_share_a_partition_in_order_and_keys_are_spread(broker: Broker) -> None:
    sender = broker.sender()
    sent = [await sender.send(broker.topic, key=b"owner", value=b"%d" % number) for number in range(5)]
    assert {each.partition for each in sent} == {sent[0].partition}
    assert [each.offset for each in sent] == [0, 1, 2, 3, 4]
    assert [record.value for record in await broker.read(broker.topic)] == [b"0", b"1", b"2", b"3", b"4"]
    sent = [await sender.send(broker.topic, key=b"owner-%d" % number, value=b"v") for number in range(40)]
    assert len({each.partition for each in sent}) > 1


async def test_a_record_that_is_too_large_is_refused_and_the_next_one_taken(broker: Broker) -> None:
    with pytest.raises(RecordTooLarge):
        await broker.sender(limit=2000).send(broker.topic, key=b"k", value=b"x" * 3000)
    with pytest.raises(RecordTooLarge):
        await broker.sender().send(broker.topic, key=b"k", value=b"x" * 3_000_000)
    await broker.sender().send(broker.topic, key=b"k", value=b"small")
    assert [record.value for record in await broker.read(broker.topic)] == [b"small"]


async def test_a_dead_letter_can_be_read_back(broker: Broker) -> None:
    writer = DeadLetterWriter(broker.sender(), prefix=broker.prefix)
    values = (b"\xff not JSON", b"", None)
    for value in values:
        record = KafkaRecord(topic="in", partition=1, offset=2, key=b"k", value=value, timestamp=1.7e9)
        await writer.write(
            record, stage="embed", reason="not_a_record", detail="expected JSON", tries=2, source_id="t1"
        )
    letters = [DeadLetter.from_record(one) for one in await broker.read(topic_name(DEAD_LETTERS, broker.prefix))]
    assert [letter.value for letter in letters] == list(values)
    for letter in letters:
        assert (letter.key, letter.origin, letter.stage) == (b"k", "in/1/2", "embed")
        assert (letter.reason, letter.tries, letter.source_id) == ("not_a_record", 2, "t1")
