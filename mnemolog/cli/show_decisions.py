"""How ends of turns and commands, histories, explanations and figures of quality are shown to people."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_line, print_text, program_name
from mnemolog.cli.show_facts import show_names, span
from mnemolog.cli.tables import (
    WHOLE_IDS,
    Entry,
    ShortIds,
    age,
    age_of_milliseconds,
    cell,
    counted,
    moment,
    print_entries,
    print_points,
    print_table,
    scope_options,
    turn_options,
)

if TYPE_CHECKING:
    from uuid import UUID

    from mnemolog.projections.queries.diff import Change, Diff
    from mnemolog.projections.queries.explain import Explanation, History
    from mnemolog.projections.queries.quality import DecisionQuality
    from mnemolog.projections.queries.results import Result
    from mnemolog.projections.queries.trace import Trace, TracedCall, TracedDecision
    from mnemolog.projections.queries.write_result import WhyNot

_STANDS_BESIDE = frozenset({"fact_extended", "facts_related", "fact_pending", "pending_rejected"})
"""Events whose fact does not take the place of the known one."""


def show_status(result: "Result", ids: ShortIds = WHOLE_IDS) -> None:
    attempt = f", attempt {result.attempt}" if result.attempt > 1 else ""
    what = f"command {result.turn_id} ({result.order})" if result.order else f"turn {result.turn_id}"
    print_line(f"{what}: {result.status}{attempt}")
    if result.error:
        print_text(f"reason: {result.error}")
    for note in result.notes:
        print_text(f"note: {note}")
    if result.status == "pending":
        options = turn_options(result)
        print_line(f"its result: {program_name()} status {shlex.quote(result.turn_id)}{options} --wait")
        return
    if result.changes:
        entries = []
        for one in result.changes:
            fact = one.fact_id or next(iter(one.targets), None)  # an undo is about no single fact
            action = f" ({one.action})" if one.action else ""
            flags = [*(["unresolved"] if one.unresolved else []), *(["needs a person"] if one.needs_human else [])]
            reason = f"{one.event}{action}: {one.reason}" + (f" ({', '.join(flags)})" if flags else "")
            entries.append(Entry(ids(fact), one.text or one.event, [reason]))
        print_entries(_changed_facts(result), entries)
    print_text(_cost(result))
    if result.trace is not None:
        _show_trace(result, result.trace, ids)


def _changed_facts(result: "Result") -> str:
    counts = {
        "added": result.facts_added,
        "updated": result.facts_updated,
        "unchanged": result.facts_unchanged,
        "ended": result.facts_deleted,
        "pending": result.facts_pending,
    }
    words = [f"{number} {what}" for what, number in counts.items() if number]
    words += [counted(result.conflicts, "conflict")] if result.conflicts else []
    return ", ".join(words) or "no fact changed"


def _cost(result: "Result") -> str:
    calls = result.embedding_calls
    embedding = f"{calls:.2f} of an embedding call" if 0 < calls < 1 else counted(round(calls), "embedding call")
    parts = [counted(result.llm_calls, "LLM call"), embedding]
    parts += [counted(result.tokens.total, "token")] if result.tokens.total else []
    parts += [str(result.cost)] if result.cost.amount != "0" else []
    parts += [age_of_milliseconds(result.duration_ms)] if result.duration_ms is not None else []
    return "cost: " + ", ".join(parts)


def _show_trace(result: "Result", trace: "Trace", ids: ShortIds) -> None:
    costs = []
    for stage in result.stages:
        tokens = stage.tokens
        cached = f" ({tokens.cached} cached)" if tokens.cached is not None else ""
        costs.append(
            (
                stage.stage,
                f"{stage.milliseconds:.1f}",
                stage.llm_calls,
                stage.embedding_calls,
                f"{tokens.input}{cached} + {tokens.output}",
                stage.cost.amount or "unknown",
                ", ".join((*stage.models, *stage.prompt_versions)),
            )
        )
    print_table("cost by stage", ("stage", "ms", "LLM", "embedding", "tokens", "cost", "model, prompt"), costs)
    decisions = [
        Entry(ids(one.fact_id), f"{one.event}: {one.statement or ''}", list(_decision_details(one, ids)))
        for one in trace.decisions
    ]
    print_entries(counted(len(decisions), "decision"), decisions)
    show_names(trace.names)
    show_shared_calls(trace.shared_calls)
    shown = trace.background
    if shown.turn_ids:
        print_line(f"the extraction was shown turns {', '.join(shown.turn_ids)}")
    if shown.facts:
        print_entries(
            "the extraction was shown facts", [Entry(ids(fact.fact_id), fact.text or "") for fact in shown.facts]
        )
    if shown.entities:
        names = ", ".join(one.name or str(one.entity_id) for one in shown.entities)
        print_text(f"the extraction was told the names of {names}")
    if mood := trace.mood:
        print_line(f"mood: {mood['emotion']}, intensity {mood['intensity']:g}, {mood['energy']} energy")
    for note in shown.notes:
        print_text(f"note: {note}")
    if trace.reprompts:
        print_entries("asked again", [Entry(one.stage, one.complaint) for one in trace.reprompts])
    if trace.omitted:
        omitted = [Entry(one.stage, one.text, [one.reason.replace("_", " ")]) for one in trace.omitted]
        print_entries("statements left out", omitted)


def _decision_details(decided: "TracedDecision", ids: ShortIds) -> Iterator[str]:
    yield f"decided by {decided.by}: {decided.reason}"
    if decided.verdict:
        yield f"verdict {decided.verdict}" + (f", blocked by guard {decided.guard}" if decided.guard else "")
    if decided.model:
        yield f"{decided.model}, {decided.prompt_version}"
    for known in decided.retrieved:
        yield f"compared with {ids(known.fact_id)} {known.text or ''} (similarity {known.similarity:.3f})"
    for one in decided.before:
        yield f"before: {one.text}"


def show_shared_calls(calls: "Sequence[TracedCall]") -> None:
    from mnemolog.texts import shared_call_sentence  # noqa: PLC0415 - loads the results of queries

    for call in calls:
        print_text(shared_call_sentence(call))


def show_results(results: "Sequence[Result]", ids: ShortIds = WHOLE_IDS) -> None:
    for result in results:
        show_status(result, ids)


def show_history(history: "History", ids: ShortIds = WHOLE_IDS) -> None:
    versions = []
    for fact in history.versions:
        status = f"{fact.status.replace('_', ' ')}, true {span(fact.true_from, fact.true_to)}"
        believed = f"believed {span(fact.believed_from, fact.believed_to)}"
        versions.append(Entry(ids(fact.fact_id), fact.text, [status, believed]))
    print_entries(counted(len(versions), "version"), versions)
    events = []
    for event in history.events:
        notes = [*(["undone since"] if event.undone else []), *(["stale"] if event.stale else [])]
        what = f"{event.event} on {moment(event.decided_at)}" + (f" ({', '.join(notes)})" if notes else "")
        events.append(Entry(ids(event.event_id), what, [event.reason, f"source {event.source_id}"]))
    print_entries(counted(len(events), "event"), events)
    relations = []
    for one in history.relations:
        ended = "" if one.holds else " (one of them has ended)"
        related = f"{one.relation.replace('similar', 'is similar to')} {ids(one.related_id)} {one.related_text}{ended}"
        relations.append(Entry(ids(one.fact_id), one.text, [related]))
    if relations:
        print_entries(counted(len(relations), "relation"), relations)


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
            entries = [
                Entry(ids(fact.fact_id), fact.text, [f"true {span(fact.true_from, fact.true_to)}"]) for fact in facts
            ]
            print_entries(f"{counted(len(facts), 'fact')} {what}", entries)
    if changes.skipped:
        print_text(f"{counted(changes.skipped, 'statement')} only repeated what was known")


def _facts_of(change: "Change") -> "Iterable[tuple[UUID | None, str]]":
    """The fact that a change brought or is about; the facts that it ended, where nothing took their place."""
    if change.text is not None or not change.old:
        return [(change.fact_id, change.text or change.event)]
    return [(old.fact_id, old.text) for old in change.old]


def _change_details(change: "Change", when: str, ids: ShortIds) -> Iterator[str]:
    if change.text is not None:
        to_old = "beside" if change.event in _STANDS_BESIDE else "instead of"
        yield from (f"{to_old} {ids(old.fact_id)} {old.text}" for old in change.old)
    yield change.reason
    if change.status is not None:
        yield f"{change.status} from then on"
    yield f"{when} {moment(change.at)}" + (", undone since" if change.undone else "")


def show_quality(figures: "DecisionQuality", _: ShortIds = WHOLE_IDS) -> None:
    print_text(f"decisions from {moment(figures.since)} to {moment(figures.until)}")
    print_text(
        f"{counted(figures.decisions, 'decision')} on statements, "
        f"overwrite rate {cell(figures.overwrite_rate) or 'unknown'}, "
        f"rate of wrong ones {cell(figures.wrong_overwrite_rate) or 'unknown'}"
    )
    of_models, others = [], []
    for one in figures.overwrites:
        overwrites = counted(one.overwrites, "overwrite")
        if one.by in ("model", "rule"):
            results = ", ".join(f"{number} {name}" for name, number in one.results.items() if number)
            model = ", ".join(filter(None, (one.model, one.prompt_version)))
            of_models.append(Entry(one.event, f"{overwrites}: {results}", [model]))
        else:
            others.append(Entry(one.event, overwrites, [f"by {one.by}"]))
    if of_models:
        print_entries("overwrites proposed by models", of_models)
    else:
        print_text("no overwrites proposed by models")
    if others:
        print_entries("other overwrites", others)
    held = figures.held
    print_text(
        f"{counted(held.held, 'overwrite')} held back: {held.confirmed} confirmed, {held.rejected} rejected, "
        f"{held.overtaken} overtaken (resolution rate {cell(held.resolution_rate) or 'unknown'})"
    )
    if held.open:
        print_text(f"{held.open} waiting now, the oldest for {age(timedelta(seconds=held.oldest_seconds))}")
    print_text(
        f"{counted(figures.unresolved, 'unresolved fact')}; "
        f"{counted(figures.stale, 'decision')} on what had changed meanwhile (stale)"
    )
    if (costs := figures.costs).models:
        per_thousand = f", {costs.per_thousand_turns} for a thousand turns" if costs.per_thousand_turns else ""
        print_text(
            f"cost of {counted(costs.turns, 'turn')} published from {costs.first} to {costs.last} (UTC): "
            f"{costs.total}{per_thousand}"
        )
        rows = [
            (one.model, one.input_tokens, one.cached_tokens, one.output_tokens, one.cost.amount or "unknown")
            for one in costs.models
        ]
        print_table("cost by model", ("model", "input", "cached", "output", "cost"), rows)
    if (feedback := figures.feedback).used:
        shares = [f"{cell(share)} in the first {k}" for k, share in feedback.recall_at.items() if share is not None]
        recall = f"; recall {', '.join(shares)}" if shares else ""
        print_text(f"feedback: {counted(feedback.used, 'fact')} used, {feedback.missed} of them not shown{recall}")
