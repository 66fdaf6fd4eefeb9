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
    """Show the names of one of them, the facts that name it, its relations, and who may be the same."""
    return lambda client: client.entity(name, all_versions=all_versions)


@query_command(results.show_relations)
def relations(
    *,
    name: Annotated[str | None, typer.Argument(help="whose relations: a name or the first characters of an id")] = None,
    predicate: Annotated[
        str | None, typer.Option("--predicate", help="only this one, such as wife or employer")
    ] = None,
    all_versions: Annotated[bool, typer.Option("--all", help="include those that hold no longer")] = False,
) -> Query:
    """List what they are to each other."""
    return lambda client: client.relations(name, predicate=predicate, all_versions=all_versions)


@query_command(results.show_neighbours)
def neighbours(
    *,
    name: Annotated[str, typer.Argument(help="a name, or the first characters of an id")],
    hops: Annotated[int, typer.Option("--hops", min=1, max=2, help="how many relations away")] = 1,
) -> Query:
    """List who and what is related to one of them."""
    return lambda client: client.neighbours(name, hops=hops)


@query_command(results.show_entities)
def who(
    *,
    name: Annotated[str, typer.Argument(help='what somebody is: "my wife", "my dog", "Ana\'s boss"')],
) -> Query:
    """Show who somebody's wife, boss or dog is."""
    return lambda client: client.who(name)


@query_command(results.show_graph)
def graph(
    *,
    all_versions: Annotated[bool, typer.Option("--all", help="include relations that hold no longer")] = False,
) -> Query:
    """Print the graph of relations as a Mermaid diagram, or with --json as data."""
    return lambda client: client.graph(all_versions=all_versions)
