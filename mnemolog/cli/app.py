"""All commands, and the one place where errors become messages and exit codes."""

from collections.abc import Sequence

import typer

from mnemolog.cli import admin, commands, policies, publish, read, servers
from mnemolog.cli.errors import print_error

app = typer.Typer(
    name="mnemolog",
    help="Memory that can be trusted: conversations in, facts out, every decision explained.",
    epilog="Exit codes: 0 done; 1 failed or found differences; 2 wrong usage or settings; 3 a server is unavailable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    servers.up,
    servers.demo,
    servers.worker,
    publish.publish,
    read.dry_run,
    read.status,
    read.search,
    read.facts,
    read.as_of,
    read.profile,
    read.history,
    read.explain,
    read.why_not,
    read.diff,
    read.pending,
    read.unresolved,
    read.quality,
    commands.update,
    commands.batch_update,
    commands.correct,
    commands.delete,
    commands.delete_all,
    commands.confirm,
    commands.reject,
    commands.resolve,
    commands.undo,
    admin.rebuild,
    admin.audit,
    admin.migrate,
    admin.topics,
    admin.settings,
):
    app.command()(command)
app.add_typer(policies.policy, name="policy")


def run(arguments: Sequence[str] | None) -> int:
    """Run one command; its exit code."""
    try:
        app(arguments, prog_name="mnemolog")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    # Every failure becomes a message with advice; a traceback is for log level debug.
    except Exception as error:  # noqa: BLE001
        return print_error(error)
    return 0
