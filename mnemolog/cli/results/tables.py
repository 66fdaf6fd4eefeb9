"""Tables and lists of entries that fit into 80 columns and never cut an id."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mnemolog.cli.output import print_line, stdout, without_control_characters
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
    stdout().print(Text(title, style="bold"))
    rows = list(entries)
    if not rows:
        return
    width = max(len(row.name) for row in rows)
    if width > _MAX_ID_COLUMN:
        for row in rows:
            print_line(f"  {row.name}")
            stdout().print(Padding(_stacked(row.text, *row.details), (0, 0, 0, 2 * _INDENT)))
        return
    grid = Table.grid(padding=(0, _INDENT))
    grid.add_column(no_wrap=True, min_width=width, style="bold")
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(Text(row.name), _stacked(row.text, *row.details))
    stdout().print(Padding(grid, (0, 0, 0, _INDENT)))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table of short values, none of which is cut; None is an empty cell."""
    shown = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(_shortened(value)) for value in row))
    stdout().print(shown)


def _stacked(first: object, *below: object) -> Text:
    lines = [Text(_shortened(first)), *(Text(_shortened(one), style="dim") for one in below if one)]
    return Text("\n", overflow="fold").join(lines)


def _shortened(value: object) -> str:
    text = without_control_characters(cell(value))
    return text if len(text) <= _MAX_TEXT_CHARACTERS else f"{text[: _MAX_TEXT_CHARACTERS - 3]}..."
