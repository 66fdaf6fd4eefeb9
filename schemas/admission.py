"""Parse the bytes of a record of `conversation_turns`: a turn, a command, or a refusal that says why.

Every reader of that topic uses these functions, so that all give a record the same kind, id and verdict.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Literal, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from mnemolog.schemas.base import Identifier, SourceKind, Versioned, validation_error
from mnemolog.schemas.command import Command, Import, Promote
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.ids import FOLLOW_UP_PREFIX, is_follow_up_id
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn

DEFAULT_MAX_TURN_BYTES: Final = 256 * 1024
MAX_COMMAND_BYTES: Final = 128 * 1024
"""Of one command: its texts travel several times, with their vectors, in one record of a megabyte."""
MAX_IMPORT_BYTES: Final = (1024 - 48) * 1024 // 3
"""Of one `import`: its only text is three times in such a record, beside its vector and what Kafka adds."""

RESERVED_ID: Final = (
    f"ids that begin with {FOLLOW_UP_PREFIX!r} are those of promotions that follow from another command: choose another"
)
MAX_AHEAD: Final = timedelta(days=1)
"""How far a turn may be ahead of the broker's time: a clock is minutes wrong, a zone 14 hours at the most."""

RefusalReason = Literal[
    "not_a_record",
    "invalid_record",
    "invalid_command",
    "not_allowed",
    "unsupported_version",
    "empty",
    "oversize",
    "unknown_role",
    "missing_zone",
    "in_the_future",
]
REFUSAL_REASONS: Final[frozenset[str]] = frozenset(get_args(RefusalReason))
"""Of records that end before any model is asked."""
_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)

