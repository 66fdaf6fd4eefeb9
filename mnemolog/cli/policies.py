"""`mnemolog policy`: what an operator has decided for a tenant or a scope."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.cli import options
from mnemolog.cli.command_decorator import ExactAgent, ExactApp, ExactRun, ExactUser, memory_command
from mnemolog.cli.output import cell, print_json, print_table
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from mnemolog.cli.command_decorator import IssueCommand
    from mnemolog.schemas.policy import Policy, StoredPolicies

policy = typer.Typer(
    help="What holds for a tenant, or for a scope where a user or an agent is named.", no_args_is_help=True
)


def _count_option(meaning: str) -> Any:
    return typer.Option(min=0, help=meaning, show_default=False)


def _fraction_option(meaning: str) -> Any:
    return typer.Option(min=0, max=1, help=meaning, show_default=False)


def _list_option(meaning: str) -> Any:
    return typer.Option(help=f"{meaning}; several times", show_default=False)


@policy.command("set")
@memory_command()
def set_policy(
    *,
    add_only: Annotated[
        bool | None, typer.Option("--add-only/--no-add-only", help="never change or end a fact", show_default=False)
    ] = None,
    confidence: Annotated[
        str | None, typer.Option("--confidence", help="`standard`, or `cautious`: .40 for all", show_default=False)
    ] = None,
    confirm_below: Annotated[float | None, _fraction_option("confidence below which a risky overwrite waits")] = None,
    high_risk: Annotated[list[str] | None, _list_option("a category or key whose overwrite is risky")] = None,
    single_valued: Annotated[list[str] | None, _list_option("a key that holds one value at a time")] = None,
    min_importance: Annotated[float | None, _fraction_option("importance below which a fact is not kept")] = None,
    active_facts: Annotated[int | None, _count_option("the most facts that are active at once")] = None,
    turns_per_minute: Annotated[int | None, _count_option("the most turns in a minute")] = None,
    bytes_per_turn: Annotated[int | None, _count_option("the most bytes of one turn")] = None,
    tokens_per_day: Annotated[int | None, _count_option("the most tokens in a day (UTC)")] = None,
    note: Annotated[str | None, typer.Option(help="why, for the record", show_default=False)] = None,
) -> "IssueCommand":
    """Set the policy of a tenant or a scope in place of the one before: what is not given here no longer holds."""
    limits = {
        "active_facts": active_facts,
        "turns_per_minute": turns_per_minute,
        "bytes_per_turn": bytes_per_turn,
        "tokens_per_day": tokens_per_day,
    }
    said: dict[str, Any] = {
        "add_only": add_only,
        "confidence": confidence,
        "confirm_below": confirm_below,
        "high_risk": high_risk or None,
        "single_valued": single_valued or None,
        "min_importance": min_importance,
        "limits": limits,
        "note": note,
    }
    return lambda client, whose: client.set_policy(said, **whose)


@policy.command("show")
def show_policy(
    *,
    user: ExactUser = None,
    agent: ExactAgent = None,
    app: ExactApp = None,
    run: ExactRun = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what has been set for a tenant, and for a scope where one is named; the rest is as configured."""
    known = call_client(
        lambda client: client.policies(user_id=user, agent_id=agent, app_id=app, run_id=run),
        tenant=tenant,
    )
    print_json(known) if as_json else _show(known)


def _show(known: "StoredPolicies") -> None:
    tenant, scope = _rule_rows(known.tenant), _rule_rows(known.scope)
    rows = [(name, tenant.get(name), scope.get(name)) for name in dict.fromkeys((*tenant, *scope))]
    print_table(f"{len(rows)} rules are set", ("rule", "for the tenant", "for the scope"), rows)


def _rule_rows(policy: "Policy | None") -> dict[str, str]:
    if policy is None:
        return {}
    fields = policy.model_dump(exclude_none=True)
    flat = {**{name: value for name, value in fields.items() if name != "limits"}, **fields["limits"]}
    return {name: ", ".join(value) if isinstance(value, tuple) else cell(value) for name, value in flat.items()}
