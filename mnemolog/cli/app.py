"""All commands, and the one place where errors become messages and exit codes."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, NamedTuple

import typer

from mnemolog.cli import admin, commands, entities, keys, publish, read, servers
from mnemolog.cli.errors import INTERRUPTED, print_error
from mnemolog.cli.options import CliCommand
from mnemolog.cli.output import prepare_streams, print_line

_HELP: Final = (
    "Memory for assistants: extracts facts from conversations, and explains, undoes and rebuilds every decision."
)
_EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 failed, rejected, unknown, not in time, or differences found; 2 wrong usage or settings; "
    "3 a server is unavailable; 130 interrupted."
)
_SHORT_IDS: Final = "Ids may be shortened to their first characters where these are unique (four or more)."


class CommandEntry(NamedTuple):
    """A command with an example for its help; its name, where a function cannot have it."""

    run: Callable[..., None]
    example: str
    name: str | None = None


PANELS: Final[dict[str, tuple[CommandEntry, ...]]] = {
    "Start": (
        CommandEntry(servers.up, "mnemolog up"),
        CommandEntry(servers.demo, "mnemolog demo"),
        CommandEntry(servers.mcp, "mnemolog mcp --user alice"),
        CommandEntry(servers.status, "mnemolog status"),
    ),
    "Write": (
        CommandEntry(publish.add, 'mnemolog add "I moved to Bern." --user alice --wait'),
        CommandEntry(publish.publish, "mnemolog publish turns.jsonl --wait"),
        CommandEntry(read.import_facts, "mnemolog import facts.jsonl --wait", name="import"),
        CommandEntry(read.dry_run, 'mnemolog dry-run "I moved to Ulm." --user alice'),
        CommandEntry(commands.update, 'mnemolog update 3f2a1b4c "Alice lives in Bonn." --user alice'),
        CommandEntry(commands.update_many, "mnemolog update-many edits.jsonl --user alice"),
        CommandEntry(commands.promote, "mnemolog promote --user alice --run chat-7"),
        CommandEntry(commands.delete, "mnemolog delete 3f2a1b4c --user alice"),
        CommandEntry(commands.delete_all, "mnemolog delete-all --user alice --yes"),
    ),
    "Read": (
        CommandEntry(read.search, 'mnemolog search "Where does Alice live?" --user alice'),
        CommandEntry(read.facts, "mnemolog facts --user alice"),
        CommandEntry(read.count, "mnemolog count --user alice"),
        CommandEntry(read.export, "mnemolog export facts.jsonl --user alice"),
        CommandEntry(read.users, "mnemolog users --limit 100"),
        CommandEntry(read.agents, "mnemolog agents --user alice"),
        CommandEntry(read.runs, "mnemolog runs --user alice"),
        CommandEntry(entities.entities, "mnemolog entities --user alice"),
        CommandEntry(entities.relations, "mnemolog relations --user alice"),
        CommandEntry(entities.neighbours, "mnemolog neighbours Ana --hops 2 --user alice"),
        CommandEntry(entities.who, 'mnemolog who "my wife" --user alice'),
        CommandEntry(entities.graph, "mnemolog graph --user alice"),
        CommandEntry(read.context, 'mnemolog context "Where could we eat?" --user alice --budget 800'),
        CommandEntry(read.profile, "mnemolog profile --user alice"),
        CommandEntry(read.diff, "mnemolog diff --since 2026-03-01 --user alice"),
    ),
    "Explain and undo": (
        CommandEntry(read.explain, "mnemolog explain 3f2a1b4c"),
        CommandEntry(read.history, "mnemolog history 3f2a1b4c"),
        CommandEntry(read.why_not, "mnemolog why-not t1"),
        CommandEntry(commands.correct, 'mnemolog correct 3f2a1b4c "Alice lives in Bonn." --user alice'),
        CommandEntry(commands.end_session, "mnemolog end-session --user alice"),
        CommandEntry(commands.feedback, "mnemolog feedback 3f2a1b4c 9c0d77e2 --used 9c0d77e2 --user alice"),
        CommandEntry(commands.undo, "mnemolog undo --turn t1 --user alice"),
    ),
    "Pending and failed": (
        CommandEntry(read.pending, "mnemolog pending --user alice"),
        CommandEntry(commands.confirm, "mnemolog confirm 3f2a1b4c --user alice"),
        CommandEntry(commands.reject, "mnemolog reject 3f2a1b4c --user alice"),
        CommandEntry(read.unresolved, "mnemolog unresolved --user alice"),
        CommandEntry(commands.resolve, "mnemolog resolve 3f2a1b4c keep_both --user alice"),
        CommandEntry(admin.failed, "mnemolog failed"),
        CommandEntry(admin.retry, "mnemolog retry t1 --user alice --wait"),
        CommandEntry(admin.drop, "mnemolog drop t1 --why 'a test of ours' --actor kim"),
        CommandEntry(admin.dead_letters, "mnemolog dead-letters"),
    ),
    "Operate": (
        CommandEntry(servers.worker, "mnemolog worker extract embed"),
        CommandEntry(servers.serve, "mnemolog serve --port 8464"),
        CommandEntry(read.quality, "mnemolog quality --since 2026-03-01"),
        CommandEntry(admin.audit, "mnemolog audit"),
        CommandEntry(admin.rebuild, "mnemolog rebuild --verify-only"),
        CommandEntry(admin.index_scopes, "mnemolog index-scopes"),
        CommandEntry(admin.restore_log, "mnemolog restore-log --verify-only"),
        CommandEntry(admin.migrate, "mnemolog migrate"),
        CommandEntry(admin.topics, "mnemolog topics"),
        CommandEntry(admin.settings, "mnemolog settings"),
    ),
}

app = typer.Typer(
    name="mnemolog",
    help=_HELP,
    epilog=f"{_EXIT_CODES} {_SHORT_IDS}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for panel, listed in PANELS.items():
    for run_command, example, name in listed:
        app.command(name, cls=CliCommand, rich_help_panel=panel, epilog=f"Example: {example}")(run_command)
GROUPS: Final[dict[str, tuple[str, typer.Typer]]] = {
    "entity": ("Read", entities.entity),
    "policy": ("Operate", commands.policy),
    "keys": ("Operate", keys.keys),
}
"""Commands that have sub-commands, each with the panel that shows it."""
for group_name, (panel, group) in GROUPS.items():
    app.add_typer(group, name=group_name, rich_help_panel=panel)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - no other command needs it

        print_line(f"mnemolog {version('mnemolog')}")
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """See the help of the app."""


def run(arguments: Sequence[str] | None) -> int:
    """Run one command; its exit code."""
    prepare_streams()
    try:
        app(arguments, prog_name="mnemolog")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    # Every failure becomes a message with advice; a traceback is for log level debug.
    except Exception as error:  # noqa: BLE001
        return print_error(error)
    return 0
