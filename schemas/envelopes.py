"""The records between stages: one for each turn or command and stage, up to its end."""

import struct
from typing import Annotated, Final, Literal, Self

from pydantic import Field

from mnemolog.schemas.base import Count, Identifier, IfAny, Metadata, Record, SourceKind, Text, Timestamp, Versioned
from mnemolog.schemas.command import CommandPayload
from mnemolog.schemas.entities import MAX_NAME_VECTORS, NameVector
from mnemolog.schemas.errors import InvalidRecordError, UnsupportedVersionError
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact, MatchedFact
from mnemolog.schemas.ids import attempt_source
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Origin, Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.schemas.vector import VectorBytes

MAX_DETAIL = 2000
"""Characters of the detail that a source's end may have."""


BINARY_FORMAT: Final = 1
_MARK: Final = b"MNE"
_HEAD: Final = struct.Struct(">3sBI")  # the mark, the format, how many bytes of JSON follow; then come the vectors


_NameVectors = Annotated[
    tuple[NameVector, ...], Field(max_length=MAX_NAME_VECTORS, exclude_if=lambda vectors: not vectors)
]


class End(Record):
    """The end a stage has already found for a source; later stages pass it on and the resolver commits it."""

    outcome: Literal["nothing_stored", "rejected", "failed"]
    reason: Text
    detail: Text = ""
    limit: LimitHit | None = None


class Envelope(Versioned):
    """The fields of every record between stages. `published_at` is the broker's time of the record, `size` its bytes.

    A command passes the stages like a turn, with its `order`; its texts are the facts.
    """

    source_id: Identifier
    source_kind: SourceKind = "turn"
    scope: Scope | None
    origin: Origin
    occurred_at: Timestamp
    published_at: Timestamp
    infer: bool = True
    speaker: Text | None = None
    metadata: Metadata = Field(default_factory=dict)
    overrides: Overrides = Overrides.model_construct()
    immutable: IfAny[bool] = False
    size: Count = 0
    order: CommandPayload | None = None
    actor: Text | None = None
    steps: tuple[Step, ...] = ()
    end: End | None = None

    def to_bytes(self) -> bytes:
        """The JSON of the envelope and, behind it, the bytes of its vectors, in the place of text in the JSON."""
        vectors = VectorBytes()
        fields = self.model_dump_json(context=vectors).encode()
        return b"".join((_HEAD.pack(_MARK, BINARY_FORMAT, len(fields)), fields, vectors.content))

    @classmethod
    def from_bytes(cls, data: bytes | None) -> Self:
        """Read one envelope.

        Raises `UnsupportedVersionError` for a version or a binary form that this program does not know,
        `InvalidRecordError` for every other fault.
        """
        fields, vectors = split_envelope(data or b"")
        return cls.from_json(fields, VectorBytes(vectors))

    @property
    def owner(self) -> str:
        """Whose source it is; a record without a scope is its own owner."""
        return self.scope.owner if self.scope else self.source_id

    @property
    def key(self) -> bytes:
        return self.scope.key if self.scope else self.source_id.encode()


class ExtractedFacts(Envelope):
    facts: tuple[ExtractedFact, ...] = ()


class EmbeddedFacts(Envelope):
    """`name_vectors` are the vectors of names in the facts that have a meaning."""

    facts: tuple[EmbeddedFact, ...] = ()
    name_vectors: _NameVectors = ()


class MatchedFacts(Envelope):
    """`scope_version` is the version of the scope that the candidates were looked up in.

    `user_names` are the names of the user that were known then. `attempt` is which commit of its source this becomes.
    """

    facts: tuple[MatchedFact, ...] = ()
    name_vectors: _NameVectors = ()
    scope_version: Count = 0
    user_names: tuple[Text, ...] = ()
    attempt: Annotated[int, Field(ge=1)] = Field(default=1, exclude_if=lambda attempt: attempt == 1)

    @property
    def id_source(self) -> str:
        """The source id that ids of facts, events and entities are derived from."""
        return attempt_source(self.source_id, self.attempt)


def split_envelope(data: bytes) -> tuple[bytes, bytes]:
    """The JSON of an envelope and the bytes of its vectors.

    Raises `UnsupportedVersionError` for a binary form that this program does not know, `InvalidRecordError` for bytes
    that are not the beginning of an envelope.
    """
    if not data.startswith(_MARK) or len(data) < _HEAD.size:
        raise InvalidRecordError("envelope", f"{len(data)} bytes that do not begin with the head of an envelope")
    _, binary_format, length = _HEAD.unpack_from(data)
    if binary_format != BINARY_FORMAT:
        raise UnsupportedVersionError("the binary form of an envelope", binary_format, BINARY_FORMAT)
    end = _HEAD.size + length
    return data[_HEAD.size : end], data[end:]
