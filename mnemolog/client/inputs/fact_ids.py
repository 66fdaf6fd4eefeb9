"""The ids of facts in a command: found in what a caller gives, and replaced by the whole ids."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any
from uuid import UUID

from mnemolog.client.inputs.checks import kind_of
from mnemolog.errors import InvalidCommandError
from mnemolog.schemas.command import Edit

FactId = UUID | str
"""The id of a fact, or its beginning: four characters or more that only one fact has."""
FactIds = FactId | Iterable[FactId]

_LISTS = ("fact_ids", "targets")


def whole_id(given: FactId) -> UUID | None:
    """The id, or None for the beginning of one."""
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        return None


def as_ids(name: str, given: object) -> list[FactId]:
    """One id or several as a list. Raises `InvalidCommandError` that names the argument."""
    if isinstance(given, UUID | str):
        return [given]
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidCommandError(f"{name} must be an id or a list of ids, not {kind_of(given)}")
    return [_as_id(f"{name}.{number}", one) for number, one in enumerate(given)]


def as_edits(given: object) -> list[dict[str, Any]]:
    """Edits as plain values. Raises `InvalidCommandError` that names the place."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidCommandError(f"edits must be a list of edits with fact_id and text, not {kind_of(given)}")
    edits = []
    for number, one in enumerate(given):
        if not isinstance(one, Edit | Mapping):
            raise InvalidCommandError(f"edits.{number} must be an edit with fact_id and text, not {kind_of(one)}")
        edits.append(_edit_fields(one.model_dump(exclude_unset=True) if isinstance(one, Edit) else one))
    return edits


def as_edit(fact_id: FactId, text: str, key: str | None, value: str | EllipsisType | None) -> dict[str, Any]:
    """One edit as plain values; `...` is a value that was not given."""
    return _edit_fields({"fact_id": fact_id, "text": text, "key": key, **({} if value is ... else {"value": value})})


def _edit_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as a command has them: there a value that is cleared is empty, and none is one that was not given."""
    cleared = {"value": ""} if "value" in given and given["value"] is None else {}
    return {**given, **cleared}


def ids_in(payload: Mapping[str, Any]) -> Sequence[FactId]:
    """The ids of facts that a payload has, in their order."""
    found: list[FactId] = []

    def note(one: FactId) -> FactId:
        found.append(one)
        return one

    with_ids(payload, note)
    return found


def with_ids(payload: Mapping[str, Any], change: Callable[[FactId], FactId]) -> dict[str, Any]:
    """The payload with each of these ids changed."""
    changed = dict(payload)
    if "fact_id" in changed:
        changed["fact_id"] = change(_as_id("fact_id", changed["fact_id"]))
    for name in _LISTS:
        if name in changed:
            changed[name] = [change(one) for one in changed[name]]
    if "edit" in changed:
        changed["edit"] = with_ids(changed["edit"], change)
    if "edits" in changed:
        changed["edits"] = [with_ids(one, change) for one in changed["edits"]]
    return changed


def _as_id(name: str, given: object) -> FactId:
    if not isinstance(given, UUID | str):
        raise InvalidCommandError(f"{name} must be the id of a fact, not {kind_of(given)}")
    return given
