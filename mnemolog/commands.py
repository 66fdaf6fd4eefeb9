"""From what an application orders to a `Command`: judged as the pipeline will judge it, before it is published."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError

from mnemolog.errors import InvalidOrderError
from mnemolog.projections.scoping import ANY
from mnemolog.schemas.admission import Refusal, admit_command
from mnemolog.schemas.command import Command
from mnemolog.schemas.scope import DIMENSIONS, Scope

FactId = UUID | str
FactIds = FactId | Sequence[FactId]
Place = Mapping[str, str | None]
"""The dimensions of a scope as a caller words them, each with its value or None."""

_DIGEST: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A command before it is one: `order` holds the fields of an order, its kind among them."""

    command_id: str
    place: Place
    issued_at: datetime
    order: Mapping[str, Any]
    actor: str | None = None

    @property
    def is_wide(self) -> bool:
        return ANY in self.place.values()

    def within(self, scope: Scope) -> "Draft":
        """The same for one of the scopes that a wide place stands for, under an id that follows from both."""
        place = {name: getattr(scope, name) for name in DIMENSIONS}
        digest = hashlib.sha256(orjson.dumps(list(place.values()))).hexdigest()[:_DIGEST]
        return replace(self, command_id=f"{self.command_id}/{digest}", place=place)


def composed(draft: Draft) -> Command:
    """Make a command of `draft`. Raises `InvalidOrderError` that names the field at fault and the remedy."""
    document = {
        "command_id": draft.command_id,
        "scope": exact_scope(draft.place).model_dump(),
        "issued_at": draft.issued_at,
        "order": dict(draft.order),
        "actor": draft.actor,
    }
    try:
        data = orjson.dumps(document, default=_plain)
    except TypeError as error:
        raise InvalidOrderError(f"the order cannot be written as JSON ({error}): keep to plain values") from error
    judged = admit_command(data, position="")
    if isinstance(judged, Refusal):
        raise InvalidOrderError(f"{judged.reason}: {judged.detail}: nothing was published")
    return judged


def exact_scope(place: Place) -> Scope:
    """The one scope that `place` names. Raises `InvalidOrderError` where it names none, or any."""
    if ANY in place.values():
        raise InvalidOrderError("this is for one exact scope: name each id, or leave it out, instead of '*'")
    if place["user_id"] is None and place["agent_id"] is None:
        raise InvalidOrderError("name the user_id or the agent_id whose memory it is about")
    try:
        return Scope.model_validate(place)
    except ValidationError as error:
        faults = (f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors(include_url=False))
        raise InvalidOrderError(f"the scope is none: {'; '.join(faults)}") from error


def listed(given: FactIds) -> list[FactId]:
    """One id or several as a list."""
    return [given] if isinstance(given, UUID | str) else list(given)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no plain value")
