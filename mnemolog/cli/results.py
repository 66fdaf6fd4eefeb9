"""How the results of the client are shown to people."""

from typing import TYPE_CHECKING

from mnemolog.cli.output import cell, escape, print_table, stacked, stderr, stdout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from mnemolog.client.query_embedder import SearchResult
    from mnemolog.client.receipts import CommandReceipt
    from mnemolog.projections.queries.diff import Change, Diff
    from mnemolog.projections.queries.explain import Explanation
    from mnemolog.projections.queries.history import History
    from mnemolog.projections.queries.pending import PendingFact, UnresolvedFact
    from mnemolog.projections.queries.quality import DecisionQuality
    from mnemolog.projections.queries.results import Fact, Profile, WriteResult
    from mnemolog.projections.queries.trace import Trace, TracedDecision
    from mnemolog.projections.queries.why_not import WhyNot

_KEEPS_OLD_FACT = frozenset({"fact_extended", "facts_related", "fact_pending", "pending_rejected"})


def show_status(result: "WriteResult") -> None:
    why = f" ({escape(result.error)})" if result.error else ""
    what = f" ({result.source_kind} {result.order})" if result.order else ""
    again = f", attempt {result.attempt}" if result.attempt > 1 else ""
    stdout().print(f"[bold]{escape(result.turn_id)}[/]{what}: {result.status}{again}{why}")
    if result.memories:
        rows = [
            (stacked(one.event, one.action) if one.action else one.event, stacked(one.text, one.fact_id), one.reason)
            for one in result.memories
        ]
        print_table("changes", ("event", "text and fact", "reason"), rows)
    if result.status != "pending":
        stdout().print(
            f"{result.facts_added} added, {result.facts_updated} updated, {result.facts_unchanged} unchanged, "
            f"{result.facts_deleted} deleted, {result.facts_pending} pending, {result.conflicts} conflicts"
        )
    stdout().print(
        f"{result.llm_calls} LLM calls, {cell(result.embedding_calls)} embedding calls, "
        f"{result.tokens.total} tokens, {cell(result.duration_ms)} ms"
    )
    if result.trace is not None:
        _show_trace(result, result.trace)


def _show_trace(result: "WriteResult", trace: "Trace") -> None:
    costs = [
        (
            stage.stage,
            f"{stage.milliseconds:.1f}",
            stage.llm_calls,
            stage.embedding_calls,
            f"{stage.tokens.input} + {stage.tokens.output}",
            stacked(", ".join(stage.models), ", ".join(stage.prompt_versions)),
        )
        for stage in result.stages
    ]
    print_table("cost by stage", ("stage", "ms", "LLM", "embedding", "tokens", "model, prompt"), costs)
    rows = []
    for one in trace.decisions:
        candidates = (f"{known.similarity:.3f} {known.text or known.fact_id}" for known in one.retrieved)
        rows.append((one.event, stacked(one.statement, *candidates), stacked(*_reasons(one))))
    print_table("decisions", ("event", "statement, candidates", "decided by, reason"), rows)
    if trace.reprompts:
        print_table("re-prompts", ("stage", "complaint"), [(one.stage, one.complaint) for one in trace.reprompts])
    if trace.omitted:
        omitted = [(one.stage, one.text, stacked(one.reason, one.similarity)) for one in trace.omitted]
        print_table("statements left out", ("stage", "statement", "reason"), omitted)


def _reasons(decided: "TracedDecision") -> "Iterator[str]":
    yield decided.by
    yield decided.reason
    if decided.verdict:
        yield f"verdict {decided.verdict}" + (f", blocked by guard {decided.guard}" if decided.guard else "")
    if decided.model:
        yield f"{decided.model}, {decided.prompt_version}"
    for one in decided.before:
        yield f"before: {one.text}"


def show_results(results: "Sequence[WriteResult]") -> None:
    if not results:
        stdout().print("no scope matches: no command was sent")
    for result in results:
        show_status(result)


def show_receipts(receipts: "Sequence[CommandReceipt]") -> None:
    if not receipts:
        stdout().print("no scope matches: no command was sent")
    for receipt in receipts:
        command_id = escape(receipt.command_id)
        stdout().print(f"[bold]{command_id}[/]: sent; `mnemolog status {command_id}` shows the result")


def show_search(found: "SearchResult") -> None:
    if not found.hits:
        stdout().print(escape(found.notice or ""))
        return
    rows = [(hit.score.total, hit.score.similarity, _with_flags(hit.fact), hit.fact.true_from) for hit in found.hits]
    print_table(f"{len(rows)} facts ({found.mode})", ("score", "similarity", "text and fact", "true from"), rows)
    if found.notice:
        stderr().print(f"[yellow]note:[/] {escape(found.notice)}")


