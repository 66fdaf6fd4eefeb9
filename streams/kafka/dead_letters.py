"""Write and read the topic `dead_letters`: records that could not be processed, with their origin and the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mnemolog.projections.logs import get_logger
from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name

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
