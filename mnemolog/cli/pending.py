"""Commands that list what waits for somebody's word: pending, unresolved."""

from typing import TYPE_CHECKING

from mnemolog.cli import options
from mnemolog.cli.output import cell, print_json, print_table, stacked
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemolog.projections.queries.pending import PendingFact, UnresolvedFact


def pending(
    *,
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """List overwrites that wait for a confirmation: what would replace what, where it was said, and why it waits."""
    found = call_client(
        lambda client: client.pending(user_id=user, agent_id=agent, app_id=app, run_id=run), tenant=tenant
    )
    print_json(found) if as_json else show_pending(found)


def unresolved(
    *,
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """List facts that were added beside others because nobody could decide their conflict."""
    found = call_client(
        lambda client: client.unresolved(user_id=user, agent_id=agent, app_id=app, run_id=run), tenant=tenant
    )
    print_json(found) if as_json else show_unresolved(found)


def show_pending(found: "Sequence[PendingFact]") -> None:
    rows = [
        (
            stacked(one.fact.text, one.fact.fact_id, f'"{one.fact.excerpt}"'),
            stacked(one.action, *(f"{old.text} ({cell(old.confidence)})" for old in one.challenged)),
            stacked(one.guard, one.reason, *(["needs a human"] if one.needs_human else [])),
            stacked(one.age, one.since),
        )
        for one in found
    ]
    print_table(f"{len(rows)} pending", ("new fact, excerpt", "would, which", "held by, because", "age, since"), rows)


def show_unresolved(found: "Sequence[UnresolvedFact]") -> None:
    rows = [
        (
            stacked(one.fact.text, one.fact.fact_id, f'"{one.fact.excerpt}"'),
            stacked(*(f"{old.text} {old.fact_id}" for old in one.beside)) if one.beside else "",
            one.reason,
            stacked(one.age, one.since),
        )
        for one in found
    ]
    print_table(f"{len(rows)} unresolved", ("fact, excerpt", "beside", "because", "age, since"), rows)
