"""A verdict that ends what it aims at: carried out, or held back by the policy that stands in its way."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas.events import (
    FactAdded,
    FactContradicted,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactsMerged,
    MemoryEvent,
)
from mnemolog.schemas.facts import Candidate, NewFact
from mnemolog.schemas.provenance import Decision, Guard
from mnemolog.streams.resolution.event_builder import EventBuilder, LlmDecision, fact_before
from mnemolog.streams.resolution.guards import OVERWRITES, TimedFact, find_guard, is_planned, next_version_start
from mnemolog.streams.resolution.repetitions import confirm_pending, supports
from mnemolog.streams.resolution.turn_state import TurnState

GUARD_REASONS: Final[Mapping[Guard, str]] = {
    "late_news": "it is older than what it meets: kept as history",
    "human_word": "a human said what it would end, and only a human ends that",
    "high_confidence": "what it denies is too sure for one statement",
    "high_risk": "what it would end weighs too much for so unsure a statement",
    "add_only": "nothing is changed or ended here",
}


def apply_overwrite(
    builder: EventBuilder, llm_decision: LlmDecision, targets: tuple[Candidate, ...], turn_state: TurnState
) -> tuple[MemoryEvent, ...]:
    """The events of a verdict of `OVERWRITES` on at least one target."""
    verdict = llm_decision.reply
    pending = next((known for known in targets if known.status == "pending_confirmation"), None)
    if pending is not None and verdict.verdict == "MERGE":
        return _repeat_pending_fact(builder, llm_decision, pending, turn_state)
    told = tuple(map(fact_before, targets))
    guard = find_guard(verdict.verdict, targets, builder.statement_context, builder.context.rules)
    if guard is None:
        decision = builder.decision("model", verdict.reason, llm_decision, before=told)
        return (overwrite_event(builder, llm_decision, targets, decision),)
    reason = f"{verdict.reason}; held back: {GUARD_REASONS[guard]}"
    decision = builder.decision("policy", reason, llm_decision, guard=guard, before=told)
    if guard == "add_only":
        return (FactAdded(**builder.event_fields(decision), fact=builder.new_fact()),)
    if guard == "late_news":
        return (history_event(builder, _active_facts(targets), decision, turn_state),)
    return (_pending_event(builder, llm_decision, targets, guard, decision),)


def overwrite_event(
    builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate], decision: Decision
) -> MemoryEvent:
    """The event of a verdict that nothing stands in the way of. A plan that is called off never was true."""
    common = {**builder.event_fields(decision), "targets": tuple(known.fact_id for known in targets)}
    fact = _event_fact(builder, llm_decision, targets)
    ended_at = target_end(builder, llm_decision, targets)
    never_began = all(is_planned(known, builder.statement_context) for known in targets)
    match llm_decision.reply.verdict:
        case "MERGE":
            return FactsMerged(**common, statement=builder.statement, fact=fact)
        case "REPLACE" if not never_began:
            return FactReplaced(**common, ended_at=ended_at, fact=fact)
        case "CONTRADICT" | "REPLACE":
            return FactContradicted(**common, fact=fact)
        case "RETRACT":
            return FactRetracted(**common, ended_at=None if never_began else ended_at, fact=fact)
        case "EXPIRE":
            return FactExpired(**common, ended_at=ended_at, fact=fact)
        case action:
            raise AssertionError(f"{action} ends nothing")


def target_end(builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate]) -> datetime:
    """When the targets ended: when it is told, else when the statement began to hold; none before it began."""
    told = llm_decision.reply.ended_at or builder.statement_context.true_from
    return max(told, *(known.true_from for known in targets))


def history_end(builder: EventBuilder, targets: Sequence[Candidate], turn_state: TurnState) -> tuple[datetime, UUID]:
    """When a statement that is older than one of `targets` ceased to hold, and the fact that tells."""
    return next_version_start(_active_facts(targets), builder.statement_context.true_from, turn_state.version_starts)


def history_event(
    builder: EventBuilder, newer: Sequence[TimedFact], decision: Decision, turn_state: TurnState
) -> FactAdded:
    """The event of a statement that is older than one of `newer`."""
    ended_at, fact_id = next_version_start(newer, builder.statement_context.true_from, turn_state.version_starts)
    return FactAdded(**builder.event_fields(decision), fact=builder.new_fact(), ended_at=ended_at, ended_by=fact_id)


def _event_fact(builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate]) -> NewFact:
    return builder.merged_fact(llm_decision, targets) if llm_decision.reply.verdict == "MERGE" else builder.new_fact()


def _active_facts(targets: Sequence[Candidate]) -> list[Candidate]:
    return [known for known in targets if known.status == "active"]


def _pending_event(
    builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate], guard: Guard, decision: Decision
) -> FactPending:
    action = llm_decision.reply.verdict
    ends = action in ("REPLACE", "RETRACT", "EXPIRE")
    return FactPending(
        **builder.event_fields(decision),
        targets=tuple(known.fact_id for known in targets),
        action=OVERWRITES[action],
        ended_at=target_end(builder, llm_decision, targets) if ends else None,
        guard=guard,
        needs_human=guard == "human_word",
        fact=_event_fact(builder, llm_decision, targets),
    )


def _repeat_pending_fact(
    builder: EventBuilder, llm_decision: LlmDecision, pending: Candidate, turn_state: TurnState
) -> tuple[MemoryEvent, ...]:
    """What is pending, said again with more: another turn's word confirms it, and the detail stands beside it.

    Where that word does not suffice, the richer fact waits with the one that it says again.
    """
    case, own = builder.context.pending_cases.get(pending.fact_id), turn_state.held_back.get(pending.fact_id)
    decision = builder.decision("model", llm_decision.reply.reason, llm_decision, before=(fact_before(pending),))
    if case is not None and not case.needs_human and supports(builder, case):
        confirmed = confirm_pending(builder, case, decision, turn_state)
        detail = FactExtended(
            **builder.event_fields(decision, offset=1), targets=(pending.fact_id,), fact=builder.new_fact(offset=1)
        )
        return (confirmed, detail)
    held = own or case
    if held is None:
        return (FactAdded(**builder.event_fields(decision), fact=builder.new_fact()),)
    guard: Guard = own.guard if own else "human_word" if held.needs_human else "late_news"
    waits = decision.model_copy(update={"by": "policy", "guard": guard})
    return (
        FactPending(
            **builder.event_fields(waits),
            targets=tuple(dict.fromkeys((*turn_state.open_ids(held.targets), pending.fact_id))),
            action=held.action,
            ended_at=held.ended_at,
            guard=guard,
            needs_human=held.needs_human,
            fact=builder.merged_fact(llm_decision, [pending]),
        ),
    )
