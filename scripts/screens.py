"""Writes what commands print at 80 columns, from a run on a stack of its own: docs/screens.md, tests/data/screens.txt.

    python -m scripts.screens

The page has what a reader wants to see; the file of test data has the rest. This starts `mnemolog up` in a temporary
folder and takes a minute or two. What differs from run to run (ports, times,
random ids) is replaced by values of the same length; `masked` hides what may differ from machine to machine as well.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.support.databases import server_folder
from tests.support.harnesses.command_line import EXECUTABLE, InProcessCommandLine

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "screens.md"
OTHERS: Final = ROOT / "tests" / "data" / "screens.txt"
TIMEOUT_SECONDS: Final = 300
SHOWN_DAY: Final = date(2026, 3, 9)
"""The day that stands for today on the page; it begins the week that stands for any interval."""
SHOWN_WEEK_END: Final = SHOWN_DAY + timedelta(days=6)
HOME: Final = "/home/alice"
BROKEN: Final = '{"turn_id": "t5", "scope": {"user_id": "alice"}, "messages": "I am cut o\n'

INTRO: Final = """\
# Screens

What commands print at 80 columns. This page is written by `make screens` from a run with the offline provider, and a
test compares it with what they print now. [The command line](cli.md) has the list of all commands;
`mnemolog demo --all` shows the rest.
"""


@dataclass(frozen=True, slots=True)
class Screen:
    """A command; names in braces are filled in, `stdin` is typed. Without a title it is not on the page."""

    title: str
    command: str
    stdin: str = ""


SCREENS: Final = (
    Screen("Tell something", 'add "I live in Zurich. I am allergic to nuts." {alice} --turn-id t1 --at {first} --wait'),
    Screen("Something changes", 'add "I moved from Zurich to Munich." {alice} --turn-id t2 --at {second} --wait'),
    Screen("", 'add "Thank you!" {alice} --turn-id t3 --at {second} --wait'),
    Screen("", "facts --user alice"),
    Screen("", "facts --user alice --all"),
    Screen("", 'search "Where does Alice live?" --user alice'),
    Screen("The profile", "profile --user alice"),
    Screen("Why a fact is known", "explain {fact}"),
    Screen("", "history {fact}"),
    Screen("Why a turn gave no fact", "why-not t3"),
    Screen("", "diff --since {first} --user alice"),
    Screen("Something that might end a known fact", 'add "I am not allergic to nuts." {alice} --turn-id t4 --wait'),
    Screen("What waits for a confirmation", "pending --user alice"),
    Screen("", "reject {held}"),
    Screen("", "undo --turn t2 --user alice"),
    Screen("A turn that cannot be read", "publish - --raw --wait", BROKEN),
    Screen("What failed", "failed"),
    Screen("", "dead-letters"),
    Screen("The stack", "status"),
    Screen("", "audit"),
)


def printed() -> dict[Path, str]:
    """The whole text of both files, from a run that is made now."""
    texts = {PAGE: [INTRO], OTHERS: [""]}
    with server_folder() as folder:
        for title, command, output in _screens(folder):
            typed = " \\\n    ".join(textwrap.wrap(f"$ mnemolog {command}", 77, break_on_hyphens=False))
            text = f"{typed}\n{output.rstrip()}\n"
            if title:
                texts[PAGE].append(f"## {title}\n\n```text\n{text}```\n")
            else:
                texts[OTHERS].append(text)
    return {path: "\n".join(parts).lstrip("\n") for path, parts in texts.items()}


def masked(text: str) -> str:
    """The page without what may differ from machine to machine.

    That are durations, fractions, which a model's arithmetic gives, the order of steps that run beside one another,
    spaces that line up what is beside something of another length, and records that a stage has finished and not yet
    committed.
    """
    text = re.sub(r"(?<=\S) {2,}", " ", text)
    text = re.sub(r"^( *[a-z]+ 1) \d$", r"\1 0", text, flags=re.MULTILINE)
    text = _STEPS.sub(lambda found: "".join(sorted(found[0].splitlines(keepends=True))), text)
    text = re.sub(r"\b(?:\d+ ms|\d+\.\d+ s)\b", "# s", text)
    return re.sub(r"\b\d\.\d+", lambda found: re.sub(r"\d", "#", found[0]), text)


def _screens(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each title, command and output, as they are shown."""
    today = datetime.now(UTC).date()
    named = {
        "alice": "--user alice --speaker Alice",
        "first": str(today - timedelta(days=7)),
        "second": str(today - timedelta(days=2)),
    }
    started, texts = "", []
    with _running_up(folder) as log:
        for screen in SCREENS:
            for name, turn_id in (("fact", "t2"), ("held", "t4")):
                if f"{{{name}}}" in screen.command:
                    (memory, *_) = json.loads(_run(folder, "status", turn_id, "--json"))["changes"]
                    named[name] = memory["fact_id"][:8]
            command = screen.command.format(**named)
            texts.append((screen.title, command, _run(folder, *shlex.split(command), stdin=screen.stdin)))
            started = started or log.read_text()
    demos = [("The demonstration", "demo", _run_demo(folder)), ("", "demo --all", _run_demo(folder, "--all"))]
    values = Placeholders(folder, today)
    for title, command, output in (("The stack started", "up", started), *texts, *demos):
        yield title, values.shown(command), values.shown(output)


