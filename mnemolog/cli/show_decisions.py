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
    from mnemolog.client.producer import CommandReceipt, TurnReceipt
    from mnemolog.projections.queries.results import EventResult, Tokens, WriteResult
    from mnemolog.projections.queries.trace import Trace, TracedCall, TracedDecision


def show_status(result: "WriteResult", ids: ShortIds = WHOLE_IDS) -> None:
    again = f", attempt {result.attempt}" if result.attempt > 1 else ""
    what = f"command {result.turn_id} ({result.order})" if result.order else f"turn {result.turn_id}"
    print_line(f"{what}: {result.status}{again}")
    if result.error:
        print_text(f"reason: {result.error}")
    for note in result.notes:
        print_text(f"note: {note}")
    if result.status == "pending":
        print_line(f"wait for its end: {program_name()} status {shlex.quote(result.turn_id)} --wait")
        return
    if result.memories:
        print_entries(_totals(result), [_change(one, ids) for one in result.memories])
    print_text(_cost(result))
    if result.trace is not None:
        _show_trace(result, result.trace, ids)


def _change(one: "EventResult", ids: ShortIds) -> Entry:
    about = one.fact_id or next(iter(one.targets), None)  # an undo is about no single fact
    return Entry(ids(about), one.text or one.event, list(_reason(one)))


def _reason(one: "EventResult") -> Iterator[str]:
    action = f" ({one.action})" if one.action else ""
    flags = [*(["unresolved"] if one.unresolved else []), *(["needs a person"] if one.needs_human else [])]
    yield f"{one.event}{action}: {one.reason}" + (f" ({', '.join(flags)})" if flags else "")


def _totals(result: "WriteResult") -> str:
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


def _cost(result: "WriteResult") -> str:
    calls = result.embedding_calls
    embedding = f"{calls:.2f} of an embedding call" if 0 < calls < 1 else counted(round(calls), "embedding call")
    parts = [counted(result.llm_calls, "LLM call"), embedding]
    parts += [counted(result.tokens.total, "token")] if result.tokens.total else []
    parts += [str(result.cost)] if result.cost.amount != "0" else []
    parts += [age_of_milliseconds(result.duration_ms)] if result.duration_ms is not None else []
    return "cost: " + ", ".join(parts)


def _show_trace(result: "WriteResult", trace: "Trace", ids: ShortIds) -> None:
    costs = [
        (
            stage.stage,
            f"{stage.milliseconds:.1f}",
            stage.llm_calls,
            stage.embedding_calls,
            _tokens(stage.tokens),
            stage.cost.amount or "unknown",
            ", ".join((*stage.models, *stage.prompt_versions)),
        )
        for stage in result.stages
    ]
    print_table("cost by stage", ("stage", "ms", "LLM", "embedding", "tokens", "cost", "model, prompt"), costs)
    decisions = [
        Entry(ids(one.fact_id), f"{one.event}: {one.statement or ''}", list(_decided(one, ids)))
        for one in trace.decisions
    ]
    print_entries(counted(len(decisions), "decision"), decisions)
    show_names(trace.names)
    show_shared_calls(trace.shared_calls)
    if trace.background.turn_ids:
        print_line(f"the extraction was shown turns {', '.join(trace.background.turn_ids)}")
    if trace.background.facts:
        known = [Entry(ids(fact.fact_id), fact.text or "") for fact in trace.background.facts]
        print_entries("the extraction was shown facts", known)
    if trace.background.entities:
        told = ", ".join(one.name or str(one.entity_id) for one in trace.background.entities)
        print_text(f"the extraction was told the names of {told}")
    if mood := trace.mood:
        print_line(f"mood: {mood['emotion']}, intensity {mood['intensity']:g}, {mood['energy']} energy")
    for note in trace.background.notes:
        print_text(f"note: {note}")
    if trace.reprompts:
        print_entries("asked again", [Entry(one.stage, one.complaint) for one in trace.reprompts])
    if trace.omitted:
        omitted = [Entry(one.stage, one.text, [one.reason.replace("_", " ")]) for one in trace.omitted]
        print_entries("statements left out", omitted)


def show_shared_calls(calls: "Sequence[TracedCall]") -> None:
    from mnemolog.texts import shared_call_sentence  # noqa: PLC0415 - loads the results of queries

    for call in calls:
        print_text(shared_call_sentence(call))


def _tokens(tokens: "Tokens") -> str:
    cached = f" ({tokens.cached} cached)" if tokens.cached is not None else ""
    return f"{tokens.input}{cached} + {tokens.output}"


