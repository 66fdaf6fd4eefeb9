"""What commands write: data on stdout, as tables or JSON; everything else on stderr."""

import dataclasses
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson
from rich import markup
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

R = TypeVar("R")
_WIDTH = 160  # of output that goes to no terminal, where rich would take 80
_MAX_CELL_CHARACTERS = 500  # characters of a cell: a raw store keeps messages of any length; JSON shows all of them


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDTH)


stdout = partial(_console, stderr=False)
stderr = partial(_console, stderr=True)


def print_json(document: object) -> None:
    """Write one JSON document on one line."""
    # Not through rich, which would wrap it.
    print(orjson.dumps(document, default=_json_default, option=orjson.OPT_NON_STR_KEYS).decode(), flush=True)  # noqa: T201


def print_result(result: R, show: Callable[[R], object], *, as_json: bool) -> None:
    """Write a result as JSON, or as `show` does for people."""
    print_json(result) if as_json else show(result)


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
    """The same for rich: markup in it is shown as it is."""
    return markup.escape(without_control_characters(text))


def _json_default(value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Path | timedelta):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


class ProgressBars:
    """Progress bars on stderr, one for each step; gone after `close`."""

    def __init__(self) -> None:
        console = stderr()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(step, total=total)
        self._bars.update(self._tasks[step], completed=done, total=total)

    def close(self) -> None:
        self._bars.stop()

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
