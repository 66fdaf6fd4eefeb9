"""What commands write: data on stdout, as text or JSON; everything else on stderr."""

import dataclasses
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

R = TypeVar("R")
_WIDTH: Final = 160  # of output that goes to no terminal, where rich would take 80
NOTHING_CHANGED: Final = "nothing was changed"
"""What a command that was interrupted in time has left behind."""
_MIN_TEXT_WIDTH: Final = 20
_OBEYED: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys: all control characters but the line feed, and those that turn the direction of text."""
_SECRET: Final = re.compile(
    r"(?<=://)(?P<user>[^/?#\s]*?:)[^/?#\s]*(?P<at>@)"
    r"|(?P<name>\b\w*(?:password|passwd|secret|token|api[-_]?key)\s*=\s*)(?:'(?:\\.|[^'])*'|[^\s&']+)",
    re.IGNORECASE,
)
_PLAIN_LOCALES: Final = frozenset({"C", "POSIX"})


def prepare_streams() -> None:
    """Let stdout and stderr show a character that they cannot encode as its escape, instead of failing.

    Where the locale is C or POSIX by its variables, they are ASCII: Python takes UTF-8 there, the terminal may not.
    """
    # Python itself sets LC_CTYPE to C.UTF-8 where LANG is C.
    characters = os.environ.get("LC_CTYPE", "C.UTF-8")
    if everything := os.environ.get("LC_ALL"):
        is_plain = everything in _PLAIN_LOCALES
    else:
        is_plain = os.environ.get("LANG") in _PLAIN_LOCALES and characters in {*_PLAIN_LOCALES, "C.UTF-8"}
    encoding = "ascii" if is_plain and not {"PYTHONIOENCODING", "PYTHONUTF8"} & os.environ.keys() else None
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


class _Console(Console):
    """Whatever it prints, the terminal gets no control characters but its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            text = _OBEYED.sub("", segment.text.replace("\t", " "))
            yield segment if segment.control else segment._replace(text=text)


def _console(*, stderr: bool) -> Console:
    console = _Console(stderr=stderr, highlight=False, emoji=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return console
    return _Console(stderr=stderr, highlight=False, emoji=False, width=_WIDTH)


stdout = partial(_console, stderr=False)
stderr = partial(_console, stderr=True)


def print_json(document: object) -> None:
    """Write one JSON document on one line; in ASCII where the stream takes no UTF-8."""
    text = orjson.dumps(
        document, default=_json_default, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
    ).decode()
    text = _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    takes_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    # Not through rich, which would wrap it.
    print(text if takes_utf8 else json.dumps(orjson.loads(text)), flush=True)  # noqa: T201


def print_result(result: R, show: Callable[[R], object], *, as_json: bool) -> None:
    """Write a result as JSON, or as `show` does for people."""
    print_json(result) if as_json else show(result)


def print_text(text: str) -> None:
    """Write a sentence, wrapped at its words."""
    _print_wrapped(stdout(), text)


def print_line(text: str) -> None:
    """Write a line with an id or a command to copy: it is never wrapped, however narrow the terminal is."""
    stdout().print(text, markup=False, soft_wrap=True)


def print_note(text: str) -> None:
    """Write a hint to stderr, where it does not mix with data, wrapped at its words."""
    _print_wrapped(stderr(), text)


def print_labelled(label: str, text: str, *, style: str) -> None:
    """Write a label in `style` and its text to stderr, wrapped at its words."""
    console = stderr()
    first, *others = wrapped(console, f"{label} {text}")
    first.stylize(style, 0, len(label))
    for line in (first, *others):
        console.print(line, soft_wrap=True)


def wrapped(console: Console, text: str, *, indent: int = 0, style: str = "") -> list[Text]:
    """The lines of a text beside an indent, without spaces at their ends; a word longer than a line is broken."""
    lines = Text(text, style=style).wrap(console, max(console.width - indent, _MIN_TEXT_WIDTH), overflow="fold")
    for line in lines:
        line.rstrip()
    return list(lines)


def _print_wrapped(console: Console, text: str) -> None:
    for line in wrapped(console, text):
        console.print(line, soft_wrap=True)


def read_input(what: str) -> bytes:
    """All of stdin; at a terminal it first says that it waits for `what`, and how to end."""
    announce_input(what)
    try:
        return sys.stdin.buffer.read()
    except KeyboardInterrupt:
        print_note(f"stopped: {NOTHING_CHANGED}")
        raise


def announce_input(what: str) -> None:
    """At a terminal, say that stdin is read, and how to end it."""
    if sys.stdin.isatty():
        print_note(f"reading {what} from the terminal; Ctrl-D on an empty line ends it, Ctrl-C gives up")


def program_name() -> str:
    """How this program is typed here: by its name where the shell finds it, else by its path."""
    if shutil.which("mnemolog"):
        return "mnemolog"
    own = Path(sys.executable).with_name("mnemolog")
    here = Path.cwd()
    return f"./{own.relative_to(here)}" if own.is_relative_to(here) else str(own)


def without_password(address: str) -> str:
    """An address with passwords hidden: of a URL, of its parameters, of a connection string of Postgres."""
    return _SECRET.sub(lambda found: f"{found['user'] or found['name']}********{found['at'] or ''}", address)


def _json_default(value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Path | timedelta):
        return str(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


class _RateColumn(ProgressColumn):
    """How many items of the step are done in a second, lately."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.0f}/s")


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Progress bars on stderr, one for each step, with rate and time left: call it with step, done and total."""
    console = stderr()
    tasks: dict[str, TaskID] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        _RateColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bars:

        def show(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total, completed=done)
            bars.update(tasks[step], completed=done, total=total)

        yield show
