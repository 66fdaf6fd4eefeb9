"""Counts, times, ages and scopes as people read them."""

import os
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

_UNITS: Final = (
    ("year", timedelta(days=365)),
    ("month", timedelta(days=30)),
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `no facts`, `1 fact`, `2 facts`."""
    return f"{number or 'no'} {one if number == 1 else many or f'{one}s'}"


def ends_by_status(ends: Mapping[str, int]) -> str:
    """How many ended with each status: `facts: 3, failed: 1`."""
    return ", ".join(f"{status}: {number}" for status, number in sorted(ends.items())) or "none"


def moment(time: datetime | None) -> str:
    """A time to the minute, in UTC and saying so; empty for None."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if time else ""


def age(span: timedelta) -> str:
    """A span in its largest whole unit: `3 minutes`, `less than a second`."""
    for unit, length in _UNITS:
        if span >= length:
            return counted(span // length, unit)
    return "less than a second"


def ago(time: datetime, now: datetime) -> str:
    """How long ago `time` was, or in how long it will be."""
    return f"{age(now - time)} ago" if time <= now else f"in {age(time - now)}"


def cell(value: object) -> str:
    """Any value as people read it: times in UTC, spans in words, fractions to two places."""
    match value:
        case None:
            return ""
        case datetime():
            return moment(value)
        case timedelta():
            return age(value)
        case float():
            return f"{value:.2f}"
        case _:
            return str(value)


def age_of_milliseconds(milliseconds: float) -> str:
    """A short span: `120 ms`, `1.2 s`."""
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"  # noqa: PLR2004 - of 1 s


def owner_of(owned: object) -> str:
    """Whose a fact or a turn is, in the words of the options that name a scope."""
    return ", ".join(f"{name} {value}" for name, value in _scope_parts(owned, "user", "agent", "app", "run"))


def scope_options(owned: object) -> str:
    """The options that name the scope of a fact, as a shell takes them."""
    return _options(_scope_parts(owned, "user", "agent", "app", "run", "tenant"))


def turn_options(turn: object) -> str:
    """The options that tell a turn from others of its id, as a shell takes them; with a space before them."""
    options = _options(_scope_parts(turn, "user", "tenant"))
    return f" {options}" if options else ""


def _options(parts: Iterator[tuple[str, str]]) -> str:
    default = os.environ.get("MNEMOLOG_TENANT", "default")
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in parts if (name, value) != ("tenant", default))


def _scope_parts(owned: object, *names: str) -> Iterator[tuple[str, str]]:
    for name in names:
        if value := getattr(owned, "tenant" if name == "tenant" else f"{name}_id", None):
            yield name, value
