"""Commands that change memory: update, correct, delete, confirm, reject, resolve, promote, undo, and policies."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from mnemolog.cli.options import (
    ANY_SCOPE,
    EXACT_SCOPE,
    Change,
    CliCommand,
    FactArgument,
    FactsArgument,
    ListFilter,
    Query,
    change_command,
    id_option,
    parse_id,
    parse_object,
    query_command,
    time_option,
    whole_turn_id,
)
from mnemolog.cli.output import print_text, read_input
from mnemolog.cli.tables import ShortIds, cell, counted, print_table

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.projections.queries.results import Result
    from mnemolog.schemas.policy import Policy, StoredPolicies


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
def update_many(
    *, file: Annotated[str, typer.Argument(help="JSON lines: fact_id, text, perhaps key and value; - reads stdin")]
) -> Change:
    """Replace the texts of up to 100 facts from now on: of all or of none."""
    content = read_input("JSON lines, each with a fact_id and a text") if file == "-" else Path(file).read_bytes()
    edits = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            edit = json.loads(line)
        except ValueError as error:
            raise typer.BadParameter(f"line {number} is not valid JSON: {error}") from error
        if not isinstance(edit, dict):
            raise typer.BadParameter(f'line {number} is not a JSON object: write {{"fact_id": ..., "text": ...}}')
        edits.append(edit)
    return lambda client: client.admin.update_many(edits)


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
    return lambda client: client.delete(fact_ids)


@change_command(ANY_SCOPE)
def delete_all(
    *,
    key: Annotated[str | None, typer.Option(help="only facts of this key")] = None,
    category: Annotated[str | None, typer.Option(help="only of this category")] = None,
    filters: ListFilter = None,
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
    filters: ListFilter = None,
    into: Annotated[
        dict[str, Any] | None,
        typer.Option("--into", parser=parse_object, metavar="JSON", help='ids that differ there: {"agent_id": null}'),
    ] = None,
) -> Change:
    """Have facts of a run decided in the scope of its user: a move told there ends the old home."""
    return lambda client: client.admin.promote(fact_ids or (), turn_id=turn, filters=filters, into=into)


@change_command()
def feedback(
    *,
    shown: FactsShown,
    used: Annotated[list[str] | None, id_option("a fact that was used, shown or not; several times")] = None,
    query: Annotated[str | None, typer.Option(help="what was asked")] = None,
) -> Change:
    """Say which facts that were shown were used, so that `mnemolog quality` tells hit rates. No fact is changed."""

    async def change(client: "AsyncMemoryClient") -> "Result":
        facts = {given: await client.get(given) for given in {*shown, *(used or ())}}
        whole = {given: fact.former_id or fact.fact_id for given, fact in facts.items()}
        return await client.admin.feedback(
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
    prompt: Annotated[str | None, typer.Option("--prompt-version", help="what it, or a variant of it, decided")] = None,
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

        async def undo_turn(client: "AsyncMemoryClient") -> "Result":
            return await client.undo(turn_id=await whole_turn_id(client, turn), cascade=cascade)

        return undo_turn
    if since is None:
        raise typer.BadParameter("--model and --prompt-version need --since: from when their decisions are undone")
    end = until or datetime.now(UTC)
    return lambda client: client.undo(model=model, prompt_version=prompt, since=since, until=end, cascade=cascade)


_LIMITS: Final = ("active_facts", "turns_per_minute", "bytes_per_turn", "tokens_per_day", "cost_per_day")
SummaryTime = Literal["off", "on_demand", "after_changes"]
ProfileTime = Literal["at_once", "every_turns", "session_end"]
policy = typer.Typer(help="Show or set the policy of a tenant or scope.", no_args_is_help=True)


def _option(meaning: str, *, low: float | None = None, high: float | None = None) -> Any:
    return typer.Option(help=meaning, min=low, max=high)


@policy.command("set", cls=CliCommand, epilog="Example: mnemolog policy set --add-only --user alice")
@change_command()
def set_policy(
    *,
    add_only: Annotated[bool | None, _option("never change or end a fact")] = None,
    confidence: Annotated[str | None, _option("`standard`, or `cautious`: .40 for all")] = None,
    confirm_below: Annotated[
        float | None, _option("below this confidence a risky overwrite waits", low=0, high=1)
    ] = None,
    high_risk: Annotated[list[str] | None, _option("a category or key whose overwrite is risky; several times")] = None,
    single_valued: Annotated[list[str] | None, _option("a key that holds one value at a time; several times")] = None,
    min_importance: Annotated[float | None, _option("below this importance a fact is not kept", low=0, high=1)] = None,
    publish_profile: Annotated[ProfileTime | None, _option("when readers get a new profile")] = None,
    profile_every: Annotated[int | None, _option("turns of `every_turns`; 5 unless given", low=1, high=1000)] = None,
    conversation_messages: Annotated[
        int | None, _option("messages before a turn that its extraction is shown", low=0, high=100)
    ] = None,
    conversation_tokens: Annotated[int | None, _option("tokens that these may have", low=0, high=20_000)] = None,
    conversation_age: Annotated[float | None, _option("seconds before the turn that these may be old", low=0)] = None,
    known_entities: Annotated[
        int | None, _option("known entities that an extraction is told the names of", low=0, high=100)
    ] = None,
    known_facts: Annotated[int | None, _option("known facts that an extraction is shown", low=0, high=100)] = None,
    known_tokens: Annotated[int | None, _option("tokens that these may have", low=0, high=20_000)] = None,
    known_timeout: Annotated[float | None, _option("seconds to wait for these", low=0, high=60)] = None,
    call_turns: Annotated[
        int | None, _option("waiting turns of a conversation that a call may ask about", low=1, high=100)
    ] = None,
    call_tokens: Annotated[int | None, _option("tokens that their messages may have", low=0, high=20_000)] = None,
    call_linger: Annotated[
        float | None, _option("seconds that a turn waits for others to share its call", low=0, high=60)
    ] = None,
    entity_summary: Annotated[SummaryTime | None, _option("when a model writes summaries of entities")] = None,
    summary_changes: Annotated[int | None, _option("changed facts of `after_changes`", low=1, high=1000)] = None,
    summary_tokens: Annotated[int | None, _option("tokens that a summary may have", low=30, high=1000)] = None,
    summary_language: Annotated[Literal["facts", "english"] | None, _option("in which these are written")] = None,
    active_facts: Annotated[int | None, _option("the most facts that are active at once", low=0)] = None,
    turns_per_minute: Annotated[int | None, _option("the most turns in a minute", low=0)] = None,
    bytes_per_turn: Annotated[int | None, _option("the most bytes of one turn", low=0)] = None,
    tokens_per_day: Annotated[int | None, _option("the most tokens in a day (UTC)", low=0)] = None,
    cost_per_day: Annotated[
        float | None, _option("the most money for models in a day (UTC), in the currency of the price table", low=0)
    ] = None,
    when_spent: Annotated[
        Literal["reject", "raw"] | None,
        _option("what becomes of a turn when tokens or money of the day are spent; `reject` unless given"),
    ] = None,
    when_unread: Annotated[
        Literal["dead_letter", "raw"] | None,
        _option("what becomes of a turn that no model could read; `dead_letter` unless given"),
    ] = None,
    instructions: Annotated[
        Path | None,
        typer.Option(help="a JSON file with instructions for the extraction", exists=True, dir_okay=False),
    ] = None,
    note: Annotated[str | None, _option("why (free text, stored)")] = None,
) -> Change:
    """Set the policy of a tenant, or of the scope that is given; rules that are not given are unset."""
    rules = {name: given for name, given in locals().items() if given not in (None, [])}
    limits = {name: rules.pop(name) for name in _LIMITS if name in rules}
    if "cost_per_day" in limits:
        limits["cost_per_day"] = str(limits["cost_per_day"])
    if instructions is not None:
        rules["instructions"] = _read_instructions(instructions)
    return lambda client: client.admin.set_policy({**rules, "limits": limits})


def _read_instructions(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise typer.BadParameter(f"{path} is not JSON: {error}") from error


def _show_policies(known: "StoredPolicies", _: ShortIds) -> None:
    tenant, scope = _rule_rows(known.tenant), _rule_rows(known.scope)
    rows = [(name, tenant.get(name), scope.get(name)) for name in dict.fromkeys((*tenant, *scope))]
    if not rows:
        print_text("no rule is set here: what is configured holds (`mnemolog settings`); `policy set` sets some")
        return
    print_table(f"{counted(len(rows), 'rule')} set", ("rule", "for the tenant", "for the scope"), rows)


@policy.command("show", cls=CliCommand, epilog="Example: mnemolog policy show --user alice")
@query_command(_show_policies, scope=EXACT_SCOPE)
def show_policy() -> Query:
    """Show what has been set for a tenant, and for a scope where one is given; the rest is as configured."""
    return lambda client: client.admin.policies()


def _rule_rows(policy: "Policy | None") -> dict[str, str]:
    """Each rule that is set, as it is shown; of instructions the version, and what there is of each part."""
    if policy is None:
        return {}
    fields = policy.model_dump(exclude_none=True, exclude={"instructions"})
    flat = {**{name: value for name, value in fields.items() if name != "limits"}, **fields["limits"]}
    if (given := policy.instructions) is not None:
        topics = ", ".join(one.name for one in given.never_store)
        parts = [
            given.version,
            counted(len(given.text), "character") if given.text else "",
            counted(len(given.categories), "category", "categories") if given.categories else "",
            f"never stored: {topics}" if topics else "",
            f"in {', '.join(given.languages)}" if given.languages else "",
        ]
        flat["instructions"] = "; ".join(filter(None, parts))
    return {name: ", ".join(value) if isinstance(value, tuple) else cell(value) for name, value in flat.items()}
