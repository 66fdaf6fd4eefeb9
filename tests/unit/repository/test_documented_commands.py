"""Commands and options that the pages name exist."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from mnemolog.cli.app import app
from tests.support.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"(?<![\w.-])mnemolog((?: [a-z]+(?:-[a-z]+)*)+)((?: +(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s`|;&()]+))*)")
OPTION = re.compile(r"(?<!\S)--?[a-zA-Z][\w-]*")


@cache
def all_commands() -> Any:
    return typer.main.get_command(app)


def named_commands(text: str) -> Iterator[tuple[str, Any, list[str]]]:
    """Each command that a text names, with its options: `mnemolog entity merge Annie --into Ana`."""
    for found in COMMAND.finditer(text.replace("\\\n", " ")):
        command = whole = all_commands()
        for word in found[1].split():
            command = getattr(command, "commands", {}).get(word, command)
        if command is not whole:
            yield found[0], command, OPTION.findall(re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", "", found[0]))


def known_options(command: Any) -> set[str]:
    """Those of a command, and of its sub-commands: `mnemolog entity Ana` has no word for what it does."""
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own.union({"--help"}, *map(known_options, getattr(command, "commands", {}).values()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_of_named_commands_exist(page: Path) -> None:
    wrong = []
    for words, command, options in named_commands(page.read_text()):
        wrong += [f"{words}: {option}" for option in options if option not in known_options(command)]
    assert not wrong


def test_a_wrong_option_is_found() -> None:
    (named,) = named_commands("`mnemolog undo --prompt x --user alice`")
    assert (named[1].name, named[2]) == ("undo", ["--prompt", "--user"])
