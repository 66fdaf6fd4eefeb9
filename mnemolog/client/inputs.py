"""Checks and conversions of arguments that callers give to the client: each fault gets its own sentence."""

import difflib
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Final, Literal, TypedDict, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from mnemolog.errors import InvalidCommandError, UnknownArgumentError
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.ids import first_id
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ScopeFilter
from mnemolog.schemas.errors import InvalidArgumentError
from mnemolog.schemas.filters import EVERYTHING, Filter, parse_filter
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.schemas.turn import Overrides

When = datetime | date | str
"""A time: a datetime with a zone, or such a time as text (2026-01-31T09:30:00+01:00). A day begins at 00:00 UTC."""
Wait = bool | float
"""Seconds to wait for the end; True is 30, False and 0 do not wait."""
DEFAULT_WAIT_SECONDS: Final = 30.0

ErrorType = type[InvalidArgumentError]
Check = Callable[[str, Any, ErrorType], Any]
"""Gives an argument back as the method takes it, or raises an error of this type that names it."""

_NAMES: Final = {"str": "text", "NoneType": "None", "bool": "True or False", "dict": "a dict", "list": "a list"}


def argument_hints(method: Callable[..., object]) -> dict[str, Any]:
    """The annotations of a method's arguments, those of its bundle (`**scope: Unpack[ScopeArgs]`) among them."""
    hints: dict[str, Any] = {}
    _, *parameters = inspect.signature(method).parameters.values()  # `self` is none
    for one in parameters:
        bundled = one.kind is one.VAR_KEYWORD
        hints |= get_type_hints(*get_args(one.annotation)) if bundled else {one.name: one.annotation}
    return hints


def hint_checks(hints: Mapping[str, Any]) -> Mapping[str, Check]:
    """The checks of arguments with these annotations, of those that have one."""
    found = {name: check_seconds if name.endswith("timeout") else _check_of(hint) for name, hint in hints.items()}
    return MappingProxyType({name: check for name, check in found.items() if check})


def check_time(name: str, value: object, error: ErrorType) -> datetime:
    """A time with its zone. A time without one is refused: it would be another instant on another machine."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = date.fromisoformat(text)
        except ValueError:
            try:
                value = datetime.fromisoformat(text)
            except ValueError as fault:
                advice = "write 2026-01-31 or 2026-01-31T09:30:00+01:00"
                raise error(f"{name} is not a time ({value!r:.60}): {advice}") from fault
    if isinstance(value, datetime):
        if value.tzinfo is None or value.utcoffset() is None:
            raise error(
                f"{name} has no zone and needs one: use datetime.now(UTC), add .replace(tzinfo=...), or write "
                f"{value.isoformat()}+00:00"
            )
        return value
    if isinstance(value, date):
        return datetime.combine(value, time_of_day(), UTC)
    raise error(
        f"{name} must be a datetime with a zone, or a text such as 2026-01-31 or 2026-01-31T09:30:00+01:00, "
        f"not {kind_of(value)}"
    )


def in_utc(time: datetime) -> datetime:
    """A time that a person typed: in UTC where it names no zone."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def check_wait(name: str, value: object, error: ErrorType) -> float:
    if value is True:
        return DEFAULT_WAIT_SECONDS
    return check_seconds(name, value or 0.0, error)


