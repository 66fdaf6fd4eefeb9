"""From what an application says to a `Turn`: judged as the pipeline will judge it, before it is published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from mnemolog.errors import InvalidTurnError
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.schemas.base import validation_error
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Overrides, Turn

Messages = str | Sequence[Message | Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDraft:
    """A turn as a caller words it; `occurred_at` and `turn_id` are decided by then."""

    messages: Messages
    turn_id: str
    occurred_at: datetime
    tenant: str
    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None
    infer: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)
    valid_until: datetime | None = None
    speaker: str | None = None
    recalled: Sequence[str] = ()
    overrides: Overrides | Mapping[str, Any] | None = None


def build_turn(draft: TurnDraft, *, max_bytes: int) -> Turn:
    """Make a turn of `draft`. Raises `InvalidTurnError` that names the field at fault and the remedy."""
    _require_zones(occurred_at=draft.occurred_at, valid_until=draft.valid_until)
    scope = {name: getattr(draft, name) for name in Scope.model_fields}
    overrides = draft.overrides or Overrides()
    document = {
        "turn_id": draft.turn_id,
        "scope": scope,
        "messages": _messages(draft.messages),
        "occurred_at": draft.occurred_at,
        "infer": draft.infer,
        "metadata": dict(draft.metadata),
        "valid_until": draft.valid_until,
        "speaker": draft.speaker,
        "recalled": tuple(draft.recalled),
        "overrides": overrides if isinstance(overrides, Overrides) else dict(overrides),
    }
    try:
        turn = Turn.model_validate(document)
    except ValidationError as error:
        raise InvalidTurnError(f"{validation_error(Turn, error)}: nothing was published") from error
    return validated_turn(turn, max_bytes=max_bytes)


def validated_turn(turn: Turn, *, max_bytes: int) -> Turn:
    """Give `turn` back if the pipeline will accept its bytes; raises `InvalidTurnError` if it will not."""
    try:
        data = turn.to_bytes()
    except PydanticSerializationError as error:
        raise InvalidTurnError(f"metadata cannot be written as JSON ({error}): keep to plain values") from error
    return read_turn(data, max_bytes=max_bytes)


def read_turn(data: bytes, *, max_bytes: int) -> Turn:
    """Read one turn document. Raises `InvalidTurnError` with the reason the pipeline would give."""
    judged = parse_turn(data, position="", max_bytes=max_bytes)
    if isinstance(judged, Refusal):
        raise InvalidTurnError(f"{judged.reason}: {judged.detail}")
    return judged


def _messages(messages: Messages) -> Sequence[Message | Mapping[str, str]]:
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else messages


def _require_zones(**times: datetime | None) -> None:
    for name, time in times.items():
        if time is not None and time.tzinfo is None:
            raise InvalidTurnError(f"{name} has no zone: use datetime.now(UTC), or give it one by .replace(tzinfo=...)")
