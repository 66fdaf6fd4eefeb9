"""Tables and lists of entries that fit into 80 columns and never cut an id."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from mnemolog.cli.output import stdout, without_control_characters, wrapped
from mnemolog.cli.results.words import cell

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
    text = without_control_characters(cell(value))
    return text if len(text) <= _MAX_TEXT_CHARACTERS else f"{text[: _MAX_TEXT_CHARACTERS - 3]}..."
