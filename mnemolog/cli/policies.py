"""`mnemolog policy`: show and set the rules of a tenant or a scope."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from mnemolog.cli.options import EXACT_SCOPE, Change, CliCommand, Query, change_command, query_command
from mnemolog.cli.output import print_text
from mnemolog.cli.results.ids import ShortIds
from mnemolog.cli.results.tables import print_table
from mnemolog.cli.results.words import cell, counted

if TYPE_CHECKING:
    from mnemolog.schemas.instructions.model import Instructions
    from mnemolog.schemas.policy import Policy, StoredPolicies

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
    instructions: Annotated[
        Path | None,
        typer.Option(help="a JSON file with instructions for the extraction", exists=True, dir_okay=False),
    ] = None,
    note: Annotated[str | None, _option("why (free text, stored)")] = None,
) -> Change:
    """Set the policy of a tenant, or of the scope that is given; rules that are not given are unset."""
    return _change(locals())


def _change(given: Mapping[str, Any]) -> Change:
    """What sets the rules that options give, under their names; one that was not given is unset."""
    rules = {name: value for name, value in given.items() if value not in (None, [])}
    limits = {name: rules.pop(name) for name in _LIMITS if name in rules}
    if "cost_per_day" in limits:
        limits["cost_per_day"] = str(limits["cost_per_day"])
    if "instructions" in rules:
        rules["instructions"] = _read_instructions(rules["instructions"])
    return lambda client: client.set_policy({**rules, "limits": limits})


def _read_instructions(path: Path) -> Any:
    """What the file has. The client checks it."""
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
    return lambda client: client.policies()


def _instruction_parts(given: "Instructions") -> str:
    """The version, and what there is of each part."""
    topics = ", ".join(one.name for one in given.never_store)
    parts = [
        given.version,
        counted(len(given.text), "character") if given.text else "",
        counted(len(given.categories), "category", "categories") if given.categories else "",
        f"never stored: {topics}" if topics else "",
        f"in {', '.join(given.languages)}" if given.languages else "",
    ]
    return "; ".join(filter(None, parts))


def _rule_rows(policy: "Policy | None") -> dict[str, str]:
    if policy is None:
        return {}
    fields = policy.model_dump(exclude_none=True, exclude={"instructions"})
    flat = {**{name: value for name, value in fields.items() if name != "limits"}, **fields["limits"]}
    if policy.instructions is not None:
        flat["instructions"] = _instruction_parts(policy.instructions)
    return {name: ", ".join(value) if isinstance(value, tuple) else cell(value) for name, value in flat.items()}
