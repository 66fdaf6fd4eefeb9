"""Commands that read what is known: status, search, facts, as-of, profile, pending, unresolved, quality."""

from datetime import datetime
from typing import Annotated

import typer

from mnemolog.cli import results
from mnemolog.cli.options import EXACT_SCOPE, Query, query_command, time_option

TurnOwner = Annotated[
    str | None, typer.Option("--user", "-u", help="user id, if several users have this turn id", show_default=False)
]


@query_command(results.show_status, scope={})
def status(
    *,
    turn_id: Annotated[str, typer.Argument(help="the turn or command, or topic/partition/offset of an invalid record")],
    user: TurnOwner = None,
    wait: Annotated[float, typer.Option("--wait", min=0, help="seconds to wait for the result")] = 0,
    attempt: Annotated[
        int, typer.Option("--attempt", min=1, help="which attempt, for a turn that was published again")
    ] = 1,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="also show the trace and the cost of each stage")
    ] = False,
) -> Query:
    """Show the status of a turn or command and what it changed."""
    if wait:
        return lambda client: client.wait(turn_id, timeout=wait, user_id=user, verbose=verbose, attempt=attempt)
    return lambda client: client.status(turn_id, user_id=user, verbose=verbose)


@query_command(results.show_search)
def search(
    *,
    query: Annotated[str, typer.Argument(help="a question, or some words")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="hits at the most")] = 10,
) -> Query:
    """Find the facts nearest to a query in meaning and in words."""
    return lambda client: client.search(query, limit=limit)


@query_command(results.show_facts)
def facts(*, all_versions: Annotated[bool, typer.Option("--all", help="include all versions")] = False) -> Query:
    """List the current facts of a scope."""
    return lambda client: client.facts(all_versions=all_versions)


@query_command(results.show_facts)
def as_of(
    *,
    believed_at: Annotated[datetime, time_option("--believed", "what was known at this time: a day, or ISO 8601")],
    true_at: Annotated[
        datetime | None, time_option("--true", "what was true at this time; the same unless given")
    ] = None,
) -> Query:
    """List the facts known at one time as true at another."""
    return lambda client: client.facts_as_of(believed_at, true_at)


@query_command(results.show_profile, scope=EXACT_SCOPE)
def profile() -> Query:
    """Show what is known of one scope, by section."""
    return lambda client: client.profile()


@query_command(results.show_pending)
def pending() -> Query:
    """List changes that wait for a confirmation: the new fact, the known facts, and the guard that holds it."""
    return lambda client: client.pending()


@query_command(results.show_unresolved)
def unresolved() -> Query:
    """List facts that were added beside others because their conflict could not be decided."""
    return lambda client: client.unresolved()


@query_command(results.show_quality, default_id="**")
def quality(
    *,
    since: Annotated[datetime | None, time_option("--since", "a day, or ISO 8601; 30 days ago unless given")] = None,
    until: Annotated[datetime | None, time_option("--until", "the same; now unless given")] = None,
) -> Query:
    """Show how often memory was overwritten, how often wrongly, and what is pending."""
    return lambda client: client.quality(since, until)
