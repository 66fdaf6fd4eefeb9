"""How a stage reads the stage before it: an envelope, or, for bytes that are none, a turn that has failed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.envelopes import Envelope
from mnemolog.schemas.errors import InvalidRecordError
from mnemolog.schemas.provenance import Origin
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.stages.envelope import new_envelope, next_envelope
from mnemolog.streams.stages.errors import SourceEndedError

E = TypeVar("E", bound=Envelope)


@dataclass(frozen=True, slots=True)
class ReceivedEnvelope(Generic[E]):
    """An envelope; `fault` says why the bytes were none, then the envelope only names the record."""

    envelope: E
    fault: str | None = None

    @property
    def source_id(self) -> str:
        return self.envelope.source_id

    @property
    def origin(self) -> Origin:
        return self.envelope.origin

    def require_valid(self) -> E:
        """The envelope. Raises `SourceEndedError` for bytes that were none."""
        if self.fault is not None:
            raise SourceEndedError("not_a_record", self.fault)
        return self.envelope


def envelope_reader(kind: type[E]) -> Callable[[KafkaRecord], ReceivedEnvelope[E]]:
    """Read records of one kind. A record of a newer version escapes: the stage waits to be upgraded."""

    def read(record: KafkaRecord) -> ReceivedEnvelope[E]:
        try:
            return ReceivedEnvelope(kind.from_bytes(record.value))
        except InvalidRecordError as error:
            refusal = Refusal(source_id=record.position, scope=None, reason="not_a_record", detail=error.detail)
            return ReceivedEnvelope(next_envelope(kind, new_envelope(record, refusal)), error.detail)

    return read
