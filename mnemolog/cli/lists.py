"""Commands that count facts, list whose they are, and write them into files and read them from there."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.cli import results
from mnemolog.cli.errors import FAILED
from mnemolog.cli.options import (
    ANY_SCOPE,
    WHOLE_TENANT,
    AsJson,
    Query,
    Tenant,
    Wait,
    parse_object,
    query_command,
)
from mnemolog.cli.output import announce_input, print_result
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.files.fact_files import ImportReport

Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="how many at the most; all unless given")]
After = Annotated[str | None, typer.Option("--after", metavar="ID", help="go on after this id, the last one before")]


@query_command(results.show_count, scope=ANY_SCOPE)
def count(
    *,
    all_versions: Annotated[bool, typer.Option("--all", help="count all versions")] = False,
    filters: Annotated[
        dict[str, Any] | None,
        typer.Option("--filter", parser=parse_object, metavar="JSON", help="only what `mnemolog facts` lists with it"),
    ] = None,
) -> Query:
    """Count the current facts of a scope."""
    return lambda client: client.count(all_versions=all_versions, filters=filters)


@query_command(results.show_ids, scope=WHOLE_TENANT)
def users(*, limit: Limit = None, after: After = None) -> Query:
    """List the users of whom something is known, with the number of their facts."""
    return lambda client: client.users(limit=limit, after=after)


@query_command(results.show_ids, scope=WHOLE_TENANT)
def agents(*, limit: Limit = None, after: After = None) -> Query:
    """List the agents that know something, with the number of their facts."""
    return lambda client: client.agents(limit=limit, after=after)


@query_command(results.show_ids, scope=WHOLE_TENANT)
def runs(*, limit: Limit = None, after: After = None) -> Query:
    """List the runs of which something is known, with the number of their facts."""
    return lambda client: client.runs(limit=limit, after=after)


@query_command(results.show_exported, scope=ANY_SCOPE)
def export(
    *,
    file: Annotated[str, typer.Argument(help="the file to write; - writes to stdout")],
    all_versions: Annotated[bool, typer.Option("--all", help="write all versions")] = False,
    filters: Annotated[
        dict[str, Any] | None,
        typer.Option("--filter", parser=parse_object, metavar="JSON", help="only what `mnemolog facts` lists with it"),
    ] = None,
) -> Query:
    """Write the facts of a scope as JSON lines, however many they are."""
    target = sys.stdout.buffer if file == "-" else file
    return lambda client: client.export(target, all_versions=all_versions, filters=filters)


def import_facts(
    *,
    file: Annotated[str, typer.Argument(help="JSON lines as `mnemolog export` writes them; - reads stdin")],
    user: Annotated[str | None, typer.Option("--user", "-u", help="user id, of all lines")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="agent id, of all lines")] = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="import the others where lines are wrong")
    ] = False,
    tenant: Tenant = None,
    wait: Wait = None,
    as_json: AsJson = False,
) -> None:
    """Store the facts of a file without a model. A second import of the same file does nothing.

    A line that is wrong is named with its number, and then nothing is imported.
    """

    async def work(client: "AsyncMemoryClient") -> "ImportReport":
        source = sys.stdin.buffer if file == "-" else file
        ids = {"user_id": user, "agent_id": agent}
        return await client.scope(**ids).import_facts(source, skip_damaged=skip_damaged, wait=wait or 0.0)

    if file == "-":
        announce_input("JSON lines, each a fact,")
    report = call_client(work, tenant=tenant, interrupted=lambda: "importing the file again is harmless")
    print_result(report, results.show_import, as_json=as_json)
    if report.damaged or report.rejected:
        raise typer.Exit(FAILED)
