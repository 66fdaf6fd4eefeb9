"""A record outside its owner's partition is published again, once, and not processed where it was."""

import pytest
from aiokafka.partitioner import DefaultPartitioner  # type: ignore[import-untyped] # aiokafka ships no types
from prometheus_client import REGISTRY

from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.scope import Scope
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.stages.extract import REKEYED_HEADER, ParsedSource, Work, parse_source, partition_of, rekeying
from mnemolog.streams.stages.processor import next_envelope
from tests.support.harnesses.worker_harness import user_turn
from tests.support.servers.memory_broker import MemoryBroker

SCOPE = Scope(user_id="mira")
PARTITIONS = 12
HOME = partition_of(SCOPE, PARTITIONS)
TURN = user_turn("t1", "I live in Bern.").to_bytes()


def record(
    *, key: bytes | None = SCOPE.key, partition: int = HOME, value: bytes = TURN, rekeyed: bool = False
) -> KafkaRecord:
    headers = ((REKEYED_HEADER, b"1"),) if rekeyed else (("mnemolog-token", b"secret"),)
    return KafkaRecord(
        topic="turns", partition=partition, offset=7, key=key, value=value, headers=headers, timestamp=1.7e9
    )


async def extracted(source: ParsedSource, _: KafkaRecord) -> ExtractedFacts:
    return next_envelope(ExtractedFacts, source.envelope)


def rekeyed_work(broker: MemoryBroker, limit: int = 1_000_000) -> Work:
    sender = Sender(broker.enqueue, limits={"turns": limit})
    return rekeying(extracted, sender, topic="turns", partitions=PARTITIONS)


def wrong_keys() -> float:
    return REGISTRY.get_sample_value("mnemolog_wrong_keys_total") or 0


@pytest.mark.parametrize(
    "misplaced",
    [record(key=None), record(key=b"default/jonas"), record(partition=(HOME + 1) % PARTITIONS)],
    ids=["no key", "another key", "another partition"],
)
async def test_a_misplaced_record_is_published_again_with_its_headers(misplaced: KafkaRecord) -> None:
    broker, before = MemoryBroker(), wrong_keys()
    assert await rekeyed_work(broker)(parse_source(misplaced, max_bytes=10_000), misplaced) is None
    (copy,) = broker.records("turns")
    assert (copy.key, copy.value) == (SCOPE.key, TURN)
    assert dict(copy.headers) == {"mnemolog-token": b"secret", REKEYED_HEADER: b"1"}
    assert wrong_keys() == before + 1


@pytest.mark.parametrize(
    "kept",
    [record(), record(key=None, rekeyed=True), record(key=None, value=b"no json")],
    ids=["in its place", "a copy", "of nobody"],
)
async def test_other_records_are_processed_where_they_are(kept: KafkaRecord) -> None:
    broker, before = MemoryBroker(), wrong_keys()
    assert await rekeyed_work(broker)(parse_source(kept, max_bytes=10_000), kept) is not None
    assert broker.records("turns") == []
    assert wrong_keys() == before


async def test_a_record_whose_copy_does_not_fit_is_processed_where_it_is() -> None:
    broker, misplaced = MemoryBroker(), record(key=None)
    assert await rekeyed_work(broker, limit=10)(parse_source(misplaced, max_bytes=10_000), misplaced) is not None


@pytest.mark.parametrize("count", [1, 4, 12])
def test_an_owner_has_the_partition_that_a_producer_sends_its_records_to(count: int) -> None:
    """Also the timer asks so whose orders to expire are this worker's."""
    partitions = list(range(count))
    scopes = [Scope(user_id=f"user-{number}") for number in range(200)] + [Scope(tenant="acme", agent_id="bot")]
    sent = [DefaultPartitioner()(scope.key, partitions, partitions) for scope in scopes]
    assert [partition_of(scope, count) for scope in scopes] == sent
    assert set(sent) == set(partitions)
