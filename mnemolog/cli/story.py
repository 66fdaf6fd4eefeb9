"""Commands that tell how it came: history, diff."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from mnemolog.cli import options
from mnemolog.cli.output import emit, stacked, stdout, table
from mnemolog.cli.running import ask

if TYPE_CHECKING:
    from projections.diffing import Diff
    from projections.history import History

_KINDS = ("added", "replaced", "contradicted", "merged", "confirmed")


def history(
    *,
    fact_id: Annotated[UUID, typer.Argument(help="any version of the fact")],
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a fact's versions, and every event that made or touched them, with the reasons."""
    story = ask(lambda client: client.history(fact_id), tenant=tenant)
    emit(story) if as_json else show_history(story)


def diff(
    *,
    since: Annotated[str, typer.Option("--since", help="a day, or a time as ISO 8601; UTC unless it says otherwise")],
    until: Annotated[str | None, typer.Option("--until", help="the same; now unless given", show_default=False)] = None,
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what changed in what is believed between two instants."""
    begin, end = options.moment(since), options.moment(until) if until else None
    changes = ask(
        lambda client: client.diff(begin, end, user_id=user, agent_id=agent, app_id=app, run_id=run), tenant=tenant
    )
    emit(changes) if as_json else show_diff(changes)


def show_history(story: "History") -> None:
    versions = [
        (
            stacked(f"{fact.text} ({fact.status})", fact.fact_id),
            stacked(fact.true_from, fact.true_to),
            stacked(fact.believed_from, fact.believed_to),
        )
        for fact in story.versions
    ]
    table(f"{len(versions)} versions", ("text and fact", "true from, to", "believed from, to"), versions)
    events = [(touch.decided_at, touch.event, stacked(touch.reason, touch.source_id)) for touch in story.events]
    table(f"{len(events)} events", ("decided", "event", "because, of turn"), events)


def show_diff(changes: "Diff") -> None:
    rows = [
        (change.at, kind, stacked(change.text, *(f"instead of: {old.text}" for old in change.old), change.reason))
        for kind in _KINDS
        for change in getattr(changes, kind)
    ]
    table(f"{len(rows)} changes", ("decided", "kind", "text, because"), rows)
    stdout().print(f"{changes.skipped} statements repeated what was known")
