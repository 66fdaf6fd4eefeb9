"""Commands that tell how it came: history, explain, why-not, diff."""

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from mnemolog.cli import options
from mnemolog.cli.output import escape, print_json, print_table, stacked, stdout
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemolog.projections.queries.diff import Change, Diff
    from mnemolog.projections.queries.explain import Explanation
    from mnemolog.projections.queries.history import History
    from mnemolog.projections.queries.results import Fact
    from mnemolog.projections.queries.why_not import WhyNot

_KEEPS_OLD_FACT = frozenset({"fact_extended", "facts_related", "fact_pending", "pending_rejected"})


def history(
    *,
    fact_id: Annotated[UUID, typer.Argument(help="any version of the fact")],
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a fact's versions, and every event that made or touched them, with the reasons."""
    story = call_client(lambda client: client.history(fact_id), tenant=tenant)
    print_json(story) if as_json else show_history(story)


def explain(
    *,
    fact_id: Annotated[UUID, typer.Argument(help="the fact")],
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Explain a fact: where it comes from, how it was read and decided, and what happened to it since."""
    explanation = call_client(lambda client: client.explain(fact_id), tenant=tenant)
    print_json(explanation) if as_json else show_explanation(explanation)


def why_not(
    *,
    turn_id: Annotated[str, typer.Argument(help="the turn")],
    user: options.TurnOwner = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell of each statement of a turn that became no fact why it did not."""
    answer = call_client(lambda client: client.why_not(turn_id, user_id=user), tenant=tenant)
    print_json(answer) if as_json else show_why_not(answer)


def diff(
    *,
    since: Annotated[str, typer.Option("--since", help="a day, or a time as ISO 8601; UTC unless it says otherwise")],
    until: Annotated[str | None, typer.Option("--until", help="the same; now unless given", show_default=False)] = None,
    axis: Annotated[
        Literal["believed", "true"],
        typer.Option("--axis", help="by when it was decided, or by when it became so as known now"),
    ] = "believed",
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what changed between two instants, and what is believed at the later one and was not at the earlier."""
    begin, end = options.parse_time(since), options.parse_time(until) if until else None
    changes = call_client(
        lambda client: client.diff(begin, end, user_id=user, agent_id=agent, app_id=app, run_id=run, axis=axis),
        tenant=tenant,
    )
    print_json(changes) if as_json else show_diff(changes)


def show_history(history: "History") -> None:
    versions = [
        (
            stacked(f"{fact.text} ({fact.status})", fact.fact_id),
            stacked(fact.true_from, fact.true_to),
            stacked(fact.believed_from, fact.believed_to),
        )
        for fact in history.versions
    ]
    print_table(f"{len(versions)} versions", ("text and fact", "true from, to", "believed from, to"), versions)
    events = [
        (
            touch.decided_at,
            stacked(touch.event, *(["undone"] if touch.undone else [])),
            stacked(touch.reason, touch.source_id),
        )
        for touch in history.events
    ]
    print_table(f"{len(events)} events", ("decided", "event", "because, of turn"), events)
    if history.relations:
        rows = [(one.text, one.relation, one.related_text) for one in history.relations]
        print_table(f"{len(rows)} relations", ("fact", "relation", "to"), rows)


def show_explanation(explanation: "Explanation") -> None:
    for paragraph in explanation.words:
        stdout().print(f"* {escape(paragraph)}")


def show_why_not(report: "WhyNot") -> None:
    stdout().print(f"[bold]{escape(report.turn_id)}[/]: {report.status}, {report.facts} facts")
    rows = [(one.reason, stacked(one.text or "the turn as a whole", one.because)) for one in report.missing]
    print_table(f"{len(rows)} statements became no fact", ("reason", "statement, because"), rows)


def show_diff(changes: "Diff") -> None:
    from mnemolog.projections.queries.diff import CHANGE_KINDS  # noqa: PLC0415 - loaded by whoever has a diff

    rows = [
        (change.at, kind, stacked(change.text, *_details(change)))
        for kind in CHANGE_KINDS
        for change in getattr(changes, kind)
    ]
    when = "decided" if changes.axis == "believed" else "became so"
    print_table(f"{len(rows)} changes", (when, "kind", "text, because"), rows)
    for title, facts in (("believed now and not then", changes.gained), ("believed then and not now", changes.lost)):
        _show_facts(title, facts)
    stdout().print(f"{changes.skipped} statements repeated what was known")


def _details(change: "Change") -> "Sequence[str]":
    notes = ["taken back since"] if change.undone else []
    to_old = "beside" if change.event in _KEEPS_OLD_FACT else "instead of"
    return [*(f"{to_old}: {old.text}" for old in change.old), change.reason, *notes]


def _show_facts(title: str, facts: "Sequence[Fact]") -> None:
    if facts:
        rows = [(stacked(fact.text, fact.fact_id), stacked(fact.true_from, fact.true_to)) for fact in facts]
        print_table(f"{len(rows)} {title}", ("text and fact", "true from, to"), rows)
