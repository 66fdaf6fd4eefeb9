"""Commands that show whom and what facts name, and change what they are called."""

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from mnemolog.cli import show
from mnemolog.cli.options import (
    BelievedAt,
    Change,
    CliCommand,
    Limit,
    Query,
    TrueAt,
    change_command,
    id_option,
    query_command,
)

_NAMED: Final = 'one of its names, what it is ("my wife"), or the first characters of its id'
Named = Annotated[str, typer.Argument(metavar="ENTITY", help=_NAMED)]


@query_command(show.show_entities)
def entities(
    *,
    kind: Annotated[str | None, typer.Option("--type", help="only of this type, such as person or place")] = None,
    limit: Limit = None,
) -> Query:
    """List the people, places and things that facts name, with their names."""
    return lambda client: client.entities.list(type=kind, limit=limit)


class EntityCommands(TyperGroup):
    """What is not one of its commands is the name of an entity to show."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        shows = bool(args) and args[0] not in {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, ["show", *args] if shows else args)


entity = typer.Typer(
    help="Show an entity, or say that it is called otherwise, is the same as others, or is two.",
    cls=EntityCommands,
    no_args_is_help=True,
)


@entity.command("show", cls=CliCommand, epilog='Example: mnemolog entity "my wife" --user alice')
@query_command(show.show_entity)
def show_entity(
    *,
    name: Annotated[str, typer.Argument(help=_NAMED)],
    all_versions: Annotated[bool, typer.Option("--all", help="include all versions of facts")] = False,
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
) -> Query:
    """Show one of them: names, facts, values and relations, what has ended, who may be the same, what was decided."""
    return lambda client: client.entities.get(name, all_versions=all_versions, believed_at=believed_at, true_at=true_at)


@entity.command("rename", cls=CliCommand, epilog='Example: mnemolog entity rename Anna "Ana Keller" --user alice')
@change_command()
def rename_entity(*, name: Named, new_name: Annotated[str, typer.Argument(help="its own name from now on")]) -> Change:
    """Give an entity another own name. The former one stays one of its names."""
    return lambda client: client.entities.rename(name, new_name)


@entity.command("alias", cls=CliCommand, epilog='Example: mnemolog entity alias Ana "my wife" --user alice')
@change_command()
def alias_entity(
    *,
    name: Named,
    alias: Annotated[str, typer.Argument(help="one more name of it")],
    moved_from: Annotated[
        str | None, typer.Option("--from", metavar="ENTITY", help="which entity is not called so any more")
    ] = None,
) -> Change:
    """Give an entity one more name. One that another entity has moves only with --from."""
    return lambda client: client.entities.alias(name, alias, moved_from=moved_from)


@entity.command("merge", cls=CliCommand, epilog="Example: mnemolog entity merge Annie Anna --into Ana --user alice")
@change_command()
def merge_entities(
    *,
    names: Annotated[list[str], typer.Argument(metavar="ENTITY", help=f"{_NAMED}; several")],
    into: Annotated[str, typer.Option("--into", metavar="ENTITY", help="which one all of them are")],
) -> Change:
    """Say that entities are one."""
    return lambda client: client.entities.merge(names, into=into)


@entity.command(
    "split", cls=CliCommand, epilog='Example: mnemolog entity split Tom "Tom from work" --fact 3f2a1b4c --user alice'
)
@change_command()
def split_entity(
    *,
    name: Named,
    new_name: Annotated[str, typer.Argument(help="the name of the new entity")],
    fact_ids: Annotated[list[str] | None, id_option("a fact that names the new one; several times", "--fact")] = None,
    names: Annotated[list[str] | None, typer.Option("--name", help="a name of the new one; several times")] = None,
    kind: Annotated[str | None, typer.Option("--type", help="its type; that of the entity unless given")] = None,
) -> Change:
    """Say that an entity is two: a new one gets some of its facts and names."""
    return lambda client: client.entities.split(name, new_name, fact_ids=fact_ids or [], names=names or [], type=kind)


@entity.command("forget", cls=CliCommand, epilog="Example: mnemolog entity forget Ana --facts --user alice")
@change_command()
def forget_entity(
    *,
    name: Named,
    facts: Annotated[bool, typer.Option("--facts", help="delete the facts that name it, too")] = False,
) -> Change:
    """Forget an entity: it has no names, and no fact names it any more."""
    return lambda client: client.entities.forget(name, facts=facts)


@entity.command("summarise", cls=CliCommand, epilog="Example: mnemolog entity summarise Ana --user alice")
@change_command()
def summarise_entity(*, name: Named) -> Change:
    """Have the model write a summary of an entity from its facts, where a policy allows it."""
    return lambda client: client.entities.summarise(name)


@query_command(show.show_relations)
def relations(
    *,
    name: Annotated[str | None, typer.Argument(help=f"whose relations: {_NAMED}")] = None,
    predicate: Annotated[
        str | None, typer.Option("--predicate", help="only this one, such as wife or employer")
    ] = None,
    all_versions: Annotated[bool, typer.Option("--all", help="include those that hold no longer")] = False,
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
) -> Query:
    """List what they are to each other."""
    return lambda client: client.entities.relations(
        name, predicate=predicate, all_versions=all_versions, believed_at=believed_at, true_at=true_at
    )


@query_command(show.show_neighbours)
def neighbours(
    *,
    name: Annotated[str, typer.Argument(help=_NAMED)],
    hops: Annotated[int, typer.Option("--hops", min=1, max=2, help="how many relations away")] = 1,
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
) -> Query:
    """List who and what is related to one of them."""
    return lambda client: client.entities.neighbours(name, hops=hops, believed_at=believed_at, true_at=true_at)


@query_command(show.show_who)
def who(
    *,
    name: Annotated[str, typer.Argument(help='what somebody is: "my wife", "my dog", "Ana\'s boss"')],
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
) -> Query:
    """Show who somebody's wife, boss or dog is."""
    return lambda client: client.entities.who(name, believed_at=believed_at, true_at=true_at)


@query_command(show.show_graph)
def graph(
    *,
    all_versions: Annotated[bool, typer.Option("--all", help="include relations that hold no longer")] = False,
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
) -> Query:
    """Print the graph of relations as a Mermaid diagram, or with --json as data."""
    return lambda client: client.entities.graph(all_versions=all_versions, believed_at=believed_at, true_at=true_at)
