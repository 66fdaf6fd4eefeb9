"""How the ends of turns and commands are shown: what they changed, and on request each decision and its cost."""

import shlex
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_line, print_text, program_name
from mnemolog.cli.results.entities import show_names
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries, print_table
from mnemolog.cli.results.words import age_of_milliseconds, counted, turn_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mnemolog.client.receipts import CommandReceipt, TurnReceipt
    from mnemolog.projections.queries.results import EventResult, Tokens, WriteResult
    from mnemolog.projections.queries.turns.trace import Trace, TracedCall, TracedDecision


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


def _reason(one: "EventResult") -> "Iterator[str]":
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


def _decided(decided: "TracedDecision", ids: ShortIds) -> "Iterator[str]":
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
