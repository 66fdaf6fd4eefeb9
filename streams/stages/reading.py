"""How a stage reads the stage before it: an envelope, or, for bytes that are none, a turn that has failed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.envelopes import Envelope
from mnemolog.schemas.errors import InvalidRecordError
from mnemolog.schemas.provenance import Origin
from mnemolog.streams.records import Record
from mnemolog.streams.stages.carrying import carry, opened
from mnemolog.streams.stages.errors import TurnEndedError

E = TypeVar("E", bound=Envelope)


@dataclass(frozen=True, slots=True)
class Received(Generic[E]):
    """An envelope; `fault` says why the bytes were none, then the envelope only names the record."""

    envelope: E
    fault: str | None = None

    @property
    def source_id(self) -> str:
        return self.envelope.source_id

    @property
    def origin(self) -> Origin:
        return self.envelope.origin

    def checked(self) -> E:
        """The envelope. Raises `TurnEndedError` for bytes that were none."""
        if self.fault is not None:
            raise TurnEndedError("not_a_record", self.fault)
        return self.envelope


def reader(kind: type[E]) -> Callable[[Record], Received[E]]:
    """Read records of one kind. A record of a newer version escapes: the stage waits to be upgraded."""

    def read(record: Record) -> Received[E]:
        try:
            return Received(kind.from_bytes(record.value))
        except InvalidRecordError as error:
            refusal = Refusal(source_id=record.position, scope=None, reason="not_a_record", detail=error.detail)
            return Received(carry(kind, opened(record, refusal)), error.detail)

    return read
