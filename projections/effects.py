"""What each event does to how facts stand: pure functions from the standing before to the standing after."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.projections.rows import FactState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import (
    ConflictResolved,
    DecisionUndone,
    FactAdded,
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
    Overwrite,
    PendingConfirmed,
    PendingRejected,
    Reversal,
    new_fact,
)
from mnemolog.schemas.facts import FactStatus, NewFact

CONFIRMATION_GAIN: Final = 0.25
"""The part of the remaining doubt that a confirmation takes away: c + .25 (1 - c)."""
HUMAN_CONFIRMATION: Final = 0.95
"""What a human confirms is at least as sure as what was said explicitly."""
OPEN: Final[frozenset[FactStatus]] = frozenset({"active", "pending_confirmation"})

Facts = Mapping[UUID, FactState]
"""The facts that an event names and that stand as its decision saw them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a commit was decided, and when its source occurred: for a command not later, however fast its clock was.

    What was mentioned in the future would make everything that is said until then older than it.
    """

    decided_at: datetime
    occurred_at: datetime

    @classmethod
    def of(cls, commit: Commit) -> "Moment":
        is_command = commit.source_kind == "command"
        occurred_at = min(commit.occurred_at, commit.decided_at) if is_command else commit.occurred_at
        return cls(decided_at=commit.decided_at, occurred_at=occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How facts end. Without `ended_at`, and for what never was true, they leave what is believed."""

    action: Overwrite
    by: UUID | None
    ended_at: datetime | None = None


def required(event: MemoryEvent, fact_id: UUID) -> frozenset[FactStatus]:
    """How a fact that the event names has to stand for the event to touch it."""
    match event:
        case PendingConfirmed(target=target) | PendingRejected(target=target) if target == fact_id:
            return frozenset({"pending_confirmation"})
        case DecisionUndone():
            return frozenset(reversal.now for reversal in event.reversals if reversal.fact_id == fact_id)
        case _:
            return OPEN


def brought(event: MemoryEvent, moment: Moment) -> tuple[NewFact, FactState] | None:
    """The fact that an event brings and how it stands at first, or None."""
    fact = new_fact(event)
    if fact is None:
        return None
    at = moment.decided_at
    state = FactState(confidence=fact.confidence, believed_from=at, state_since=at)
    match event:
        case FactPending():
            state = replace(state, status="pending_confirmation", believed_from=None)
        case FactAdded(ended_at=datetime() as ended_at):  # late news: history from the beginning
            state = _ended(state, "superseded", ended_at, event.ended_by, moment)
        case FactAdded(unresolved=unresolved):
            state = replace(state, unresolved=unresolved)
    return fact, state


def supersedes(event: MemoryEvent) -> bool:
    """Whether the new fact takes the place of the targets."""
    return isinstance(event, FactsMerged | FactReplaced | FactContradicted | FactCorrected)


def confirms(event: MemoryEvent) -> UUID | None:
    """The fact whose confidence an event raises."""
    match event:
        case FactConfirmed(target=target) | PendingConfirmed(target=target):
            return target
        case PendingRejected(confirmed=confirmed) if event.statement is not None:
            return confirmed
        case _:
            return None


def changed(  # noqa: PLR0911 -- one way out an event
    event: MemoryEvent, facts: Facts, moment: Moment, *, rises: bool
) -> dict[UUID, FactState]:
    """How `facts` stand after the event; those that it leaves alone are not in it.

    `rises` says that the commit has not raised the confidence of the confirmed fact before.
    """
    match event:
        case FactSkipped():
            return {fact_id: _mentioned(state, moment) for fact_id, state in facts.items()}
        case FactConfirmed():
            return {fact_id: _confirmed(state, moment, rises=rises) for fact_id, state in facts.items()}
        case PendingConfirmed(target=target):
            return _stands(event, facts, moment, rises=rises) if target in facts else {}
        case PendingRejected(target=target):
            return _rejected(event, facts, moment, rises=rises) if target in facts else {}
        case ConflictResolved(target=target):
            return _settled(event, facts, moment) if target in facts else {}
        case DecisionUndone():
            return {
                reversal.fact_id: _reversed(facts[reversal.fact_id], reversal, moment)
                for reversal in event.reversals
                if reversal.fact_id in facts
            }
        case _ if end := _end_of(event):
            return _over(facts, end, moment)
        case _:
            return {}


