"""Checks and conversions of what callers give, by the annotations of the methods: our own sentence for each fault."""

import inspect
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from types import MappingProxyType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints
from uuid import UUID

from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.ids import first_id
from mnemolog.schemas.errors import InvalidArgumentError

When = datetime | date | str
"""A time: a datetime with a zone, or such a time as text (2026-01-31T09:30:00+01:00). A day begins at 00:00 UTC."""
Wait = bool | float
"""Seconds to wait for the end; True is 30, False and 0 do not wait."""
DEFAULT_WAIT_SECONDS: Final = 30.0

ErrorType = type[InvalidArgumentError]
Check = Callable[[str, Any, ErrorType], Any]
"""Gives an argument back as the method takes it, or raises an error of this type that names it."""

_NAMES: Final = {"str": "text", "NoneType": "None", "bool": "True or False", "dict": "a dict", "list": "a list"}


def checks_of(method: Callable[..., object]) -> Mapping[str, Check]:
    """The checks of the arguments of a method, those of its bundle (`**scope: Unpack[ScopeArgs]`) among them."""
    hints = get_type_hints(method)
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            (bundle,) = get_args(parameter.annotation)
            hints |= get_type_hints(bundle)
    hints.pop("return", None)
    return hint_checks(hints)


def hint_checks(hints: Mapping[str, Any]) -> Mapping[str, Check]:
    """The checks of arguments with these annotations, of those that have one."""
    found = {name: check_seconds if name.endswith("timeout") else _check_of(hint) for name, hint in hints.items()}
    return MappingProxyType({name: check for name, check in found.items() if check})


def check_time(name: str, value: object, error: ErrorType) -> datetime:
    """A time with its zone. A time without one is refused: it would be another instant on another machine."""
    if isinstance(value, str):
        value = _parsed_time(name, value, error)
    if isinstance(value, datetime):
        if value.tzinfo is None or value.utcoffset() is None:
            raise error(
                f"{name} has no zone and needs one: use datetime.now(UTC), add .replace(tzinfo=...), or write "
                f"{value.isoformat()}+00:00"
            )
        return value
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise error(
        f"{name} must be a datetime with a zone, or a text such as 2026-01-31 or 2026-01-31T09:30:00+01:00, "
        f"not {kind_of(value)}"
    )


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


def check_truth(name: str, value: object, error: ErrorType) -> bool:
    if not isinstance(value, bool):
        raise error(f"{name} must be True or False, not {kind_of(value)}")
    return value


def check_whole_number(name: str, value: object, error: ErrorType) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise error(f"{name} must be a whole number, not {kind_of(value)}")
    return value


def check_number(name: str, value: object, error: ErrorType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise error(f"{name} must be a number, not {kind_of(value)}")
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


def _parsed_time(name: str, text: str, error: ErrorType) -> datetime | date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as fault:
        shown = f"{text!r:.60}"
        raise error(f"{name} is not a time ({shown}): write 2026-01-31 or 2026-01-31T09:30:00+01:00") from fault


def _check_of(hint: Any) -> Check | None:
    for plain, check in _CHECKS:
        if hint == plain:
            return check
        if hint == plain | None:
            return _or_none(check)
    if get_origin(hint) is Literal:
        return _one_of(get_args(hint))
    return None


def _or_none(check: Check) -> Check:
    return lambda name, value, error: None if value is None else check(name, value, error)


def _one_of(words: tuple[str, ...]) -> Check:
    def check(name: str, value: object, error: ErrorType) -> object:
        if check_text(name, value, error) not in words:
            raise error(f"{name} is {value!r:.60}: choose one of {', '.join(words)}")
        return value

    return check


_CHECKS: Final[tuple[tuple[Any, Check], ...]] = (
    (When, check_time),
    (Wait, check_wait),
    (UUID | str, check_id),
    (bool, check_truth),
    (str, check_text),
    (int, check_whole_number),
    (float, check_number),
)
