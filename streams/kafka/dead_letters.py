"""The topic `dead_letters`: records that could not be processed, with position, stage and reason; written and read."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.common.logs import get_logger
from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.kafka import connected_admin, connected_consumer
from mnemolog.streams.kafka.admin import partition_counts
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name
from mnemolog.streams.kafka_address import KafkaAddress

log = get_logger(__name__)

DETAIL_CHARACTERS: Final = 2000
# What is left of a value that does not fit beside its headers.
TRUNCATED_BYTES: Final = DEAD_LETTERS.max_message_bytes // 2

_HEADERS: Final = {
    "stage": "mnemolog-stage",
    "reason": "mnemolog-reason",
    "detail": "mnemolog-detail",
    "origin": "mnemolog-origin",
    "source_id": "mnemolog-source",
    "tries": "mnemolog-tries",
    "at": "mnemolog-at",
    "size": "mnemolog-size",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter; `size` is the original value's: larger than `value` if that was cut, -1 if it was null.

    `reason` is a code of few values, `detail` says what was wrong in words, `source_id` is empty if unknown.
    """

    key: bytes | None
    value: bytes | None
    stage: str
    reason: str
    detail: str
    origin: str
    source_id: str
    tries: int
    at: datetime
    size: int

    @classmethod
    def from_record(cls, record: KafkaRecord) -> "DeadLetter":
        """Read a record of `dead_letters`; raise `KeyError` or `ValueError` if a header is missing or wrong."""
        headers = {name: content.decode() for name, content in record.headers}
        fields: dict[str, Any] = {field: headers[name] for field, name in _HEADERS.items()}
        at, tries, size = datetime.fromisoformat(fields["at"]), int(fields["tries"]), int(fields["size"])
        value = record.value if size >= 0 else None
        return cls(**fields | {"key": record.key, "value": value, "at": at, "tries": tries, "size": size})

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        texts = {name: getattr(self, field) for field, name in _HEADERS.items()} | {_HEADERS["at"]: self.at.isoformat()}
        # Error texts can hold lone surrogates, which UTF-8 cannot.
        return [(name, str(text).encode(errors="backslashreplace")) for name, text in texts.items()]


class DeadLetterWriter:
    """Writes dead letters durably; `now` gives the time with its zone."""

    def __init__(
        self, sender: Sender, *, prefix: str = "", now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._sender = sender
        self._topic = topic_name(DEAD_LETTERS, prefix)
        self._now = now

    async def write(
        self, record: KafkaRecord, *, stage: str, reason: str, detail: str, tries: int, source_id: str = ""
    ) -> None:
        """Write a dead letter; return when the broker has it.

        Blocks while the broker is unavailable. Raises `ProducerDead`. A value too large for this topic is cut.
        """
        letter = DeadLetter(
            key=record.key,
            value=record.value,
            stage=stage,
            reason=reason,
            detail=detail[:DETAIL_CHARACTERS],
            origin=record.position,
            source_id=source_id,
            tries=tries,
            at=self._now(),
            size=-1 if record.value is None else len(record.value),
        )
        value = letter.value or b""  # a record with neither key nor value cannot be sent
        try:
            await self._sender.send(self._topic, key=letter.key, value=value, headers=letter.headers)
        except RecordTooLarge:
            key = (letter.key or b"")[: TRUNCATED_BYTES // 2]
            await self._sender.send(self._topic, key=key, value=value[:TRUNCATED_BYTES], headers=letter.headers)
        metrics.DEAD_LETTERED.labels(stage=stage, reason=reason).inc()
        log.warning("dead_letter_written", stage=stage, reason=reason, origin=letter.origin, attempts=tries)


TIMEOUT_SECONDS: Final = 30.0
_POLL_MILLISECONDS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDeadLetter:
    """A dead letter at its position (topic/partition/offset) in `dead_letters`."""

    position: str
    letter: DeadLetter


async def newest_dead_letters(
    address: KafkaAddress, *, prefix: str = "", limit: int, wanted: Callable[[DeadLetter], bool] | None = None
) -> list[StoredDeadLetter]:
    """The newest `limit` dead letters that are `wanted`, the newest first.

    With `wanted` the whole topic is read. Raises aiokafka's errors, and `TimeoutError` after 30 s.
    """
    found = await _read(address, prefix, lambda _, first, end: (first if wanted else max(first, end - limit), end))
    kept = [one for one in found if wanted is None or wanted(one.letter)]
    return sorted(kept, key=lambda one: one.letter.at, reverse=True)[:limit]


async def read_dead_letter(
    address: KafkaAddress, partition: int, offset: int, *, prefix: str = ""
) -> StoredDeadLetter | None:
    """The dead letter at a position; None where the topic has none there. Raises as `newest_dead_letters` does."""

    def span(number: int, first: int, end: int) -> tuple[int, int]:
        return (offset, offset + 1) if number == partition and first <= offset < end else (0, 0)

    return next(iter(await _read(address, prefix, span)), None)


async def _read(
    address: KafkaAddress, prefix: str, span: Callable[[int, int, int], tuple[int, int]]
) -> list[StoredDeadLetter]:
    """The dead letters from one offset up to another, which `span` gives for a partition, its first offset and its end.

    None where the broker does not have the topic.
    """
    topic = topic_name(DEAD_LETTERS, prefix)
    found: list[StoredDeadLetter] = []
    async with asyncio.timeout(TIMEOUT_SECONDS), connected_consumer(address, auto_offset_reset="none") as consumer:
        async with connected_admin(address) as admin:
            count = (await partition_counts(admin)).get(topic, 0)
        places = [TopicPartition(topic, number) for number in range(count)]
        first, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        spans = {place: span(place.partition, first[place], ends[place]) for place in places}
        waiting = [place for place, (start, stop) in spans.items() if start < stop]
        consumer.assign(waiting)
        for place in waiting:
            consumer.seek(place, spans[place][0])
        while waiting:
            for place, records in (await consumer.getmany(timeout_ms=_POLL_MILLISECONDS)).items():
                for record in records:
                    with suppress(KeyError, ValueError):  # others may write to the topic what is no dead letter
                        if record.offset < spans[place][1]:
                            position = f"{record.topic}/{record.partition}/{record.offset}"
                            found.append(StoredDeadLetter(position=position, letter=DeadLetter.from_record(record)))
            waiting = [place for place in waiting if await consumer.position(place) < spans[place][1]]
    return found