def check_seconds(name: str, value: object, error: ErrorType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise error(f"{name} must be a number of seconds, not {kind_of(value)}")
    if not (value >= 0 and math.isfinite(value)):
        raise error(f"{name} is {value}: give the seconds, 0 or more")
    return float(value)


def check_text(name: str, value: object, error: ErrorType) -> str:
    if not isinstance(value, str):
        raise error(f"{name} must be text, not {kind_of(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise error(
            f"{name}: character {fault.start} is an unpaired surrogate (invalid UTF-8): give text in UTF-8"
        ) from fault
    return value


def check_id(name: str, value: object, error: ErrorType) -> UUID | str:
    """An id, or the beginning of one."""
    if not isinstance(value, UUID | str):
        raise error(f"{name} must be an id, not {kind_of(value)}")
    try:
        first_id(value, name)
    except QueryError as fault:
        raise error(str(fault)) from fault
    return value


def kind_of(value: object) -> str:
    """What a value is, in words: the value itself may be what a user said."""
    kind = type(value).__name__
    return _NAMES.get(kind, kind)


def _check_of(hint: Any) -> Check | None:
    for plain, check in _CHECKS:
        if hint == plain:
            return check
        if hint == plain | None:
            return lambda name, value, error: None if value is None else check(name, value, error)
    if get_origin(hint) is not Literal:
        return None
    words = get_args(hint)

    def check_word(name: str, value: object, error: ErrorType) -> object:
        if check_text(name, value, error) not in words:
            raise error(f"{name} is {value!r:.60}: choose one of {', '.join(words)}")
        return value

    return check_word


def _check_kind(kind: type | UnionType, words: str) -> Check:
    """The check that a value is of a kind; True and False are no numbers."""

    def check(name: str, value: object, error: ErrorType) -> object:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise error(f"{name} must be {words}, not {kind_of(value)}")
        return value

    return check


_CHECKS: Final[tuple[tuple[Any, Check], ...]] = (
    (When, check_time),
    (Wait, check_wait),
    (UUID | str, check_id),
    (str, check_text),
    (bool, _check_kind(bool, "True or False")),
    (int, _check_kind(int, "a whole number")),
    (float, _check_kind(int | float, "a number")),
)


class ScopeArgs(TypedDict, total=False):
    """Whose memory: an id that is not given is not set; where a method says so, "*" is any value, "**" also none."""

    tenant: str | None
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None


class TurnArgs(ScopeArgs, total=False):
    """What a turn may say besides its messages.

    `infer=False` stores the user's messages as they are, without a model. `occurred_at` is now unless given; a time has
    a zone, and may be a text (2026-01-31T09:30:00+01:00; 2026-01-31 begins at 00:00 UTC). `speaker` is the name of the
    user. `valid_until` ends the facts of the turn. `recalled` is memory that was in the prompt: context, never
    evidence. `immutable` keeps the facts of the turn from being ended, merged or changed by anything but a human's
    command (`correct`, `delete`, `confirm`, `resolve`, `undo`). `overrides` hold for this turn only (`Overrides` names
    them). An own `turn_id` must be new for the user over all agents, apps and runs: the first turn of an id counts.
    """

    infer: bool
    occurred_at: When | None
    metadata: Mapping[str, Any] | None
    turn_id: str | None
    speaker: str | None
    valid_until: When | None
    recalled: Sequence[str]
    immutable: bool
    overrides: Overrides | Mapping[str, Any] | None


class BoundArgs(ScopeArgs, total=False):
    """What a bound client can have: a scope, and the `actor`, free text that says who sends its commands."""

    actor: str | None


class CommandArgs(BoundArgs, total=False):
    """Whose memory a command is about, and who sends it.

    An own `command_id` must be new for the user, among turns too; the same command under the same id is carried out
    once.
    """

    command_id: str | None


_SYNONYMS: Final = {
    "top_k": "limit",
    "k": "limit",
    "max_results": "limit",
    "session_id": "run_id",
    "thread_id": "run_id",
    "timestamp": "occurred_at",
    "created_at": "occurred_at",
    "memory_id": "fact_id",
    "id": "fact_id",
}
"""What other memory layers call an argument."""
NOBODY: Final = "give a user_id or an agent_id"
WHOLE_TENANT: Final[ScopeArgs] = {"user_id": "**", "agent_id": "**", "app_id": "**", "run_id": "**"}


def scope_ids(arguments: Mapping[str, object]) -> dict[str, Any]:
    """The five ids among `arguments`, None where one is not given."""
    return {name: arguments.get(name) for name in SCOPE_FIELDS}


def names_owner(arguments: Mapping[str, object]) -> bool:
    """Whether a user or an agent is given: a scope has one of them at least."""
    return arguments.get("user_id") is not None or arguments.get("agent_id") is not None


def scope_filter(scope: ScopeArgs) -> ScopeFilter:
    """Exactly the ids that are named."""
    return ScopeFilter(**scope_ids(scope))


def wide_filter(ids: Mapping[str, object]) -> ScopeFilter:
    """The ids that are named; the others may be any."""
    return ScopeFilter(**{name: ANY_OR_NONE if value is None else value for name, value in scope_ids(ids).items()})


def scope_of(scope: ScopeArgs, wanted: Filter) -> ScopeFilter:
    """Whose facts: of the ids that are named, or where none is, of the filter."""
    ids = scope_ids(scope)
    tenant = ids.pop("tenant")
    if wanted != EVERYTHING and all(value is None for value in ids.values()):
        return ScopeFilter.of_filter(tenant, wanted)
    return scope_filter(scope)


def scope_and_filter(scope: ScopeArgs, filters: Mapping[str, Any] | None) -> tuple[ScopeFilter, Filter]:
    """Whose facts and which: a filter narrows the scope that is named. Without one it says itself whose they are."""
    wanted = parse_filter({} if filters is None else filters)
    return scope_of(scope, wanted), wanted


def refuse_positional(given: Sequence[object], known: Iterable[str], method: str) -> None:
    """Raise `UnknownArgumentError` where a method that takes keywords alone is given anything else."""
    if given:
        raise UnknownArgumentError(f"{method}() takes its arguments by name: {', '.join(sorted(known))}")


def refuse_unknown(given: Iterable[str], known: Collection[str], method: str) -> None:
    """Raise `UnknownArgumentError` for a keyword that a method does not have: a TypedDict lets any through."""
    for name in given:
        if name not in known:
            near = [_SYNONYMS[name]] if _SYNONYMS.get(name) in known else difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(known))}"
            raise UnknownArgumentError(f"{method}() has no argument {name!r}: {advice}")


_MAX_PATH: Final = 4096
"""Characters of the longest path that a system takes."""


def path_of(file: str | PathLike[str], error: ErrorType) -> Path:
    """The path that is named. Raises `error` for what no file can be called."""
    name = check_text("file", fspath(file), error)
    if not Path(name).name or "\x00" in name or len(name) > _MAX_PATH:
        raise error(f"file is {name[:80]!r}: give the name of a file")
    return Path(name)


def check_file(file: object, method: str, error: ErrorType) -> None:
    """Raise `error` for what is no open file that has `method`."""
    if not callable(getattr(file, method, None)):
        raise error(f"file must be the name of a file, or a file that is open in binary mode, not {kind_of(file)}")


FactId = UUID | str
"""The id of a fact, or its beginning: four characters or more that only one fact has."""
FactIds = FactId | Iterable[FactId]


def whole_id(given: object) -> UUID | None:
    """The id, or None for what is none, such as the beginning of one."""
    try:
        return given if isinstance(given, UUID) else UUID(cast("str", given))
    except (ValueError, AttributeError, TypeError):
        return None


def as_ids(name: str, given: object) -> list[FactId]:
    """One id or several as a list. Raises `InvalidCommandError` that names the argument."""
    if isinstance(given, UUID | str):
        return [given]
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidCommandError(f"{name} must be an id or a list of ids, not {kind_of(given)}")
    return [as_id(f"{name}.{number}", one) for number, one in enumerate(given)]


def as_id(name: str, given: object) -> FactId:
    if not isinstance(given, UUID | str):
        raise InvalidCommandError(f"{name} must be the id of a fact, not {kind_of(given)}")
    return given
