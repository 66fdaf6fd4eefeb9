"""Commands that change memory: update, correct, delete, confirm, reject, resolve, promote, undo and others.

Each publishes one command, or one for each scope, waits for the result and shows it.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mnemolog.cli.options import (
    ANY_SCOPE,
    Change,
    FactArgument,
    FactsArgument,
    change_command,
    id_option,
    parse_id,
    parse_object,
    time_option,
    whole_turn_id,
)
from mnemolog.cli.output import read_input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.receipts import CommandReceipt


Text = Annotated[str, typer.Argument(help="the new text")]
Key = Annotated[str | None, typer.Option("--key", help="key of the fact, such as home_city")]
Value = Annotated[
    str | None, typer.Option("--value", help="value of the key; read from the new text unless given; '' clears it")
]
FactsShown = Annotated[list[str], typer.Argument(parser=parse_id, metavar="ID", help="ids of facts, the best first")]
Action = Literal["keep_both", "keep_old", "replace", "contradict", "merge"]


@change_command()
def update(*, fact_id: FactArgument, text: Text, key: Key = None, value: Value = None) -> Change:
    """Replace the text of a fact from now on."""
    return lambda client: client.update(fact_id, text, key=key, value=... if value is None else value)


@change_command()
def batch_update(
    *, file: Annotated[str, typer.Argument(help="JSON lines: fact_id, text, perhaps key and value; - reads stdin")]
) -> Change:
    """Replace the texts of up to 100 facts from now on: of all or of none."""
    edits = list(_edits(file))
    return lambda client: client.batch_update(edits)


def _edits(file: str) -> "Iterator[dict[str, Any]]":
    content = read_input("JSON lines, each with a fact_id and a text") if file == "-" else Path(file).read_bytes()
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            edit = json.loads(line)
        except ValueError as error:
            raise typer.BadParameter(f"line {number} is not valid JSON: {error}") from error
        if not isinstance(edit, dict):
            raise typer.BadParameter(f'line {number} is not a JSON object: write {{"fact_id": ..., "text": ...}}')
        yield edit


@change_command()
def correct(
    *,
    fact_id: FactArgument,
    text: Text,
    key: Key = None,
    value: Value = None,
    since: Annotated[datetime | None, time_option("since when the new text is true")] = None,
    ended: Annotated[datetime | None, time_option("until when the old text was true; without it, it never was")] = None,
) -> Change:
    """Correct a fact; only a human can change it afterwards."""
    given = ... if value is None else value
    return lambda client: client.correct(fact_id, text, key=key, value=given, true_from=since, ended_at=ended)


@change_command()
def delete(*, fact_ids: FactsArgument) -> Change:
    """Delete facts; the history keeps them and `undo` restores them."""
    return lambda client: client.batch_delete(fact_ids)


@change_command(ANY_SCOPE)
def delete_all(
    *,
    key: Annotated[str | None, typer.Option(help="only facts of this key")] = None,
    category: Annotated[str | None, typer.Option(help="only of this category")] = None,
    filters: Annotated[
        dict[str, Any] | None,
        typer.Option("--filter", parser=parse_object, metavar="JSON", help="only what `mnemolog facts` lists with it"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="confirm")] = False,
) -> Change:
    """Delete all facts of a scope, or those of a key, category or filter. '*' or '**': in every scope that has any."""
    if not yes:
        raise typer.BadParameter("this deletes every fact that matches; if that is meant, add --yes")
    return lambda client: client.delete_all(key=key, category=category, filters=filters)


@change_command()
def confirm(*, fact_ids: FactsArgument) -> Change:
    """Confirm pending facts and apply the changes they were held back from (`mnemolog pending` lists them)."""
    return lambda client: client.confirm(fact_ids)


@change_command()
def reject(*, fact_ids: FactsArgument) -> Change:
    """Reject pending facts; the known facts stay active."""
    return lambda client: client.reject(fact_ids)


@change_command()
def resolve(
    *,
    fact_id: FactArgument,
    action: Annotated[Action, typer.Argument(help="what to do with the conflicting facts")],
    target: Annotated[list[str] | None, id_option("a conflicting fact; all unless given")] = None,
    text: Annotated[str | None, typer.Option(help="the text of a merge")] = None,
) -> Change:
    """Resolve the conflict of an unresolved fact (`mnemolog unresolved` lists them)."""
    return lambda client: client.resolve(fact_id, action, targets=target or (), text=text)


@change_command()
def promote(
    *,
    fact_ids: Annotated[
        list[str] | None,
        typer.Argument(parser=parse_id, metavar="ID", help="ids of facts; all unless given"),
    ] = None,
    turn: Annotated[str | None, typer.Option(help="what this turn brought")] = None,
    filters: Annotated[
        dict[str, Any] | None,
        typer.Option("--filter", parser=parse_object, metavar="JSON", help="only what `mnemolog facts` lists with it"),
    ] = None,
    into: Annotated[
        dict[str, Any] | None,
        typer.Option("--into", parser=parse_object, metavar="JSON", help='ids that differ there: {"agent_id": null}'),
    ] = None,
) -> Change:
    """Have facts of a run decided in the scope of its user: a move told there ends the old home."""
    return lambda client: client.promote(fact_ids or (), turn_id=turn, filters=filters, into=into)


@change_command()
def feedback(
    *,
    shown: FactsShown,
    used: Annotated[list[str] | None, id_option("a fact that was used, shown or not; several times")] = None,
    query: Annotated[str | None, typer.Option(help="what was asked")] = None,
) -> Change:
    """Say which facts that were shown were used, so that `mnemolog quality` tells hit rates. No fact is changed."""

    async def change(client: "AsyncMemoryClient") -> "CommandReceipt":
        whole = {given: (await client.get(given)).fact_id for given in {*shown, *(used or ())}}
        return await client.feedback(
            [whole[given] for given in shown], used=[whole[given] for given in used or ()], query=query
        )

    return change


@change_command()
def end_session() -> Change:
    """Say that a session of this scope has ended: its profile is published, where a policy has it wait for that."""
    return lambda client: client.end_session()


@change_command(ANY_SCOPE)
def undo(
    *,
    event: Annotated[str | None, id_option("one event (`history` shows their ids)")] = None,
    turn: Annotated[str | None, typer.Option(help="all changes of this turn or command")] = None,
    model: Annotated[str | None, typer.Option(help="what this model decided")] = None,
    prompt: Annotated[str | None, typer.Option("--prompt-version", help="what was decided under it")] = None,
    since: Annotated[datetime | None, time_option("for a model or prompt version: from this time")] = None,
    until: Annotated[datetime | None, time_option("up to this time; now unless given")] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="undo later decisions that build on it too")] = False,
) -> Change:
    """Undo an event, a turn, a command (also an undo), or all that a model or prompt version decided.

    Facts that it ended are active again. '*' and '**' go with --model and --prompt-version.
    """
    if sum(aim is not None for aim in (event, turn, model or prompt)) != 1:
        raise typer.BadParameter("give one of --event, --turn, or --model/--prompt-version")
    if model is None and prompt is None and (since or until):
        raise typer.BadParameter(
            "--event and --turn undo it as a whole: leave out --since and --until, or give --model or --prompt-version"
        )
    if event is not None:
        return lambda client: client.undo(event_id=event, cascade=cascade)
    if turn is not None:
        return _undo_of_turn(turn, cascade=cascade)
    if since is None:
        raise typer.BadParameter("--model and --prompt-version need --since: from when their decisions are undone")
    end = until or datetime.now(UTC)
    return lambda client: client.undo(model=model, prompt_version=prompt, since=since, until=end, cascade=cascade)


def _undo_of_turn(turn: str, *, cascade: bool) -> Change:
    async def change(client: "AsyncMemoryClient") -> "CommandReceipt":
        return await client.undo(turn_id=await whole_turn_id(client, turn), cascade=cascade)

    return change