def _with_flags(fact: "Fact") -> "Text":
    flags = [fact.status] if fact.status != "active" else []
    return stacked(fact.text, fact.fact_id, *flags, *(["unresolved"] if fact.unresolved else []))


def show_facts(found: "Sequence[Fact]") -> None:
    rows = [
        (
            fact.user_id or fact.agent_id,
            stacked(fact.text, fact.fact_id),
            stacked(
                fact.category,
                f"{'begins later' if fact.begins_later else fact.status}, {cell(fact.confidence)}",
            ),
            stacked(fact.true_from, fact.true_to),
        )
        for fact in found
    ]
    print_table(f"{len(rows)} facts", ("user or agent", "text and fact", "category, status", "true from, to"), rows)


def show_profile(known: "Profile") -> None:
    from mnemolog.projections.queries.facts import PROFILE_SECTIONS  # noqa: PLC0415 - its drivers are loaded by now

    rows = [
        (section, entry.get("text"), entry.get("confidence"), str(entry.get("at"))[:10])
        for section in PROFILE_SECTIONS
        for entry in getattr(known, section)
    ]
    print_table(f"profile: {cell(known.updated_at) or 'empty'}", ("section", "text", "confidence", "since"), rows)


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
    columns = ("new fact, excerpt", "action, known facts", "guard, reason", "age, since")
    print_table(f"{len(rows)} pending", columns, rows)


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
    print_table(f"{len(rows)} unresolved", ("fact, excerpt", "beside", "reason", "age, since"), rows)


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
        (one.decided_at, stacked(one.event, *(["undone"] if one.undone else [])), stacked(one.reason, one.source_id))
        for one in history.events
    ]
    print_table(f"{len(events)} events", ("decided", "event", "reason, turn"), events)
    if history.relations:
        rows = [(one.text, one.relation, one.related_text) for one in history.relations]
        print_table(f"{len(rows)} relations", ("fact", "relation", "to"), rows)


def show_explanation(explanation: "Explanation") -> None:
    for paragraph in explanation.words:
        stdout().print(f"* {escape(paragraph)}")


def show_why_not(report: "WhyNot") -> None:
    stdout().print(f"[bold]{escape(report.turn_id)}[/]: {report.status}, {report.facts} facts")
    rows = [(one.reason, stacked(one.text or "the turn as a whole", one.because)) for one in report.missing]
    print_table(f"{len(rows)} statements not stored", ("kind", "statement, reason"), rows)


def show_diff(changes: "Diff") -> None:
    rows = [(change.at, kind, stacked(change.text, *_details(change))) for kind, change in changes.in_order]
    when = "decided" if changes.axis == "believed" else "true from"
    print_table(f"{len(rows)} changes", (when, "kind", "text, reason"), rows)
    for facts, known, unknown in ((changes.gained, "end", "start"), (changes.lost, "start", "end")):
        if facts:
            spans = [(stacked(fact.text, fact.fact_id), stacked(fact.true_from, fact.true_to)) for fact in facts]
            print_table(
                f"{len(spans)} known at the {known}, not at the {unknown}", ("text and fact", "true from, to"), spans
            )
    stdout().print(f"{changes.skipped} repeated statements")


def _details(change: "Change") -> "Sequence[str]":
    to_old = "ended" if change.text is None else "beside" if change.event in _KEEPS_OLD_FACT else "instead of"
    notes = [
        *([f"{change.status} from then on"] if change.status else []),
        *(["undone since"] if change.undone else []),
    ]
    return [*(f"{to_old}: {old.text}" for old in change.old), change.reason, *notes]


def show_quality(figures: "DecisionQuality") -> None:
    rows = [
        (one.model, one.prompt_version, one.event, one.overwrites, one.undone, one.rejected, one.corrected)
        for one in figures.overwrites
    ]
    print_table(
        f"overwrites by models, rate of wrong ones {cell(figures.wrong_overwrite_rate) or 'unknown'}",
        ("model", "prompt", "event", "number", "undone", "rejected", "corrected"),
        rows,
    )
    held = figures.held
    rate = cell(held.resolution_rate) or "unknown"
    stdout().print(
        f"pending: {held.held}, confirmed {held.confirmed}, rejected {held.rejected}, overtaken {held.overtaken} "
        f"(resolution rate {rate}); {held.open} wait now, the oldest for {held.oldest_seconds:.0f} s"
    )
    stdout().print(f"unresolved: {figures.unresolved}; decisions on what had changed (stale): {figures.stale}")
