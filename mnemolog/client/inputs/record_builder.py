"""From a caller's arguments to a `Turn` or `Command`, validated as the pipeline will validate it, before it is sent."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from mnemolog.client.inputs.arguments import TurnArgs, scope_ids
from mnemolog.client.inputs.messages import as_messages
from mnemolog.errors import InvalidCommandError, InvalidTurnError
from mnemolog.projections.queries.fact_rows import WILDCARDS
from mnemolog.schemas.admission import Refusal, parse_command, parse_turn
from mnemolog.schemas.base import validation_error
from mnemolog.schemas.command import Command
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.turn import Turn

PLACEHOLDER_SCOPE: Final = Scope(user_id="anybody")
"""Stands for the scope of a command while that is not known, so that the rest can be validated."""
_DIGEST_CHARACTERS: Final = 16
_NOBODY: Final = "give a user_id or an agent_id, or call it on `memory.scope(user_id=...)`"


def build_turn(messages: Sequence[Mapping[str, str]], arguments: TurnArgs, *, max_bytes: int) -> Turn:
    """Make a turn of a caller's arguments, `turn_id`, `occurred_at` and `tenant` among them.

    Raises `InvalidTurnError` that names the wrong field and what it should be.
    """
    if not names_owner(arguments):
        raise InvalidTurnError(_NOBODY)
    given = {name: dict(value) if isinstance(value, Mapping) else value for name, value in arguments.items()}
    document = {
        **{name: value for name, value in given.items() if name not in SCOPE_FIELDS and value is not None},
        "scope": scope_ids(arguments),
        "messages": messages,
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
        raise InvalidTurnError(
            f"metadata cannot be written as JSON ({error}): use text, numbers, lists, dicts"
        ) from error
    return read_turn(data, max_bytes=max_bytes)


def read_turn(data: bytes, *, max_bytes: int) -> Turn:
    """Read one turn document. Raises `InvalidTurnError` with the reason the pipeline would give if it came now."""
    now = datetime.now(UTC)
    judged = parse_turn(data, position="", max_bytes=max_bytes, published_at=now)
    if isinstance(judged, Refusal) and (converted := _with_plain_messages(data)) is not None:
        judged = parse_turn(converted, position="", max_bytes=max_bytes, published_at=now)
    if isinstance(judged, Refusal):
        raise InvalidTurnError(f"{judged.reason}: {judged.detail}")
    return judged


def _with_plain_messages(data: bytes) -> bytes | None:
    """The document with messages of OpenAI's form as a turn has them; None where they are none."""
    try:
        document = orjson.loads(data)
        return orjson.dumps({**document, "messages": as_messages(document["messages"])[0]})
    except (ValueError, KeyError, TypeError, InvalidTurnError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDraft:
    """The parts of a command; `payload` holds its own fields, its kind among them."""

    command_id: str
    scope_ids: Mapping[str, str | None]
    issued_at: datetime
    payload: Mapping[str, Any]
    actor: str | None = None

    @property
    def has_wildcard(self) -> bool:
        return not WILDCARDS.isdisjoint(self.scope_ids.values())

    def for_scope(self, scope: Scope) -> "CommandDraft":
        """The same command for one of the scopes that match, under an id that follows from both."""
        ids = {name: getattr(scope, name) for name in SCOPE_FIELDS}
        digest = hashlib.sha256(orjson.dumps(list(ids.values()))).hexdigest()[:_DIGEST_CHARACTERS]
        return replace(self, command_id=f"{self.command_id}/{digest}", scope_ids=ids)


def build_command(draft: CommandDraft) -> Command:
    """Make a command of `draft`. Raises `InvalidCommandError` that names the field at fault and the remedy."""
    document = {
        "command_id": draft.command_id,
        "scope": exact_scope(draft.scope_ids).model_dump(),
        "issued_at": draft.issued_at,
        "order": dict(draft.payload),
        "actor": draft.actor,
    }
    try:
        data = orjson.dumps(document, default=_json_default)
    except TypeError as error:
        raise InvalidCommandError(
            f"the command cannot be written as JSON ({error}): use text, numbers, lists, dicts"
        ) from error
    judged = parse_command(data, position="")
    if isinstance(judged, Refusal):
        raise InvalidCommandError(f"{judged.reason}: {_plain(judged.detail)}: nothing was published")
    return judged


def exact_scope(scope_ids: Mapping[str, str | None]) -> Scope:
    """The scope that `scope_ids` names. Raises `InvalidCommandError` for "*" or "**" and where it names nobody."""
    if any(value == wildcard for value in scope_ids.values() for wildcard in WILDCARDS):
        raise InvalidCommandError(
            "this command takes one exact scope: give each id or leave it out; '*' and '**' are not allowed"
        )
    if not names_owner(scope_ids):
        raise InvalidCommandError(_NOBODY)
    try:
        return Scope.model_validate(scope_ids)
    except ValidationError as error:
        raise InvalidCommandError(f"the scope is not valid: {describe_faults(error)}") from error


def names_owner(arguments: Mapping[str, object]) -> bool:
    """Whether a user or an agent is given: a scope has one of them at least."""
    return arguments.get("user_id") is not None or arguments.get("agent_id") is not None


def _plain(faults: str) -> str:
    """Faults without the field of the record that holds a command's own fields."""
    return re.sub(r"(^|; )order\.", r"\1", faults)


def _json_default(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
