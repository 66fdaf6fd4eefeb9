"""Commands that ask: status, search, facts, profile."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.output import cell, emit, escape, stacked, stderr, stdout, table
from mnemolog.cli.running import ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemolog.searching import SearchResult
    from projections.results import Fact, Profile, WriteResult


def status(
    *,
    turn_id: Annotated[str, typer.Argument(help="the turn, or topic/partition/offset of a record that was none")],
    user: options.TurnOwner = None,
    tenant: options.Tenant = None,
    wait: Annotated[float, typer.Option("--wait", min=0, help="seconds to wait for its end")] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Tell how a turn ended and what it did."""
    if wait:
        result = ask(lambda client: client.wait(turn_id, timeout=wait, user_id=user), tenant=tenant)
    else:
        result = ask(lambda client: client.status(turn_id, user_id=user), tenant=tenant)
    emit(result) if as_json else show_status(result)


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
    found = ask(
        lambda client: client.search(query, user_id=user, agent_id=agent, app_id=app, run_id=run, limit=limit),
        tenant=tenant,
    )
    emit(found) if as_json else show_search(found)


def facts(
    *,
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    every: Annotated[bool, typer.Option("--all", help="every version that ever was")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the facts of a scope that hold now."""
    found = ask(
        lambda client: client.facts(user_id=user, agent_id=agent, app_id=app, run_id=run, all_versions=every),
        tenant=tenant,
    )
    emit(found) if as_json else show_facts(found)


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
    known = ask(lambda client: client.profile(user_id=user, agent_id=agent, app_id=app, run_id=run), tenant=tenant)
    emit(known) if as_json else show_profile(known)


def show_status(result: "WriteResult") -> None:
    why = f" ({escape(result.error)})" if result.error else ""
    stdout().print(f"[bold]{escape(result.turn_id)}[/]: {result.status}{why}")
    if result.memories:
        rows = [(one.event, stacked(one.text, one.fact_id), one.reason) for one in result.memories]
        table("what it did", ("event", "text and fact", "because"), rows)
    stdout().print(
        f"{result.llm_calls} LLM calls, {cell(result.embedding_calls)} embedding calls, "
        f"{result.tokens.total} tokens, {cell(result.duration_ms)} ms"
    )


def show_search(found: "SearchResult") -> None:
    rows = [
        (hit.score.total, hit.score.similarity, stacked(hit.fact.text, hit.fact.fact_id), hit.fact.true_from)
        for hit in found.hits
    ]
    table(f"{len(rows)} facts ({found.mode})", ("score", "similar", "text and fact", "true from"), rows)
    if found.notice:
        stderr().print(f"[yellow]note:[/] {escape(found.notice)}")


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
    table(f"{len(rows)} facts", ("whose", "text and fact", "category, status", "true from, to"), rows)


def show_profile(known: "Profile") -> None:
    from projections.queries import SECTIONS  # noqa: PLC0415 - loaded by whoever has a profile

    rows = [
        (section, entry.get("text"), entry.get("confidence"), str(entry.get("at"))[:10])
        for section in SECTIONS
        for entry in getattr(known, section)
    ]
    table(f"profile of {cell(known.updated_at) or 'nothing'}", ("section", "text", "sure", "since"), rows)
