"""Commands that change memory: update, batch-update, correct, delete, delete-all, confirm, reject, resolve, undo.

Each publishes one order, waits for its end and shows what it did.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from mnemolog.cli import options
from mnemolog.cli.command_decorator import memory_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemolog.cli.command_decorator import IssueCommand

FactIdArgument = Annotated[UUID, typer.Argument(help="the id of the fact", show_default=False)]
FactIdsArgument = Annotated[list[UUID], typer.Argument(help="ids of facts: all of them or none", show_default=False)]
Text = Annotated[str, typer.Argument(help="what it should say", show_default=False)]
Key = Annotated[str | None, typer.Option("--key", help="its slot, such as home_city", show_default=False)]
Value = Annotated[str | None, typer.Option("--value", help="what is in the slot", show_default=False)]
Action = Literal["keep_both", "keep_old", "replace", "contradict", "merge"]


@memory_command()
def update(*, fact_id: FactIdArgument, text: Text, key: Key = None, value: Value = None) -> "IssueCommand":
    """Put a text in the place of a fact, from now on."""
    return lambda client, whose: client.update(fact_id, text, key=key, value=value, **whose)


@memory_command()
def batch_update(
    *, file: Annotated[str, typer.Argument(help="JSON lines: fact_id, text, perhaps key and value; - reads stdin")]
) -> "IssueCommand":
    """Put texts in the place of up to 100 facts, from now on: of all or of none."""
    edits = list(_edits(file))
    return lambda client, whose: client.batch_update(edits, **whose)


def _edits(file: str) -> "Iterator[dict[str, Any]]":
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            edit = json.loads(line)
        except ValueError as error:
            raise typer.BadParameter(f"line {number} is no JSON: {error}") from error
        if not isinstance(edit, dict):
            raise typer.BadParameter(f'line {number} is no object: write {{"fact_id": ..., "text": ...}}')
        yield edit


@memory_command()
def correct(
    *,
    fact_id: FactIdArgument,
    text: Text,
    key: Key = None,
    value: Value = None,
    ended: Annotated[
        str | None, typer.Option("--ended", help="until when the old one was true; without it, it never was")
    ] = None,
) -> "IssueCommand":
    """Put a human's word in the place of a fact: from then on only a human changes it."""
    until = options.parse_time(ended) if ended else None
    return lambda client, whose: client.correct(fact_id, text, key=key, value=value, ended_at=until, **whose)


@memory_command()
def delete(*, fact_ids: FactIdsArgument) -> "IssueCommand":
    """Hold facts no longer. They stay in the history, and `undo` brings them back."""
    return lambda client, whose: client.batch_delete(fact_ids, **whose)


@memory_command(any_scope=True)
def delete_all(
    *,
    key: Annotated[str | None, typer.Option("--key", help="only facts of this slot", show_default=False)] = None,
    category: Annotated[
        str | None, typer.Option("--category", help="only of this category", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="yes, all of them")] = False,
) -> "IssueCommand":
    """Delete all facts of a scope, or those of a slot or category. '*' orders it for every scope that has any."""
    if not yes:
        raise typer.BadParameter("this deletes every fact that matches; if that is meant, add --yes")
    return lambda client, whose: client.delete_all(key=key, category=category, **whose)


@memory_command()
def confirm(*, fact_ids: FactIdsArgument) -> "IssueCommand":
    """Let pending facts stand, with all that they were held back from doing (`mnemolog pending` lists them)."""
    return lambda client, whose: client.confirm(fact_ids, **whose)


@memory_command()
def reject(*, fact_ids: FactIdsArgument) -> "IssueCommand":
    """Close pending facts; what they challenged stays."""
    return lambda client, whose: client.reject(fact_ids, **whose)


@memory_command()
def resolve(
    *,
    fact_id: FactIdArgument,
    action: Annotated[Action, typer.Argument(help="what becomes of it and its rivals", show_default=False)],
    target: Annotated[
        list[UUID] | None, typer.Option("--target", help="a rival, by default each it was kept beside")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="the text of a merge", show_default=False)] = None,
) -> "IssueCommand":
    """Settle an unresolved fact (`mnemolog unresolved` lists them)."""
    targets = target or []
    return lambda client, whose: client.resolve(fact_id, action, targets=targets, text=text, **whose)


@memory_command(any_scope=True)
def undo(
    *,
    event: Annotated[UUID | None, typer.Option("--event", help="this event", show_default=False)] = None,
    turn: Annotated[
        str | None, typer.Option("--turn", help="all that this turn or command did", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="all that it decided", show_default=False)] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt-version", help="all that was decided under it", show_default=False)
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="from then on, for a model or prompt version")] = None,
    until: Annotated[str | None, typer.Option("--until", help="up to then; now unless given")] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="later decisions that build on it as well")] = False,
) -> "IssueCommand":
    """Take back an event, a turn, a command (also an undo), or all that a model or prompt version decided.

    What was ended by it is active again. '*' goes with --model and --prompt-version: every scope where they decided.
    """
    if sum(aim is not None for aim in (event, turn, model or prompt)) != 1:
        raise typer.BadParameter("say what to undo: --event, --turn, or --model and/or --prompt-version")
    if event is not None:
        return lambda client, whose: client.undo(event_id=event, cascade=cascade, **whose)
    if turn is not None:
        return lambda client, whose: client.undo(turn_id=turn, cascade=cascade, **whose)
    if since is None:
        raise typer.BadParameter("--model and --prompt-version need --since: what they decided from then on")
    begin, end = options.parse_time(since), options.parse_time(until) if until else datetime.now(UTC)
    return lambda client, whose: client.undo(
        model=model, prompt_version=prompt, since=begin, until=end, cascade=cascade, **whose
    )
