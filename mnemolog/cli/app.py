"""All commands, and the one place where errors become messages and exit codes."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, NamedTuple

import typer

from mnemolog.cli import add, admin, commands, failures, policies, publish, read, servers, status
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


class Listed(NamedTuple):
    """A command, with an example for its help."""

    run: Callable[..., None]
    example: str


PANELS: Final[dict[str, tuple[Listed, ...]]] = {
    "Start": (
        Listed(servers.up, "mnemolog up"),
        Listed(servers.demo, "mnemolog demo"),
        Listed(status.status, "mnemolog status"),
    ),
    "Write": (
        Listed(add.add, 'mnemolog add "I moved to Bern." --user alice --wait'),
        Listed(publish.publish, "mnemolog publish turns.jsonl --wait"),
        Listed(read.dry_run, 'mnemolog dry-run "I moved to Ulm." --user alice'),
        Listed(commands.update, 'mnemolog update 3f2a1b4c "Alice lives in Bonn." --user alice'),
        Listed(commands.batch_update, "mnemolog batch-update edits.jsonl --user alice"),
        Listed(commands.delete, "mnemolog delete 3f2a1b4c --user alice"),
        Listed(commands.delete_all, "mnemolog delete-all --user alice --yes"),
    ),
    "Read": (
        Listed(read.search, 'mnemolog search "Where does Alice live?" --user alice'),
        Listed(read.facts, "mnemolog facts --user alice"),
        Listed(read.profile, "mnemolog profile --user alice"),
        Listed(read.as_of, "mnemolog as-of --believed 2026-03-01 --user alice"),
        Listed(read.diff, "mnemolog diff --since 2026-03-01 --user alice"),
    ),
    "Explain and undo": (
        Listed(read.explain, "mnemolog explain 3f2a1b4c"),
        Listed(read.history, "mnemolog history 3f2a1b4c"),
        Listed(read.why_not, "mnemolog why-not t1"),
        Listed(commands.correct, 'mnemolog correct 3f2a1b4c "Alice lives in Bonn." --user alice'),
        Listed(commands.undo, "mnemolog undo --turn t1 --user alice"),
    ),
    "Pending and failed": (
        Listed(read.pending, "mnemolog pending --user alice"),
        Listed(commands.confirm, "mnemolog confirm 3f2a1b4c --user alice"),
        Listed(commands.reject, "mnemolog reject 3f2a1b4c --user alice"),
        Listed(read.unresolved, "mnemolog unresolved --user alice"),
        Listed(commands.resolve, "mnemolog resolve 3f2a1b4c keep_both --user alice"),
        Listed(failures.failed, "mnemolog failed"),
        Listed(failures.retry, "mnemolog retry t1 --user alice --wait"),
        Listed(failures.dead_letters, "mnemolog dead-letters"),
    ),
    "Operate": (
        Listed(servers.worker, "mnemolog worker extract embed"),
        Listed(read.quality, "mnemolog quality --since 2026-03-01"),
        Listed(admin.audit, "mnemolog audit"),
        Listed(admin.rebuild, "mnemolog rebuild --verify-only"),
        Listed(admin.migrate, "mnemolog migrate"),
        Listed(admin.topics, "mnemolog topics"),
        Listed(admin.settings, "mnemolog settings"),
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
    for run_command, example in listed:
        app.command(cls=CliCommand, rich_help_panel=panel, epilog=f"Example: {example}")(run_command)
app.add_typer(policies.policy, name="policy", rich_help_panel="Operate")


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