def _decided(decided: "TracedDecision", ids: ShortIds) -> Iterator[str]:
    yield f"decided by {decided.by}: {decided.reason}"
    if decided.verdict:
        yield f"verdict {decided.verdict}" + (f", blocked by guard {decided.guard}" if decided.guard else "")
    if decided.model:
        yield f"{decided.model}, {decided.prompt_version}"
    for known in decided.retrieved:
        yield f"compared with {ids(known.fact_id)} {known.text or ''} (similarity {known.similarity:.3f})"
    for one in decided.before:
        yield f"before: {one.text}"


def show_results(results: "Sequence[WriteResult]", ids: ShortIds = WHOLE_IDS) -> None:
    if not results:
        print_text("no scope matches: no command was sent")
    for result in results:
        show_status(result, ids)


def show_receipts(receipts: "Sequence[CommandReceipt]") -> None:
    if not receipts:
        print_text("no scope matches: no command was sent")
    for receipt in receipts:
        print_line(f"command {receipt.command_id} was sent")
        _print_status_command(receipt.command_id, receipt)


def show_turn_receipt(receipt: "TurnReceipt") -> None:
    """A turn that was published, and the command that tells what became of it."""
    print_line(f"turn {receipt.turn_id} was published")
    for note in receipt.notes:
        print_text(f"note: {note}")
    _print_status_command(receipt.turn_id, receipt)


def _print_status_command(published_id: str, receipt: "CommandReceipt | TurnReceipt") -> None:
    print_line(f"its result: {program_name()} status {shlex.quote(published_id)}{turn_options(receipt)} --wait")


if TYPE_CHECKING:
    from uuid import UUID

    from mnemolog.projections.queries.diff import Change, Diff
    from mnemolog.projections.queries.explain import Explanation, FactEvent, FactRelation, History
    from mnemolog.projections.queries.results import Fact
    from mnemolog.projections.queries.write_result import WhyNot

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


if TYPE_CHECKING:
    from mnemolog.projections.queries.quality import CostFigures, DecisionQuality, FeedbackFigures, OverwriteCounts


def show_quality(figures: "DecisionQuality", _: ShortIds = WHOLE_IDS) -> None:
    print_text(f"decisions from {moment(figures.since)} to {moment(figures.until)}")
    print_text(
        f"{counted(figures.decisions, 'decision')} on statements, overwrite rate {_rate(figures.overwrite_rate)}, "
        f"rate of wrong ones {_rate(figures.wrong_overwrite_rate)}"
    )
    of_models = [one for one in figures.overwrites if one.by == "model"]
    others = [one for one in figures.overwrites if one.by != "model"]
    if of_models:
        entries = [
            Entry(one.event, _results(one), [", ".join(filter(None, (one.model, one.prompt_version)))])
            for one in of_models
        ]
        print_entries("overwrites proposed by models", entries)
    else:
        print_text("no overwrites proposed by models")
    if others:
        entries = [Entry(one.event, counted(one.overwrites, "overwrite"), [f"by {one.by}"]) for one in others]
        print_entries("other overwrites", entries)
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
    if figures.costs.models:
        _show_costs(figures.costs)
    if figures.feedback.used:
        print_text(_feedback(figures.feedback))


def _show_costs(costs: "CostFigures") -> None:
    """The days, the money in all and for a thousand turns, and each model."""
    often = f", {costs.per_thousand_turns} for a thousand turns" if costs.per_thousand_turns else ""
    print_text(
        f"cost of {counted(costs.turns, 'turn')} published from {costs.first} to {costs.last} (UTC): "
        f"{costs.total}{often}"
    )
    rows = [
        (one.model, one.input_tokens, one.cached_tokens, one.output_tokens, one.cost.amount or "unknown")
        for one in costs.models
    ]
    print_table("cost by model", ("model", "input", "cached", "output", "cost"), rows)


def _feedback(figures: "FeedbackFigures") -> str:
    recall = ", ".join(f"{cell(share)} in the first {k}" for k, share in figures.recall_at.items() if share is not None)
    words = f"feedback: {counted(figures.used, 'fact')} used, {figures.missed} of them not shown"
    return f"{words}; recall {recall}" if recall else words


def _rate(share: float | None) -> str:
    return cell(share) or "unknown"


def _results(one: "OverwriteCounts") -> str:
    results = (f"{number} {name}" for name, number in one.results.items() if number)
    return f"{counted(one.overwrites, 'overwrite')}: {', '.join(results)}"