V = TypeVar("V", bound=Versioned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a record is not accepted. `source_id` is its own id where it names one, else its position in the topic."""

    source_id: str
    scope: Scope | None
    reason: RefusalReason
    detail: str
    kind: SourceKind = "turn"

    @property
    def outcome(self) -> Literal["rejected", "failed"]:
        """What is understood and not wanted is rejected; what is not understood has failed."""
        return "failed" if self.reason in ("not_a_record", "invalid_record", "unsupported_version") else "rejected"


def source_kind(value: bytes | None) -> SourceKind:
    """What a record of `conversation_turns` is by its field `kind`; a turn, unless it says that it is a command."""
    if value is None or b'"command"' not in value:
        return "turn"
    fields = _read_leniently(value)
    return "command" if isinstance(fields, dict) and fields.get("kind") == "command" else "turn"


def parse_record(
    value: bytes | None,
    *,
    position: str,
    max_turn_bytes: int = DEFAULT_MAX_TURN_BYTES,
    published_at: datetime | None = None,
) -> Turn | Command | Refusal:
    """Judge the bytes of a turn or a command, whichever they are."""
    if source_kind(value) == "command":
        return parse_command(value, position=position)
    return parse_turn(value, position=position, max_bytes=max_turn_bytes, published_at=published_at)


def parse_turn(
    value: bytes | None,
    *,
    position: str,
    max_bytes: int = DEFAULT_MAX_TURN_BYTES,
    published_at: datetime | None = None,
) -> Turn | Refusal:
    """Judge the bytes of a turn; `position` is the record's topic/partition/offset. Never raises for bad input.

    A turn that is more than `MAX_AHEAD` ahead of `published_at`, the broker's time of the record, is refused.
    """
    turn = _TURN_PARSER.parse(value, position, max_bytes)
    if not isinstance(turn, Turn):
        return turn
    if is_follow_up_id(turn.turn_id):
        return _TURN_PARSER.refuse_reserved_id(turn.turn_id, position)
    if published_at is not None and turn.occurred_at > published_at + MAX_AHEAD:
        detail = (
            f"occurred_at is {turn.occurred_at.isoformat()}, more than {MAX_AHEAD // timedelta(hours=1)} hours in the "
            "future: give the time when it was said; what is said of a later time stands in the messages"
        )
        return Refusal(source_id=turn.turn_id, scope=turn.scope, reason="in_the_future", detail=detail)
    if not any(message.content.strip() for message in turn.messages):
        detail = "no message has any text: publish at least one message with content"
        return Refusal(source_id=turn.turn_id, scope=turn.scope, reason="empty", detail=detail)
    return turn


def parse_command(value: bytes | None, *, position: str) -> Command | Refusal:
    """Judge the bytes of a command as `parse_turn` does those of a turn."""
    data = value or b""
    judged = _COMMAND_PARSER.parse(data, position, MAX_IMPORT_BYTES if b'"import"' in data else MAX_COMMAND_BYTES)
    if isinstance(judged, Command) and not isinstance(judged.order, Import):
        judged = _COMMAND_PARSER.refuse_oversize(data, position, MAX_COMMAND_BYTES) or judged
    if isinstance(judged, Command) and not isinstance(judged.order, Promote) and is_follow_up_id(judged.command_id):
        return _COMMAND_PARSER.refuse_reserved_id(judged.command_id, position)
    return judged


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordParser(Generic[V]):
    """How one kind of record is read. `specific_fault` knows the faults that have a reason of their own."""

    kind: SourceKind
    model: type[V]
    id_field: str
    oversize_advice: str
    default_reason: RefusalReason
    specific_fault: Callable[[ErrorDetails], tuple[RefusalReason, str | None] | None]

    def parse(self, value: bytes | None, position: str, max_bytes: int) -> V | Refusal:
        data = value or b""
        if oversize := self.refuse_oversize(data, position, max_bytes):
            return oversize
        try:
            return self.model.model_validate_json(data, strict=True)
        except ValidationError as error:
            return self.refuse(data, position, *self.reason_of(error))

    def refuse_oversize(self, data: bytes, position: str, max_bytes: int) -> Refusal | None:
        if len(data) <= max_bytes:
            return None
        detail = f"the record has {len(data)} bytes, the limit is {max_bytes}: {self.oversize_advice}"
        return self.refuse(data, position, "oversize", detail)

    def refuse_reserved_id(self, given: str, position: str) -> Refusal:
        """Under the position of the record: under its own id it would be the end of the promotion of that id."""
        detail = f"{self.id_field} is {given!r:.300}: {RESERVED_ID}"
        return Refusal(source_id=position, scope=None, reason=self.default_reason, detail=detail, kind=self.kind)

    def reason_of(self, error: ValidationError) -> tuple[RefusalReason, str]:
        explained = validation_error(self.model, error)
        if isinstance(explained, UnsupportedVersionError):
            return "unsupported_version", str(explained)
        for fault in error.errors(include_url=False):
            match fault["loc"], fault["type"]:
                case (), "json_invalid" | "model_type":
                    return "not_a_record", explained.detail
                case place, "timezone_aware":
                    field = ".".join(map(str, place))
                    return "missing_zone", f"{field} needs a zone, for example 2026-01-31T09:30:00+01:00"
            if reason := self.specific_fault(fault):
                return reason[0], reason[1] or explained.detail
        return self.default_reason, explained.detail

    def refuse(self, data: bytes, position: str, reason: RefusalReason, detail: str) -> Refusal:
        """A refusal under the id that a broken record says it has, so that its publisher can find its end by it."""
        fields = _read_leniently(data)
        source_id, scope = position, None
        try:
            named, whose = _IDENTIFIER.validate_python(fields[self.id_field]), Scope.model_validate(fields["scope"])
        except (ValueError, KeyError, TypeError, IndexError):
            pass
        else:
            if not is_follow_up_id(named):
                source_id, scope = named, whose
        return Refusal(source_id=source_id, scope=scope, reason=reason, detail=detail, kind=self.kind)


def _read_leniently(data: bytes) -> Any:
    """The JSON value of `data`; None where it has none.

    The standard library's reader is lenient where the strict one gives up, for example on an unpaired surrogate
    (an emoji cut in two). Integers are not read: their digits may be too many.
    """
    try:
        return json.loads(data, parse_int=bool)
    except (ValueError, RecursionError):
        return None


def _turn_fault(fault: ErrorDetails) -> tuple[RefusalReason, str | None] | None:
    match fault["loc"], fault["type"]:
        case ("kind",), "literal_error" if fault["input"] != "command":
            return "invalid_record", 'kind is not valid: write "turn" or "command"'
        case ("messages", _, "role"), "literal_error":
            return "unknown_role", None
        case ("messages",), "too_short" if not fault["input"]:
            return "empty", "messages is empty: publish at least one message with content"
    return None


_TURN_PARSER: Final = _RecordParser(
    kind="turn",
    model=Turn,
    id_field="turn_id",
    oversize_advice="split the turn or raise max_turn_bytes",
    default_reason="invalid_record",
    specific_fault=_turn_fault,
)
_COMMAND_PARSER: Final = _RecordParser(
    kind="command",
    model=Command,
    id_field="command_id",
    oversize_advice="give it fewer items, or shorter texts, and the rest in another command",
    default_reason="invalid_command",
    specific_fault=lambda _: None,
)
