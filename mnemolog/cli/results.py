"""How the result of a write is shown: what it did, what it cost, and on request how it came about."""

from typing import TYPE_CHECKING

from mnemolog.cli.output import cell, escape, print_table, stacked, stdout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemolog.projections.queries.results import WriteResult
    from mnemolog.projections.queries.trace import Trace, TracedDecision


def show_status(result: "WriteResult") -> None:
    why = f" ({escape(result.error)})" if result.error else ""
    what = f" ({result.source_kind} {result.order})" if result.order else ""
    again = f", attempt {result.attempt}" if result.attempt > 1 else ""
    stdout().print(f"[bold]{escape(result.turn_id)}[/]{what}: {result.status}{again}{why}")
    if result.memories:
        rows = [
            (
                one.event if one.action is None else stacked(one.event, one.action),
                stacked(one.text, one.fact_id),
                one.reason,
            )
            for one in result.memories
        ]
        print_table("what it did", ("event", "text and fact", "because"), rows)
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
        _show_stages(result)
        _show_trace(result.trace)


def _show_stages(result: "WriteResult") -> None:
    rows = [
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
    print_table("what it cost", ("stage", "ms", "LLM", "embedding", "tokens", "model, prompt"), rows)


def _show_trace(trace: "Trace") -> None:
    rows = [(one.event, stacked(one.statement, *_candidates(one)), stacked(*_reasons(one))) for one in trace.decisions]
    print_table("how it was decided", ("event", "statement, and what it was held against", "by, because"), rows)
    if trace.reprompts:
        print_table(
            "what a model was told again",
            ("stage", "complaint"),
            [(one.stage, one.complaint) for one in trace.reprompts],
        )
    if trace.omitted:
        omitted = [(one.stage, one.text, stacked(one.reason, one.similarity)) for one in trace.omitted]
        print_table("what was left out", ("stage", "statement", "because"), omitted)


def _candidates(decided: "TracedDecision") -> "Iterator[str]":
    for one in decided.retrieved:
        yield f"{one.similarity:.3f} {one.text or one.fact_id}"


def _reasons(decided: "TracedDecision") -> "Iterator[str]":
    yield decided.by
    yield decided.reason
    if decided.verdict:
        yield f"verdict {decided.verdict}" + (f", held by {decided.guard}" if decided.guard else "")
    if decided.model:
        yield f"{decided.model}, {decided.prompt_version}"
    for one in decided.before:
        yield f"before: {one.text}"
