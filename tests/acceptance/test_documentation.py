"""README and how-tos as they stand: what they run works and prints what they show."""

import dataclasses
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.support.databases import server_folder
from tests.support.harnesses.command_line import CommandLine, turn_json
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


TOLD: Mapping[str, Sequence[str]] = {
    "README": ["I live in Zurich."],
    "entities": [
        "My wife is called Ana. My sister is called Anna. My aunt is called Annie.",
        "Ana's dog is called Rex.",
        "My brother is called Tom.",
    ],
}
"""What is told before the commands of a page that tells nothing itself."""
NOT_RUN: Mapping[str, str] = {
    "mnemolog up": "the fixture runs it; tests/contract/test_model_guides.py tries the variables of the guides",
    "kafka.example": "other servers; own-servers.md shows what they need",
    "MNEMOLOG_KAFKA_SECURITY": "a broker with accounts: tests/integration/streams/kafka has one",
    "docker compose": "there is no Docker; tests/unit/repository/test_pages.py reads these commands",
    "127.0.0.1": "servers of Docker Compose",
    "pg_dump": "tests/integration/projections/db/test_backup.py runs these",
    "kcat -P": "test_other_clients runs it",
    "make ": "tests of commands of the Makefile take minutes",
    "pip ": "tests/acceptance/test_package.py installs the package",
}
"""Blocks of commands with these words are not run here, for the reason beside them."""
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if page.stem != "frameworks"  # `make adapters` runs that page
    and re.search("```(bash|python)", page.read_text(encoding="utf-8"))
]
BLOCK = re.compile(r"^ *```(bash|python)\n(.*?)^ *```(?:\n\n```text\n(.*?)```)?", re.DOTALL | re.MULTILINE)


def test_the_pages_have_examples() -> None:
    assert {page.stem for page in PAGES} >= {"publish", "query", "delete-a-user", "tune-search", *TOLD}
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [words for words in NOT_RUN if words not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_it_says(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {**shell.settings, "TENANT": f"page-{page.stem}"}
    for name, value in settings.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    own = dataclasses.replace(shell, folder=tmp_path, settings=settings)
    text = page.read_text(encoding="utf-8")
    for document in re.findall(r"```json\n(.*?)```", text, re.DOTALL):
        for name in ("instructions.json", "alice.json"):
            (tmp_path / name).write_text(document)
    (tmp_path / "turns.jsonl").write_text(turn_json("t1", "I like tea."))
    for told in TOLD.get(page.stem, ()):
        assert own.run("add", told, "--user", "alice", "--speaker", "Alice", "--wait").code == 0
    names: dict[str, object] = {}
    for language, code, expected in BLOCK.findall(text):
        if language == "bash":
            run_commands(own, code)
        elif page.stem not in TOLD:
            printed = StringIO()
            with redirect_stdout(printed):
                exec(code, names)  # noqa: S102 - the page's own code
            assert printed.getvalue() == expected, code


def run_commands(shell: CommandLine, block: str) -> None:
    """The commands of a block, one after another, if it can run here; each has to succeed."""
    if any(words in block for words in NOT_RUN):
        return
    settings = dict(shell.settings)
    for line in block.replace("\\\n", " ").splitlines():
        command, *arguments = shlex.split(line, comments=True)
        if command == "export":
            name, _, value = arguments[0].partition("=")
            settings[name.removeprefix("MNEMOLOG_")] = value
            arguments = ["settings"]
        else:
            assert command == "mnemolog", line
        done = dataclasses.replace(shell, settings=settings).run(*with_ids(shell, arguments))
        assert done.code == 0, (line, done)


def with_ids(shell: CommandLine, arguments: Sequence[str]) -> list[str]:
    """With ids of Alice's last fact, of its turn, and of the last decision about Tom in place of those of the page."""
    ids: dict[str, str] = {}
    if {"3f2a1b4c", "FACT", "TURN"} & set(arguments):
        fact = shell.json("facts", "--user", "alice")[-1]
        ids = {"3f2a1b4c": fact["fact_id"], "FACT": fact["fact_id"], "TURN": fact["source_id"]}
    if "EVENT" in arguments:
        ids = {"EVENT": shell.json("entity", "Tom from work", "--user", "alice")["history"][-1]["event_id"]}
    return [ids.get(argument, argument) for argument in arguments]