@contextmanager
def _running_up(folder: Path) -> Iterator[Path]:
    """A running `up`: the file of what it prints."""
    log = folder / "up.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [EXECUTABLE, "up"], cwd=folder, env=_environ(), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not (folder / ".mnemolog" / "connection.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"`mnemolog up` did not start:\n{log.read_text()}")
            time.sleep(0.1)
        yield log
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT_SECONDS)
    finally:
        process.kill()
        process.wait()


def _run(folder: Path, *arguments: str, stdin: str = "") -> str:
    """What a command prints, on stdout and then on stderr; run in this process, which is quicker."""
    with patch.dict(os.environ, _environ(), clear=True):
        done = InProcessCommandLine(folder=folder, settings={"METRICS_PORT": "0"}).run(*arguments, stdin=stdin)
    return done.stdout + done.stderr


def _run_demo(folder: Path, *options: str) -> str:
    """What `demo` prints; it has to succeed, and to leave nothing in the folder where it is run."""
    (empty := folder / "demo").mkdir()
    done = subprocess.run(  # noqa: S603 - our own program
        [EXECUTABLE, "demo", *options],
        cwd=empty,
        env=_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    empty.rmdir()
    return done.stdout


def _environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MNEMOLOG_")}
    path = f"{EXECUTABLE.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    own = {"COLUMNS": "80", "PATH": path, "LANG": "C.UTF-8", "NO_COLOR": "1", "MNEMOLOG_METRICS_PORT": "0"}
    return {**kept, **own}


class Placeholders:
    """Puts in the place of what varies from run to run a value of the same length that does not."""

    def __init__(self, folder: Path, today: date) -> None:
        self._folder = folder
        self._today = today
        self._seen: dict[str, str] = {}

    def shown(self, text: str) -> str:
        text = "\n".join(line.rstrip() for line in text.splitlines())
        text = text.replace(str(self._folder.resolve()), HOME).replace(str(self._folder), HOME)
        text = text.replace(" with the same MNEMOLOG_ variables", "")  # the port of metrics is set here
        text = re.sub(r"(?<=mnemolog-demo-)\w+", "0a1b2c3d", text)
        text = re.sub(r"(?<=mnemolog:)[\w-]{20,}(?=@)", lambda found: "x" * len(found[0]), text)
        text = re.sub(r"\b(\d{4}-\d\d-\d\d)( \d\d:\d\d)?", self._time, text)
        text = re.sub(r"\(\d{4}-\d\d-\d\d( to\s+)\d{4}-\d\d-\d\d\)", rf"({SHOWN_DAY}\g<1>{SHOWN_WEEK_END})", text)
        text = re.sub(r"(?<=:)\d{4,5}\b(?!-)", partial(self._numbered, "1{:04}"), text)
        text = re.sub(rf"\b{_RANDOM_UUID}", partial(self._numbered, "0195785a-1c00-7000-8000-{:012x}"), text)
        text = re.sub(rf"(?<!-)\b{_DIGEST}\b(?!-)", partial(self._numbered, "{:012x}"), text)
        text = re.sub(r"(_turns|letters)/\d+/\d+\b", r"\1/0/0", text)  # a record without a key is in any partition
        text = re.sub(r"\b\d+ ms\b", "120 ms", re.sub(r"\b\d+\.\d s\b", "1.2 s", text))
        text = re.sub(r"(?<=process )\d+\b", "1234", text)
        return re.sub(r"\b(less than a second|\d+ (second|minute)s?)\b", "3 seconds", text)

    def _time(self, found: re.Match[str]) -> str:
        day = date.fromisoformat(found[1])
        if day >= self._today:
            return f"{SHOWN_DAY} 10:00" if found[2] else str(SHOWN_DAY)
        return f"{day + (SHOWN_DAY - self._today)}{found[2] or ''}"

    def _numbered(self, form: str, found: re.Match[str]) -> str:
        """The same value for the same text, another one for another."""
        return self._seen.setdefault(found[0], form.format(len(self._seen) + 1))


_STEPS: Final = re.compile(r"(^.*( \.\.\.|: \d\.\d s)\n)+", re.MULTILINE)
_RANDOM_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
_DIGEST: Final = "(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12}"


if __name__ == "__main__":
    for path, text in printed().items():
        path.write_text(text, encoding="utf-8")
