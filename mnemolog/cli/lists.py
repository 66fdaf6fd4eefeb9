"""Commands that count facts, list whose they are, and write them into a file."""

import sys
from typing import Annotated, Any

import typer

from mnemolog.cli import results
from mnemolog.cli.options import ANY_SCOPE, WHOLE_TENANT, Query, parse_object, query_command

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
