"""Facts kept beside others for want of a valid decision: a later turn that meets them asks about them again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from mnemolog.schemas.events import ConflictResolved, FactExpired, FactRetracted, MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Decision, Thresholds
from mnemolog.streams.llm.conflict_list import as_extracted_fact
from mnemolog.streams.resolution.classify import conflicting_facts
from mnemolog.streams.resolution.event_builder import (
    DecisionContext,
    EventBuilder,
    LlmDecision,
    NoDecision,
    fact_before,
)
from mnemolog.streams.resolution.guards import StatementContext, find_guard
from mnemolog.streams.resolution.overwrites import GUARD_REASONS, history_end, overwrite_event, target_end
from mnemolog.streams.resolution.turn_state import TurnState

MAX_RETRIED_CONFLICTS: Final = 3
"""How many unresolved facts one call asks about again: a turn is not to pay for all that went wrong before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConflict:
    """An unresolved fact that a turn has met, and the known facts near both."""

    unresolved: Candidate
    rivals: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOutcome:
    """What was said about it this time."""

    conflict: RetryConflict
    llm_decision: LlmDecision | NoDecision


def conflicts_to_retry(
    facts: Sequence[MatchedFact], thresholds: Thresholds, rules: EffectivePolicy
) -> tuple[RetryConflict, ...]:
    """The unresolved facts near `facts`, each with what else is near; of two of them one is asked about the other."""
    asked: dict[UUID, Candidate] = {}
    rivals: dict[UUID, dict[UUID, Candidate]] = {}
    for matched in facts:
        near = [known for known in conflicting_facts(matched, thresholds, rules) if known.status == "active"]
        for known in near:
            if known.unresolved and (known.fact_id in asked or len(asked) < MAX_RETRIED_CONFLICTS):
                asked.setdefault(known.fact_id, known)
                others = {other.fact_id: other for other in near if other.fact_id not in asked}
                rivals.setdefault(known.fact_id, {}).update(others)
    return tuple(
        RetryConflict(unresolved=known, rivals=tuple(rivals[fact_id].values()))
        for fact_id, known in asked.items()
        if rivals[fact_id]
    )


def retry_events(
    context: DecisionContext, ordinal: int, retry_outcome: RetryOutcome, turn_state: TurnState
) -> tuple[MemoryEvent, ...]:
    """The events that settle an unresolved fact; none where nothing valid was said, or a policy stands in the way.

    Then it stays as it is: a later turn, or somebody's command, will tell.
    """
    unresolved, judgement = turn_state.open_fact(retry_outcome.conflict.unresolved), retry_outcome.llm_decision
    if unresolved is None or isinstance(judgement, NoDecision):
        return ()
    verdict = judgement.reply
    targets = tuple(known for known in turn_state.open_facts(judgement.targets) if known.status == "active")
    if verdict.verdict != "ADD" and not targets:
        return ()
    maker = _event_builder(context, ordinal, unresolved, retry_outcome.conflict, judgement)
    guard = find_guard(verdict.verdict, targets, maker.statement_context, context.rules)
    decision = maker.decision("model", verdict.reason, judgement, before=tuple(map(fact_before, targets)))
    if guard is None:
        return tuple(_resolution_events(maker, judgement, unresolved, targets, decision))
    if guard != "late_news":
        return ()
    reason = f"{verdict.reason}; held back: {GUARD_REASONS[guard]}"
    told = {"by": "policy", "reason": reason, "guard": guard, "before": (fact_before(unresolved),)}
    ended_at, _ = history_end(maker, targets, turn_state)
    late = decision.model_copy(update=told)
    return (FactExpired(**maker.event_fields(late), targets=(unresolved.fact_id,), ended_at=ended_at),)


def _event_builder(
    context: DecisionContext, ordinal: int, unresolved: Candidate, conflict: RetryConflict, llm_decision: LlmDecision
) -> EventBuilder:
    began = unresolved.true_from
    return EventBuilder(
        context=context,
        ordinal=ordinal,
        fact=as_extracted_fact(unresolved),
        statement_context=StatementContext(
            confidence=unresolved.confidence, true_from=began, said_at=unresolved.said_at or began
        ),
        vector=llm_decision.merged_vector,
        candidates=conflict.rivals,
    )


def _resolution_events(
    builder: EventBuilder,
    llm_decision: LlmDecision,
    unresolved: Candidate,
    targets: tuple[Candidate, ...],
    decision: Decision,
) -> Iterator[MemoryEvent]:
    verdict = llm_decision.reply
    target, target_ids = unresolved.fact_id, tuple(known.fact_id for known in targets)
    match verdict.verdict:
        case "ADD" | "EXTEND" | "SIMILAR":
            yield ConflictResolved(
                **builder.event_fields(decision), target=target, targets=target_ids, action="keep_both"
            )
        case "KEEP":
            yield ConflictResolved(
                **builder.event_fields(decision), target=target, targets=target_ids, action="keep_old"
            )
        case "REPLACE" | "CONTRADICT":
            yield ConflictResolved(
                **builder.event_fields(decision),
                target=target,
                targets=target_ids,
                action="replace" if verdict.verdict == "REPLACE" else "contradict",
                ended_at=target_end(builder, llm_decision, targets) if verdict.verdict == "REPLACE" else None,
            )
        case "MERGE":
            yield overwrite_event(builder, llm_decision, (unresolved, *targets), decision)
        case "RETRACT" | "EXPIRE":  # the unresolved fact is the statement that says so, and stays
            kind = FactRetracted if verdict.verdict == "RETRACT" else FactExpired
            yield kind(
                **builder.event_fields(decision),
                targets=target_ids,
                ended_at=target_end(builder, llm_decision, targets),
            )
            yield ConflictResolved(**builder.event_fields(decision, offset=1), target=target, action="keep_both")
