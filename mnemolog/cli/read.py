"""Commands that ask: status, search, facts, as-of, profile."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.output import cell, escape, print_json, print_table, stacked, stderr
from mnemolog.cli.results import show_status
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from mnemolog.client.query_embedder import SearchResult
    from mnemolog.projections.queries.results import Fact, Profile


def status(
    *,
    turn_id: Annotated[
        str, typer.Argument(help="the turn or command, or topic/partition/offset of a record that was none")
    ],
    user: options.TurnOwner = None,
    tenant: options.Tenant = None,
    wait: Annotated[float, typer.Option("--wait", min=0, help="seconds to wait for its end")] = 0,
    attempt: Annotated[
        int,
        typer.Option("--attempt", min=1, help="of a turn that was published again: which end"),
    ] = 1,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Tell how a turn or a command ended and what it did."""
    if wait:
        result = call_client(
            lambda client: client.wait(turn_id, timeout=wait, user_id=user, verbose=verbose, attempt=attempt),
            tenant=tenant,
        )
    else:
        result = call_client(lambda client: client.status(turn_id, user_id=user, verbose=verbose), tenant=tenant)
    print_json(result) if as_json else show_status(result)


def search(
    *,
    query: Annotated[str, typer.Argument(help="a question, or some words")],
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="hits at the most")] = 10,
    as_json: options.AsJson = False,
) -> None:
    """Find the facts nearest to a query in meaning and in words."""
    found = call_client(
        lambda client: client.search(query, user_id=user, agent_id=agent, app_id=app, run_id=run, limit=limit),
        tenant=tenant,
    )
    print_json(found) if as_json else show_search(found)


def facts(
    *,
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    all_versions: Annotated[bool, typer.Option("--all", help="every version that ever was")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the facts of a scope that hold now."""
    found = call_client(
        lambda client: client.facts(user_id=user, agent_id=agent, app_id=app, run_id=run, all_versions=all_versions),
        tenant=tenant,
    )
    print_json(found) if as_json else show_facts(found)


def as_of(
    *,
    believed_at: Annotated[str, typer.Option("--believed", help="the belief of when: a day, or ISO 8601")],
    true_at: Annotated[
        str | None, typer.Option("--true", help="to be so when; the same unless given", show_default=False)
    ] = None,
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """List what was believed at one instant to be so at another, each fact as it stood then."""
    believed, true = options.parse_time(believed_at), options.parse_time(true_at) if true_at else None
    found = call_client(
        lambda client: client.facts_as_of(believed, true, user_id=user, agent_id=agent, app_id=app, run_id=run),
        tenant=tenant,
    )
    print_json(found) if as_json else show_facts(found)


def profile(
    *,
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what is known of one scope, by section."""
    known = call_client(
        lambda client: client.profile(user_id=user, agent_id=agent, app_id=app, run_id=run), tenant=tenant
    )
    print_json(known) if as_json else show_profile(known)


def show_search(found: "SearchResult") -> None:
    rows = [(hit.score.total, hit.score.similarity, _flagged(hit.fact), hit.fact.true_from) for hit in found.hits]
    print_table(f"{len(rows)} facts ({found.mode})", ("score", "similar", "text and fact", "true from"), rows)
    if found.notice:
        stderr().print(f"[yellow]note:[/] {escape(found.notice)}")


def _flagged(fact: "Fact") -> "Text":
    flags = [fact.status] if fact.status != "active" else []
    return stacked(fact.text, fact.fact_id, *flags, *(["unresolved"] if fact.unresolved else []))


def show_facts(found: "Sequence[Fact]") -> None:
    rows = [
        (
            fact.user_id or fact.agent_id,
            stacked(fact.text, fact.fact_id),
            stacked(fact.category, f"{fact.status}, {cell(fact.confidence)}"),
            stacked(fact.true_from, fact.true_to),
        )
        for fact in found
    ]
    print_table(f"{len(rows)} facts", ("whose", "text and fact", "category, status", "true from, to"), rows)


def show_profile(known: "Profile") -> None:
    from mnemolog.projections.queries.facts import PROFILE_SECTIONS  # noqa: PLC0415 - loaded by whoever has a profile

    rows = [
        (section, entry.get("text"), entry.get("confidence"), str(entry.get("at"))[:10])
        for section in PROFILE_SECTIONS
        for entry in getattr(known, section)
    ]
    print_table(f"profile of {cell(known.updated_at) or 'nothing'}", ("section", "text", "sure", "since"), rows)
