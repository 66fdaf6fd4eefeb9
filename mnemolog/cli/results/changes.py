"""How what happened is shown: the history of a fact, its explanation, what became nothing, and what changed."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_line, print_text, program_name
from mnemolog.cli.results.entities import show_names
from mnemolog.cli.results.facts import span
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries, print_points
from mnemolog.cli.results.words import counted, moment, scope_options
from mnemolog.cli.results.writes import show_shared_calls

if TYPE_CHECKING:
    from uuid import UUID

    from mnemolog.projections.queries.diff import Change, Diff
    from mnemolog.projections.queries.explain import Explanation
    from mnemolog.projections.queries.history import FactEvent, FactRelation, History
    from mnemolog.projections.queries.results import Fact
    from mnemolog.projections.queries.turns.why_not import WhyNot

_KEEPS_OLD_FACT = frozenset({"fact_extended", "facts_related", "fact_pending", "pending_rejected"})


def show_history(history: "History", ids: ShortIds = WHOLE_IDS) -> None:
    print_entries(
        counted(len(history.versions), "version"),
        [Entry(ids(fact.fact_id), fact.text, list(_version_details(fact))) for fact in history.versions],
    )
    print_entries(
        counted(len(history.events), "event"),
        [Entry(ids(one.event_id), _happened(one), list(_event_details(one))) for one in history.events],
    )
    if history.relations:
        relations = [Entry(ids(one.fact_id), one.text, [_related(one, ids)]) for one in history.relations]
        print_entries(counted(len(relations), "relation"), relations)


def _version_details(fact: "Fact") -> Iterator[str]:
    yield f"{fact.status.replace('_', ' ')}, true {span(fact.true_from, fact.true_to)}"
    yield f"believed {span(fact.believed_from, fact.believed_to)}"


def _happened(event: "FactEvent") -> str:
    notes = [*(["undone since"] if event.undone else []), *(["stale"] if event.stale else [])]
    return f"{event.event} on {moment(event.decided_at)}" + (f" ({', '.join(notes)})" if notes else "")


def _event_details(event: "FactEvent") -> Iterator[str]:
    yield event.reason
    yield f"source {event.source_id}"


def _related(one: "FactRelation", ids: ShortIds) -> str:
    ended = "" if one.holds else " (one of them has ended)"
    return f"{one.relation.replace('similar', 'is similar to')} {ids(one.related_id)} {one.related_text}{ended}"


def show_explanation(explanation: "Explanation", ids: ShortIds = WHOLE_IDS) -> None:
    print_points(explanation.words)
    fact, source, program = explanation.fact, explanation.source, program_name()
    scope = scope_options(fact)
    print_line(f"all versions: {program} history {ids(fact.fact_id)}")
    print_line(f"wrong:        {program} correct {ids(fact.fact_id)} TEXT {scope}")
    print_line(f"take back:    {program} undo --turn {shlex.quote(source.source_id)} {scope}")


def show_why_not(report: "WhyNot", _: ShortIds = WHOLE_IDS) -> None:
    print_line(f"turn {report.turn_id}: {report.status}, {counted(report.facts, 'fact')}")
    show_shared_calls(report.shared_calls)
    rows = [
        Entry("-", one.text or "the turn as a whole", [f"{one.reason.replace('_', ' ')}: {one.because}"])
        for one in report.missing
    ]
    if rows:
        print_entries(counted(len(rows), "statement") + " not stored", rows)
    else:
        print_text("every statement became a fact")
    show_names(report.names)


def show_diff(changes: "Diff", ids: ShortIds = WHOLE_IDS) -> None:
    when = "decided" if changes.axis == "believed" else "so since"
    interval = f"from {moment(changes.since)} to {moment(changes.until)}"
    rows = [
        Entry(ids(fact_id), f"{kind}: {text}", list(_change_details(change, when, ids)))
        for kind, change in changes.in_order
        for fact_id, text in _facts_of(change)
    ]
    print_entries(f"{counted(len(rows), 'change')} {interval}", rows)
    for facts, what in ((changes.gained, "known at its end and not at its start"), (changes.lost, "no longer known")):
        if facts:
            print_entries(f"{counted(len(facts), 'fact')} {what}", _spans(facts, ids))
    if changes.skipped:
        print_text(f"{counted(changes.skipped, 'statement')} only repeated what was known")


def _facts_of(change: "Change") -> "Iterable[tuple[UUID | None, str]]":
    """The fact that a change brought or is about; where nothing took their place, those that it ended."""
    if change.text is not None or not change.old:
        return [(change.fact_id, change.text or change.event)]
    return [(old.fact_id, old.text) for old in change.old]


def _change_details(change: "Change", when: str, ids: ShortIds) -> Iterator[str]:
    if change.text is not None:
        to_old = "beside" if change.event in _KEEPS_OLD_FACT else "instead of"
        yield from (f"{to_old} {ids(old.fact_id)} {old.text}" for old in change.old)
    yield change.reason
    if change.status is not None:
        yield f"{change.status} from then on"
    yield f"{when} {moment(change.at)}" + (", undone since" if change.undone else "")


def _spans(facts: "Sequence[Fact]", ids: ShortIds) -> list[Entry]:
    return [Entry(ids(fact.fact_id), fact.text, [f"true {span(fact.true_from, fact.true_to)}"]) for fact in facts]
