"""From a caller's arguments to a `Command`, validated as the pipeline will validate it, before it is published."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError

from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.scope_filter import WILDCARDS
from mnemolog.schemas.admission import Refusal, parse_command
from mnemolog.schemas.command import Command
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

FactId = UUID | str
FactIds = FactId | Sequence[FactId]

_DIGEST_CHARACTERS: Final = 16


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
        raise InvalidCommandError(f"{judged.reason}: {judged.detail}: nothing was published")
    return judged


def exact_scope(scope_ids: Mapping[str, str | None]) -> Scope:
    """The scope that `scope_ids` names. Raises `InvalidCommandError` for "*" or "**" and where it names nobody."""
    if not WILDCARDS.isdisjoint(scope_ids.values()):
        raise InvalidCommandError(
            "this command takes one exact scope: give each id or leave it out; '*' and '**' are not allowed"
        )
    if scope_ids["user_id"] is None and scope_ids["agent_id"] is None:
        raise InvalidCommandError("give a user_id or an agent_id")
    try:
        return Scope.model_validate(scope_ids)
    except ValidationError as error:
        faults = (f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors(include_url=False))
        raise InvalidCommandError(f"the scope is not valid: {'; '.join(faults)}") from error


def as_list(ids: FactIds) -> list[FactId]:
    """One id or several as a list."""
    return [ids] if isinstance(ids, UUID | str) else list(ids)


def _json_default(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
