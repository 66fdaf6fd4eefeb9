"""The page docs/cli.md: what holds for all commands, and each command by theme with its help line and an example."""

import inspect
from collections.abc import Callable
from typing import Final

import typer

from mnemolog.cli.app import GROUPS, PANELS
from scripts.pages import item

INTRO: Final = """\
# Command line

This page is written by `make generate`; `mnemolog COMMAND --help` has all options. [Screens](screens.md) show what the
commands print at 80 columns.

* **Where it looks.** The stack of `mnemolog up` over `./.mnemolog`, or over `MNEMOLOG_DATA_DIR`; other servers by
  `MNEMOLOG_KAFKA` and `MNEMOLOG_POSTGRES`. `mnemolog status` shows which, and how they are.
* **Ids.** Facts and events are shown by the first eight characters of their ids, by more where eight are not unique in
  the database; `--full-ids` and `--json` show them whole. Ids of turns and commands are always whole. Each command
  takes the first characters of an id, four or more, where only one id of the tenant begins so; otherwise it names the
  candidates. An id of a script should be whole: later facts may begin as a short one does.
* **Waiting.** `--wait [SECONDS]` waits for the end of what was published, 60 seconds at the most unless told otherwise.
  Commands that change facts wait unless told `--wait 0`; `add`, `publish` and `retry` wait where told so.
* **Exit codes.** 0: done. 1: it failed, was rejected, is unknown, did not finish in time, or differences were found.
  2: wrong usage or settings. 3: a server is unavailable. 130: interrupted by Ctrl-C; the last line says what is left.
* **Output.** Data is on stdout, notes and errors are on stderr. `--json` writes one JSON document. Times are in UTC and
  say so; a time that is given without a zone is UTC as well. Where the locale is C or POSIX, or the stream's encoding
  is no UTF-8, other characters are written as escapes. There is colour at a terminal only, and none with `NO_COLOR`.
* **Completion.** `mnemolog --install-completion` sets up completion of the current shell (bash, zsh, fish);
  `--show-completion` prints what it would install.
"""


def cli_page() -> str:
    """The whole page."""
    sections = [
        f"## {panel}\n\n"
        + "".join(_line(one.example, one.run) for one in commands)
        + (_group_lines(GROUPS[panel][1]) if panel in GROUPS else "")
        for panel, commands in PANELS.items()
    ]
    return "\n".join((INTRO, *sections))


def _group_lines(group: typer.Typer) -> str:
    """The commands of a group."""
    return "".join(
        _line((one.epilog or "").removeprefix("Example: "), one.callback) for one in group.registered_commands
    )


def _line(example: str, command: Callable[..., None] | None) -> str:
    return item(f"`{example}`: {_help_line((command and command.__doc__) or '')}")


def _help_line(docstring: str) -> str:
    """The first paragraph of a command's help, on one line."""
    return " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())
