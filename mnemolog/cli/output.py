"""What commands write: JSON on request, else tables; data on stdout, everything else on stderr."""

import dataclasses
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from rich import markup
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH = 160  # of output that goes to no terminal, where rich would take 80
_MAX_CELL_CHARACTERS = 500  # characters of a cell: a raw store keeps messages of any length; JSON shows all of them


def stdout() -> Console:
    return _console(stderr=False)


def stderr() -> Console:
    return _console(stderr=True)


def print_json(document: object) -> None:
    """Write one JSON document on one line."""
    # Not through rich, which would wrap it.
    print(orjson.dumps(document, default=_json_default, option=orjson.OPT_NON_STR_KEYS).decode(), flush=True)  # noqa: T201


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table; None is an empty cell."""
    shown = Table(*columns, title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        shown.add_row(*(value if isinstance(value, Text) else _truncated(value) for value in row))
    stdout().print(shown, markup=False)


def stacked(first: object, *below: object) -> Text:
    """A cell of several lines, the first one bright: so that tables fit into 80 columns."""
    return Text("\n").join([Text(_truncated(first)), *(Text(_truncated(one), style="dim") for one in below)])


def cell(value: object) -> str:
    """A value as people read it: times to the minute in UTC, fractions to two places."""
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
        case timedelta():
            return f"{value.days} days" if value.days else str(value)
        case float():
            return f"{value:.2f}"
        case _:
            return str(value)


def _truncated(value: object) -> str:
    text = without_control_characters(cell(value))
    return text if len(text) <= _MAX_CELL_CHARACTERS else f"{text[: _MAX_CELL_CHARACTERS - 1]}…"


def program_name() -> str:
    """How this program is typed here: by its name where the shell finds it, else by its path."""
    if shutil.which("mnemolog"):
        return "mnemolog"
    own = Path(sys.executable).with_name("mnemolog")
    here = Path.cwd()
    return f"./{own.relative_to(here)}" if own.is_relative_to(here) else str(own)


def without_control_characters(text: str) -> str:
    """Text of users without control sequences, which a terminal would obey."""
    return "".join(sign for sign in text if sign.isprintable() or sign == "\n")


def escape(text: str) -> str:
    """The same where rich reads markup: it is shown, not taken for markup."""
    return markup.escape(without_control_characters(text))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDTH)


def _json_default(value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Path | timedelta):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
