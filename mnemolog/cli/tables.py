"""Tables and lists that fit into 80 columns and never cut an id.

Counts, times, ages and scopes as people read them.
"""

import dataclasses
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from mnemolog.cli.output import stdout, wrapped

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
    """How many ended with each status: `failed: 1, stored: 3`."""
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


_MAX_TEXT_CHARACTERS: Final = 500  # characters of one text: a raw store keeps messages of any length; JSON shows all
_MAX_ID_COLUMN: Final = 36  # characters of an id beside its text; a longer one is on a line of its own
_INDENT: Final = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing of a list: what the next command needs to name it, what it says, and details below that."""

    name: str
    text: str
    details: Sequence[object] = ()


def print_entries(title: str, entries: Iterable[Entry]) -> None:
    """Write a list: each name whole and in bold, its text beside it, its details dim below the text."""
    console = stdout()
    console.print(Text(title, style="bold"), soft_wrap=True)
    rows = list(entries)
    width = max((cell_len(row.name) for row in rows), default=0)
    beside = width <= _MAX_ID_COLUMN
    indent = _INDENT + (width + _INDENT if beside else _INDENT)
    for row in rows:
        name = Text(" " * _INDENT + row.name, style="bold")
        lines = wrapped(console, _shortened(row.text), indent=indent)
        for detail in filter(None, row.details):
            lines += wrapped(console, _shortened(detail), indent=indent, style="dim")
        if beside:
            name.pad_right(max(0, indent - name.cell_len))
            console.print(name.append_text(lines.pop(0)), soft_wrap=True)
        else:
            console.print(name, soft_wrap=True)
        for line in lines:
            line.pad_left(indent)
            console.print(line, soft_wrap=True)


def print_points(points: Iterable[str]) -> None:
    """Write paragraphs, each with an asterisk before it."""
    console = stdout()
    for point in points:
        first, *others = wrapped(console, point, indent=_INDENT)
        console.print(Text("* ").append_text(first), soft_wrap=True)
        for line in others:
            line.pad_left(_INDENT)
            console.print(line, soft_wrap=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table of short values, none of which is cut; None is an empty cell."""
    shown = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(_shortened(value)) for value in row))
    stdout().print(shown)


def _shortened(value: object) -> str:
    text = cell(value)
    return text if len(text) <= _MAX_TEXT_CHARACTERS else f"{text[: _MAX_TEXT_CHARACTERS - 3]}..."


if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient


class ShortIds:
    """Shows an id by its known short form, and whole where it has none."""

    def __init__(self, short: Mapping[UUID, str] | None = None) -> None:
        self._short = short or {}

    def __call__(self, fact_or_event: UUID | None) -> str:
        return "" if fact_or_event is None else self._short.get(fact_or_event, str(fact_or_event))


WHOLE_IDS: Final = ShortIds()


def ids_in(result: Any) -> Iterator[UUID]:
    """Every id of a fact or event in a result, however deep; in JSON columns they are text."""
    if isinstance(result, UUID):
        yield result
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        for field in dataclasses.fields(result):
            yield from ids_in(getattr(result, field.name))
    elif isinstance(result, Mapping):
        for name, value in result.items():
            yield from ids_in(UUID(value) if name == "fact_id" and isinstance(value, str) else value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from ids_in(value)


async def shown_ids(client: "AsyncMemoryClient", result: Any, *, whole: bool) -> ShortIds:
    """How the ids in a result are shown: each by the shortest beginning that is unique now, or `whole`."""
    found = () if whole else tuple(dict.fromkeys(ids_in(result)))
    return ShortIds(await client.admin.short_ids(found)) if found else WHOLE_IDS
