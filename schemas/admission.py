"""The one door for raw bytes from `conversation_turns`: a turn, or a refusal that still has an identity.

The journal and the extractor both pass through here, so that they name and judge a record alike.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from schemas.base import Identifier, explain
from schemas.errors import UnsupportedVersionError
from schemas.scope import Scope
from schemas.turn import Turn

DEFAULT_MAX_TURN_BYTES = 256 * 1024

Reason = Literal[
    "not_a_record",
    "invalid_record",
    "unsupported_version",
    "empty",
    "oversize",
    "unknown_role",
    "missing_zone",
]
_REJECTED: frozenset[Reason] = frozenset({"empty", "oversize", "unknown_role", "missing_zone"})
_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a record is no turn. `source_id` is its turn id where it names one, else its position in the topic."""

    source_id: str
    scope: Scope | None
    reason: Reason
    detail: str

    @property
    def outcome(self) -> Literal["rejected", "failed"]:
        """A guard rejects what is understood and not wanted; what is not understood has failed."""
        return "rejected" if self.reason in _REJECTED else "failed"


def admit(value: bytes | None, *, position: str, max_bytes: int = DEFAULT_MAX_TURN_BYTES) -> Turn | Refusal:
    """Judge one record's bytes; `position` is its topic/partition/offset. Never raises for bad input."""
    data = value or b""
    if len(data) > max_bytes:
        detail = f"the record has {len(data)} bytes, the limit is {max_bytes}: split the turn or raise max_turn_bytes"
        return _refuse(data, position, "oversize", detail)
    try:
        turn = Turn.model_validate_json(data, strict=True)
    except ValidationError as error:
        return _refuse(data, position, *_reason(error))
    if not any(message.content.strip() for message in turn.messages):
        detail = "no message has any text: publish at least one message with content"
        return Refusal(source_id=turn.turn_id, scope=turn.scope, reason="empty", detail=detail)
    return turn


def _reason(error: ValidationError) -> tuple[Reason, str]:
    explained = explain(Turn, error)
    if isinstance(explained, UnsupportedVersionError):
        return "unsupported_version", str(explained)
    for fault in error.errors(include_url=False):
        match fault["loc"], fault["type"]:
            case (), "json_invalid" | "model_type":
                return "not_a_record", explained.detail
            case ("messages", _, "role"), "literal_error":
                return "unknown_role", explained.detail
            case (field, *_), "timezone_aware" if field in ("occurred_at", "valid_until"):
                return "missing_zone", f"{field} needs a zone, for example 2026-01-31T09:30:00+01:00"
            case ("messages",), "too_short" if not fault["input"]:
                return "empty", "messages is empty: publish at least one message with content"
    return "invalid_record", explained.detail


def _refuse(data: bytes, position: str, reason: Reason, detail: str) -> Refusal:
    turn_id, scope = _identity(data)
    if turn_id is None or scope is None:
        return Refusal(source_id=position, scope=None, reason=reason, detail=detail)
    return Refusal(source_id=turn_id, scope=scope, reason=reason, detail=detail)


def _identity(data: bytes) -> tuple[str | None, Scope | None]:
    """Who a broken record says it is, so that its publisher can find its end by its own id.

    The standard library's reader is lenient where the strict one gives up, for example on half a surrogate pair
    (an emoji cut in two). Integers are not read: their digits may be too many.
    """
    try:
        fields: Any = json.loads(data, parse_int=bool)
        return _IDENTIFIER.validate_python(fields["turn_id"]), Scope.model_validate(fields["scope"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None, None
