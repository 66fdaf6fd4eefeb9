"""README and how-tos as they stand: what they run works and prints what they show."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.support.databases import server_folder
from tests.support.harnesses.command_line import CommandLine
from tests.support.paths import ROOT
from tests.support.polling import eventually
from tests.support.programs import required_program

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]
README = (ROOT / "README.md").read_text()
PUBLISH = (ROOT / "docs/how-to/publish.md").read_text()
CHANGING = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? m?s\b"), "MS"),
    (re.compile(r"\b(score|similarity) \d\.\d+\b"), r"\1 FRACTION"),
)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A folder like a clone of the project, with `.venv`, where `up` runs."""
    with server_folder() as folder:
        (folder / ".venv").symlink_to(sys.prefix)
        with CommandLine(folder=folder).start("up") as up:
            up.ready_message()
            yield folder
            assert up.terminate() == 0, up.log.read_text()


def block(language: str, words: str, page: str = README) -> str:
    """The block of a page in this language that has these words."""
    blocks = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    (found,) = (code for code in blocks if words in code)
    return str(found)


def output(folder: Path, *command: str, stdin: str = "", **variables: str) -> str:
    """What a command prints in that folder after `source .venv/bin/activate`."""
    path = f"{folder}/.venv/bin{os.pathsep}{os.environ['PATH']}"
    return CommandLine(folder=folder).program(*command, stdin=stdin, **{"PATH": path, **variables})


def console_steps(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with what it prints."""
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, shown = re.split(r"(?<!\\)\n", step, maxsplit=1)  # a backslash continues the command
        yield command, shown


def comparable(text: str) -> list[str]:
    for changing, name in CHANGING:
        text = changing.sub(name, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def test_commands_print_what_is_shown(home: Path) -> None:
    steps = list(console_steps(block("console", "mnemolog add")))
    assert [command.split()[1] for command, _ in steps] == ["add", "search", "facts"]
    for command, shown in steps:
        assert comparable(output(home, "bash", "-euo", "pipefail", "-c", command)) == comparable(shown)


def test_python_prints_what_is_shown(home: Path) -> None:
    """After the commands."""
    assert output(home, sys.executable, "-", stdin=block("python", "MemoryClient")) == block("text", "Alice")


async def test_other_clients(home: Path) -> None:
    """After the commands: a turn is published by kcat, and read by SQL."""
    required_program("kcat")
    required_program("psql")
    connection = json.loads((home / ".mnemolog" / "connection.json").read_text())
    publish = ("bash", "-euo", "pipefail", "-c", block("bash", "kcat -P", PUBLISH))
    output(home, *publish, MNEMOLOG_KAFKA=connection["kafka"])
    query = block("sql", "FROM memory.facts")

    def table() -> str:
        return output(home, "psql", "--no-psqlrc", connection["postgres"], stdin=query)

    answer = await eventually(lambda: "Alice lives in Munich." in table() and table())
    assert "superseded" in str(answer)
    assert "fact_replaced" in str(answer)


def test_its_screens_fit_into_80_columns() -> None:
    screens = re.findall(r"```(?:console|text)\n(.*?)```", README, re.DOTALL)
    assert [line for screen in screens for line in screen.splitlines() if len(line) > 80] == []


pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
PAGES = [
    page
    for page in sorted((ROOT / "docs/how-to").glob("*.md"))
    if page.stem != "frameworks" and "```python" in page.read_text(encoding="utf-8")  # `make adapters` runs that page
]


def test_the_how_tos_have_examples() -> None:
    assert {page.stem for page in PAGES} >= {"publish", "query", "language-model", "delete-a-user", "tune-search"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_it_says(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in shell.settings.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    monkeypatch.setenv("MNEMOLOG_TENANT", f"page-{page.stem}")
    names: dict[str, object] = {}
    text = page.read_text(encoding="utf-8")
    for code, expected in re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL):
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)  # noqa: S102 - the page's own code
        assert printed.getvalue() == expected, code