def _end_of(event: MemoryEvent) -> _End | None:  # noqa: PLR0911 -- one way out an event
    """How the targets of an event end by the event itself; None where they stay, or more happens."""
    match event:
        case FactsMerged(fact=fact):
            return _End(action="merge", by=fact.fact_id)
        case FactReplaced(fact=fact):
            return _End(action="replace", by=fact.fact_id, ended_at=event.ended_at)
        case FactContradicted(fact=fact):
            return _End(action="contradict", by=fact.fact_id)
        case FactCorrected(fact=fact):  # without an end it never was so: as a merge leaves its targets
            return _End(action="replace" if event.ended_at else "merge", by=fact.fact_id, ended_at=event.ended_at)
        case FactRetracted(fact=said):
            return _End(action="retract", by=said.fact_id if said else None, ended_at=event.ended_at)
        case FactExpired(fact=said):
            return _End(action="expire", by=said.fact_id if said else None, ended_at=event.ended_at)
        case _:
            return None


def _stands(event: PendingConfirmed, facts: Facts, moment: Moment, *, rises: bool) -> dict[UUID, FactState]:
    state = _confirmed(facts[event.target], moment, rises=rises)
    least = HUMAN_CONFIRMATION if event.decision.by == "human" else 0.0
    state = replace(
        state,
        status="active",
        believed_from=state.believed_from or moment.decided_at,
        confidence=max(state.confidence, least),
        mention_count=state.mention_count if event.statement else state.mention_count - 1,
        unresolved=False,
    )
    end = _End(action=event.action, by=event.target, ended_at=event.ended_at)
    return {**_over(_without(facts, event.target), end, moment), event.target: state}


def _rejected(event: PendingRejected, facts: Facts, moment: Moment, *, rises: bool) -> dict[UUID, FactState]:
    after = {event.target: replace(facts[event.target], status="archived", unresolved=False)}
    if event.statement is not None and event.confirmed is not None and event.confirmed in facts:
        after[event.confirmed] = _confirmed(facts[event.confirmed], moment, rises=rises)
    return after


def _settled(event: ConflictResolved, facts: Facts, moment: Moment) -> dict[UUID, FactState]:
    rivals = _without(facts, event.target)
    state = replace(facts[event.target], unresolved=False)
    match event.action:
        case "keep_both":
            return {event.target: state}
        case "keep_old":
            return {event.target: _disbelieved(state, "archived", next(iter(rivals), None), moment)}
        case action:
            end = _End(action=action, by=event.target, ended_at=event.ended_at)
            return {**_over(rivals, end, moment), event.target: state}


def _reversed(state: FactState, reversal: Reversal, moment: Moment) -> FactState:
    if reversal.before is None:
        return _disbelieved(state, "undone", None, moment)
    return FactState.of(reversal.before, state.state_since)


def _over(facts: Facts, end: _End, moment: Moment) -> dict[UUID, FactState]:
    return {fact_id: _overwritten(state, end, moment) for fact_id, state in facts.items()}


def _overwritten(state: FactState, end: _End, moment: Moment) -> FactState:
    match end.action:
        case "merge":
            return _disbelieved(state, "superseded", end.by, moment)
        case "contradict":
            return _disbelieved(state, "archived", end.by, moment)
        case "retract" if end.ended_at is None:
            return _disbelieved(state, "retracted", end.by, moment)
        case action:
            return _ended(state, _ENDED[action], end.ended_at or moment.occurred_at, end.by, moment)


_ENDED: Final[dict[Overwrite, FactStatus]] = {"replace": "superseded", "retract": "retracted", "expire": "expired"}


def _ended(state: FactState, status: FactStatus, ended_at: datetime, by: UUID | None, moment: Moment) -> FactState:
    """It was so until `ended_at`; an end that is still to come is noted, and the timer closes it."""
    has_come = ended_at <= moment.decided_at
    return replace(
        state,
        status=status if has_come else state.status,
        true_to=ended_at,
        closed_at=moment.decided_at,
        superseded_by=by or state.superseded_by,
        unresolved=state.unresolved and not has_come,
    )


def _disbelieved(state: FactState, status: FactStatus, by: UUID | None, moment: Moment) -> FactState:
    return replace(
        state,
        status=status,
        believed_to=moment.decided_at if state.believed_from else None,
        superseded_by=by or state.superseded_by,
        unresolved=False,
    )


def _mentioned(state: FactState, moment: Moment) -> FactState:
    return replace(
        state,
        mention_count=state.mention_count + 1,
        last_confirmed_at=max(state.last_confirmed_at or moment.occurred_at, moment.occurred_at),
    )


def _confirmed(state: FactState, moment: Moment, *, rises: bool) -> FactState:
    gain = CONFIRMATION_GAIN * (1 - state.confidence) if rises else 0.0
    return replace(_mentioned(state, moment), confidence=state.confidence + gain)


def _without(facts: Facts, fact_id: UUID) -> dict[UUID, FactState]:
    return {other: state for other, state in facts.items() if other != fact_id}
