"""What a commit did, told as the result of a write."""

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from mnemolog.projections.queries.results import EventResult, LimitReached, StageCost, Tokens, WriteResult
from mnemolog.projections.queries.trace import FactTexts, affected_by, build_trace, statement_of, subject_of
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import (
    ConflictResolved,
    DecisionUndone,
    FactConfirmed,
    FactContradicted,
    FactCorrected,
    FactExpired,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactSkipped,
    FactsMerged,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
    new_fact,
)
from mnemolog.schemas.provenance import Decision, Step
from mnemolog.schemas.vocabulary import LABEL_OF_EVENT

_CONFLICT_DECIDERS: Final = ("model", "fallback")
_SUCCESS_OUTCOMES: Final = ("facts", "no_facts", "done")
_UPDATE_ACTIONS: Final = ("merge", "replace")
_END_ACTIONS: Final = ("contradict", "retract", "expire")


def write_result(commit: Commit, texts: FactTexts | None = None) -> WriteResult:
    """Read off a commit what its turn or command did and cost; with `texts`, its trace as well. Pure."""
    events, steps = commit.events, commit.provenance.steps
    success = commit.outcome in _SUCCESS_OUTCOMES
    stages = _stages(steps)
    return WriteResult(
        turn_id=commit.source_id,
        status=commit.outcome,
        success=success,
        error=None if success else _error(commit),
        limit=LimitReached(**commit.limit.model_dump()) if commit.limit else None,
        source_kind=commit.source_kind,
        order=commit.order.kind if commit.order else None,
        actor=commit.actor,
        attempt=commit.attempt,
        position=commit.origin.position,
        memories=tuple(map(_memory_of, events)),
        skipped=sum(isinstance(event, FactSkipped) for event in events),
        conflicts=sum(_is_conflict(event.decision) for event in events),
        facts_added=_count(map(_added_facts, events)),
        facts_updated=_count(map(_updated_facts, events)),
        facts_unchanged=_count(map(_unchanged_facts, events)),
        facts_deleted=_count(map(_deleted_facts, events)),
        facts_pending=sum(isinstance(event, FactPending) for event in events),
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        tokens=_tokens(steps),
        milliseconds={stage.stage: stage.milliseconds for stage in stages},
        duration_ms=(commit.decided_at - commit.published_at).total_seconds() * 1000,
        stages=stages,
        trace=None if texts is None else build_trace(commit, texts),
    )


def _memory_of(event: MemoryEvent) -> EventResult:
    fact, said, before = new_fact(event), statement_of(event), event.decision.before
    shown = fact or said or next(iter(before), None)
    return EventResult(
        fact_id=subject_of(event),
        text=shown.text if shown else None,
        event=LABEL_OF_EVENT[event.event],
        targets=affected_by(event),
        reason=event.decision.reason,
        action=_action(event),
        unresolved=getattr(event, "unresolved", False),
        needs_human=getattr(event, "needs_human", False),
    )


def _action(event: MemoryEvent) -> str | None:
    if isinstance(event, DecisionUndone):
        return LABEL_OF_EVENT.get(event.undone_event)
    action: str | None = getattr(event, "action", None)
    return action


def _added_facts(event: MemoryEvent) -> set[UUID]:
    """The facts that stand from now on."""
    fact = new_fact(event)
    match event:
        case FactPending():
            return set()
        case PendingConfirmed():
            return {event.target}
        case _:
            return {fact.fact_id} if fact else set()


def _updated_facts(event: MemoryEvent) -> set[UUID]:
    match event:
        case FactsMerged() | FactReplaced():
            return set(event.targets)
        case FactCorrected():
            return {event.target}
        case PendingConfirmed() | ConflictResolved() if event.action in _UPDATE_ACTIONS:
            return set(event.targets)
        case DecisionUndone():
            return {one.fact_id for one in event.reversals if one.before is not None}
        case _:
            return set()


def _unchanged_facts(event: MemoryEvent) -> set[UUID]:
    match event:
        case FactSkipped() | FactConfirmed():
            return {event.target}
        case PendingRejected():
            return set(affected_by(event))
        case ConflictResolved(action="keep_both"):
            return {event.target}
        case _:
            return set()


def _deleted_facts(event: MemoryEvent) -> set[UUID]:
    match event:
        case FactContradicted() | FactRetracted() | FactExpired():
            return set(event.targets)
        case PendingConfirmed() | ConflictResolved() if event.action in _END_ACTIONS:
            return set(event.targets)
        case PendingRejected() | ConflictResolved(action="keep_old"):
            return {event.target}
        case DecisionUndone():
            return {one.fact_id for one in event.reversals if one.before is None}
        case _:
            return set()


def _count(parts: Iterable[set[UUID]]) -> int:
    """How many facts these are, each once."""
    return len(set[UUID]().union(*parts))


def _is_conflict(decision: Decision) -> bool:
    return decision.by in _CONFLICT_DECIDERS or decision.verdict is not None


def _error(commit: Commit) -> str:
    return ": ".join(part for part in (commit.reason, commit.detail) if part) or commit.outcome


def _stages(steps: Sequence[Step]) -> tuple[StageCost, ...]:
    """The costs by stage, in the order in which the stages came."""
    names = dict.fromkeys(step.stage for step in steps)
    return tuple(_stage(name, [step for step in steps if step.stage == name]) for name in names)


def _stage(name: str, steps: Sequence[Step]) -> StageCost:
    return StageCost(
        stage=name,
        milliseconds=sum(step.milliseconds for step in steps),
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        tokens=_tokens(steps),
        reprompts=sum(step.reprompts for step in steps),
        models=_distinct(step.model for step in steps),
        prompt_versions=_distinct(step.prompt_version for step in steps),
    )


def _tokens(steps: Iterable[Step]) -> Tokens:
    steps = tuple(steps)
    return Tokens(input=sum(step.input_tokens for step in steps), output=sum(step.output_tokens for step in steps))


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
