"""Publishes a turn or command again where it is not in its owner's partition, so that the owner's order holds.

What is processed then is the copy: it stands behind everything of its owner that was published before.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from aiokafka.partitioner import murmur2  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.projections.logs import get_logger
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.scope import Scope
from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.stages.extract import ParsedSource

REKEYED_HEADER: Final = "mnemolog-rekeyed"
"""On a copy; it is not copied again, whatever its key and partition are."""

log = get_logger(__name__)

Work = Callable[[ParsedSource, KafkaRecord], Awaitable[ExtractedFacts | None]]


def partition_of(scope: Scope, partitions: int) -> int:
    """The partition of an owner's records, as Kafka's own partitioner chooses it."""
    return int(murmur2(scope.key) & 0x7FFFFFFF) % partitions


def rekeying(work: Work, sender: Sender, *, topic: str, partitions: int) -> Work:
    """`work`, and None for a record that was published again into `topic` instead."""

    async def rekey(source: ParsedSource, record: KafkaRecord) -> ExtractedFacts | None:
        scope = source.envelope.scope
        if scope is None or REKEYED_HEADER in dict(record.headers):
            return await work(source, record)
        if record.key == scope.key and record.partition == partition_of(scope, partitions):
            return await work(source, record)
        metrics.WRONG_KEYS.inc()
        try:
            headers = [*record.headers, (REKEYED_HEADER, b"1")]
            await sender.send(topic, key=scope.key, value=record.value, headers=headers)
        except RecordTooLarge as error:
            log.warning("not_published_again", position=record.position, error=str(error))
            return await work(source, record)
        return None

    return rekey
