"""Commands that show whom and what facts name."""

from typing import Annotated

import typer

from mnemolog.cli import results
from mnemolog.cli.options import Query, query_command


@query_command(results.show_entities)
def entities(
    *,
    kind: Annotated[str | None, typer.Option("--type", help="only of this type, such as person or place")] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="how many at the most; all unless given")
    ] = None,
) -> Query:
    """List the people, places and things that facts name, with their names."""
    return lambda client: client.entities(type=kind, limit=limit)


@query_command(results.show_entity)
def entity(
    *,
    name: Annotated[str, typer.Argument(help="one of its names, or the first characters of its id")],
    all_versions: Annotated[bool, typer.Option("--all", help="include all versions of facts")] = False,
) -> Query:
    """Show the names of one of them, the facts that name it, and who may be the same."""
    return lambda client: client.entity(name, all_versions=all_versions)
