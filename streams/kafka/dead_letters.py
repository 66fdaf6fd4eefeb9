"""Dead letters: what cannot be processed keeps its bytes, its origin and the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog

from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name

log = structlog.get_logger(__name__)

DETAIL_CHARACTERS: Final = 2000
# What is left of a value that does not fit beside its headers.
TRUNCATED_BYTES: Final = DEAD_LETTERS.max_message_bytes // 2

STAGE_HEADER: Final = "mnemolog-stage"
REASON_HEADER: Final = "mnemolog-reason"
DETAIL_HEADER: Final = "mnemolog-detail"
ORIGIN_HEADER: Final = "mnemolog-origin"
SOURCE_ID_HEADER: Final = "mnemolog-source"
ATTEMPTS_HEADER: Final = "mnemolog-tries"
TIMESTAMP_HEADER: Final = "mnemolog-at"
SIZE_HEADER: Final = "mnemolog-size"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter read back; `size` is the original value's: larger than `value` if that was cut, -1 if it was null.

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
        return cls(
            key=record.key,
            value=record.value if int(headers[SIZE_HEADER]) >= 0 else None,
            stage=headers[STAGE_HEADER],
            reason=headers[REASON_HEADER],
            detail=headers[DETAIL_HEADER],
            origin=headers[ORIGIN_HEADER],
            source_id=headers[SOURCE_ID_HEADER],
            tries=int(headers[ATTEMPTS_HEADER]),
            at=datetime.fromisoformat(headers[TIMESTAMP_HEADER]),
            size=int(headers[SIZE_HEADER]),
        )


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
        """Put a record away; return when the broker has it.

        Blocks while the broker is away. Raises `ProducerDead`. A value too large even for this topic is cut.
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
        await self._send(letter)
        metrics.DEAD_LETTERED.labels(stage=stage, reason=reason).inc()
        log.warning("dead_lettered", stage=stage, reason=reason, origin=letter.origin, tries=tries)

    async def _send(self, letter: DeadLetter) -> None:
        headers = _headers(letter)
        value = letter.value or b""  # a record with neither key nor value cannot be sent
        try:
            await self._sender.send(self._topic, key=letter.key, value=value, headers=headers)
        except RecordTooLarge:
            key = (letter.key or b"")[: TRUNCATED_BYTES // 2]
            await self._sender.send(self._topic, key=key, value=value[:TRUNCATED_BYTES], headers=headers)


def _headers(letter: DeadLetter) -> tuple[tuple[str, bytes], ...]:
    texts = {
        STAGE_HEADER: letter.stage,
        REASON_HEADER: letter.reason,
        DETAIL_HEADER: letter.detail,
        ORIGIN_HEADER: letter.origin,
        SOURCE_ID_HEADER: letter.source_id,
        ATTEMPTS_HEADER: str(letter.tries),
        TIMESTAMP_HEADER: letter.at.isoformat(),
        SIZE_HEADER: str(letter.size),
    }
    # Error texts can hold lone surrogates, which UTF-8 cannot.
    return tuple((name, text.encode(errors="backslashreplace")) for name, text in texts.items())
