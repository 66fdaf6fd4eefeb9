"""How each event changes the state of facts: pure functions from the old to the new state."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, assert_never
from uuid import UUID

from mnemolog.projections.write.rows import TimedFactState
from mnemolog.schemas import events
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ENDED_STATUSES, OPEN_STATUSES, FactStatus, MovedEnd, NewFact

CONFIRMATION_GAIN: Final = 0.25
"""The part of the remaining doubt that a confirmation takes away: c + .25 (1 - c)."""
HUMAN_CONFIDENCE: Final = 0.95
"""What a human confirms is at least as sure as what was said explicitly."""

FactStates = Mapping[UUID, TimedFactState]
"""The facts that an event names and that are as its decision saw them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTimes:
    """When a commit was decided, and when its source occurred: for a command not later, however fast its clock was.

    What was mentioned in the future would make everything that is said until then older than it.
    """

    decided_at: datetime
    occurred_at: datetime

    @classmethod
    def of_commit(cls, commit: Commit) -> "CommitTimes":
        is_command = commit.source_kind == "command"
        occurred_at = min(commit.occurred_at, commit.decided_at) if is_command else commit.occurred_at
        return cls(decided_at=commit.decided_at, occurred_at=occurred_at)

    def of_event(self, event: events.MemoryEvent) -> "CommitTimes":
        """The same, of an event by a promoted statement with the time when that was said."""
        origin = event.promoted_from
        return self if origin is None else replace(self, occurred_at=min(origin.said_at, self.decided_at))


def required_statuses(event: events.MemoryEvent, fact_id: UUID) -> frozenset[FactStatus]:
    """The statuses that a named fact must have for the event to change it."""
    match event:
        case events.PendingConfirmed(target=target) | events.PendingRejected(target=target) if target == fact_id:
            return frozenset({"pending_confirmation"})
        case events.FactSkipped(of_ended=True) | events.FactRetracted(ended_at=None):
            return OPEN_STATUSES | ENDED_STATUSES
        case events.RestoringEvent():
            return frozenset(reversal.now for reversal in event.reversals if reversal.fact_id == fact_id)
        case _:
            return OPEN_STATUSES


def initial_state(event: events.MemoryEvent, fact: NewFact, moment: CommitTimes) -> TimedFactState:
    """The first state of the fact that an event adds."""
    at = moment.decided_at
    state = TimedFactState(confidence=fact.confidence, true_from=fact.true_from, believed_from=at, state_since=at)
    match event:
        case events.FactPending():
            state = replace(state, status="pending_confirmation", believed_from=None)
        case events.FactAdded(ended_at=datetime() as ended_at):  # late news: history from the beginning
            state = _close(state, "superseded", ended_at, event.ended_by, moment)
        case events.FactAdded(unresolved=True):
            state = replace(state, unresolved=True)
    return state


def states_after(
    event: events.MemoryEvent, facts: FactStates, moment: CommitTimes, *, raises_confidence: bool
) -> dict[UUID, TimedFactState]:
    """The states of `facts` after the event, of those that it changes.

    `raises_confidence` says that the commit has not raised the confidence of the confirmed fact before.
    """
    after: dict[UUID, TimedFactState] = {}
    match event:
        case events.FactSkipped() | events.FactConfirmed():
            rises = raises_confidence and isinstance(event, events.FactConfirmed)
            for fact_id, state in facts.items():
                after[fact_id] = _mention(state, moment, event.true_from, raises_confidence=rises)
        case (
            events.PendingConfirmed(target=target)
            | events.PendingRejected(target=target)
            | events.ConflictResolved(target=target)
        ):
            if target in facts:
                after = _settle(event, facts, moment, raises_confidence=raises_confidence)
        case events.RestoringEvent():
            for reversal in (one for one in event.reversals if one.fact_id in facts):
                state = facts[reversal.fact_id]
                after[reversal.fact_id] = (
                    _withdraw(state, "undone", None, moment)
                    if reversal.before is None
                    else TimedFactState(**dict(reversal.before), state_since=state.state_since)
                )
        case events.FactRetracted() | events.FactExpired():
            after = _end_targets(facts, event, moment, successor_id=event.ended_by)
        case events.FactsMerged() | events.FactReplaced() | events.FactContradicted() | events.FactCorrected():
            after = _end_targets(facts, event, moment)
        case (
            events.FactAdded()
            | events.FactExtended()
            | events.FactsRelated()
            | events.FactPending()
            | events.PolicySet()
        ):
            pass
        case _:
            assert_never(event)
    return after


def _settle(
    event: events.PendingConfirmed | events.PendingRejected | events.ConflictResolved,
    facts: FactStates,
    moment: CommitTimes,
    *,
    raises_confidence: bool,
) -> dict[UUID, TimedFactState]:
    """The states after a decision on the pending or unresolved fact `event.target`, which is one of `facts`."""
    state = facts[event.target]
    rivals = {fact_id: rival for fact_id, rival in facts.items() if fact_id != event.target}
    match event:
        case events.PendingRejected(confirmed=confirmed):
            after = {event.target: replace(state, status="archived", unresolved=False)}
            if event.statement is not None and confirmed is not None and confirmed in facts:
                rises = raises_confidence and event.confirmed_id is not None
                after[confirmed] = _mention(facts[confirmed], moment, event.true_from, raises_confidence=rises)
            return after
        case events.ConflictResolved():
            state = replace(state, unresolved=False)
            if event.action == "keep_old":
                state = _withdraw(state, "archived", next(iter(rivals), None), moment)
        case events.PendingConfirmed():
            state = _mention(state, moment, raises_confidence=raises_confidence and event.confirmed_id is not None)
            least = HUMAN_CONFIDENCE if event.decision.by == "person" else 0.0
            state = replace(
                state,
                status="active",
                believed_from=state.believed_from or moment.decided_at,
                confidence=max(state.confidence, least),
                mention_count=state.mention_count if event.statement else state.mention_count - 1,
                unresolved=event.unresolved,
            )
    return {**_end_targets(rivals, event, moment, successor_id=event.target), event.target: state}


def state_with_own_end(state: TimedFactState, end: MovedEnd | None, moment: CommitTimes) -> TimedFactState:
    """The state of a fact that an event adds or lets hold, with the end that it has from the beginning."""
    if end is None or end.ended_at is None or state.status != "active":
        return state
    return _close(state, "superseded" if end.ended_by else "expired", end.ended_at, end.ended_by, moment)


def state_with_moved_end(state: TimedFactState, moved: MovedEnd, moment: CommitTimes) -> TimedFactState | None:
    """The state of a fact with another end, or with none; None where it is no fact that was true and ended."""
    if state.believed_from is None or state.believed_to is not None or state.true_to is None:
        return None
    is_open = replace(
        state, status="active", true_to=None, closed_at=None, superseded_by=None, unresolved=moved.unresolved
    )
    if moved.ended_at is None:
        return is_open
    same_ender = moved.ended_by == state.superseded_by and state.status != "active"
    ended: FactStatus = "expired" if moved.ended_by is None else "superseded"
    return _close(is_open, state.status if same_ender else ended, moved.ended_at, moved.ended_by, moment)


def _end_targets(
    facts: FactStates, event: events.MemoryEvent, moment: CommitTimes, *, successor_id: UUID | None = None
) -> dict[UUID, TimedFactState]:
    """End `facts` as the event says, in favour of the new fact where it has one.

    A fact that never was true, or that ends without an end time, is no longer believed.
    """
    if event.new_fact is not None:
        successor_id = event.new_fact.fact_id
    after: dict[UUID, TimedFactState] = {}
    for fact_id, state in facts.items():
        match event.overwrite:
            case "merge":
                after[fact_id] = _withdraw(state, "superseded", successor_id, moment)
            case "contradict":
                after[fact_id] = _withdraw(state, "archived", successor_id, moment)
            case "retract" if event.end_time is None:
                after[fact_id] = _withdraw(state, "retracted", successor_id, moment)
            case "replace" | "retract" | "expire" as action:
                ended_at = event.end_time or moment.occurred_at
                after[fact_id] = _close(state, _STATUS_OF_END[action], ended_at, successor_id, moment)
    return after


_STATUS_OF_END: Final[dict[events.Overwrite, FactStatus]] = {
    "replace": "superseded",
    "retract": "retracted",
    "expire": "expired",
}


def _close(
    state: TimedFactState, status: FactStatus, ended_at: datetime, successor_id: UUID | None, moment: CommitTimes
) -> TimedFactState:
    """End the fact at `ended_at`; an end in the future is stored, and the timer closes the fact then."""
    has_come = ended_at <= moment.decided_at
    return replace(
        state,
        status=status if has_come else state.status,
        true_to=ended_at,
        closed_at=moment.decided_at,
        superseded_by=successor_id or state.superseded_by,
        unresolved=state.unresolved and not has_come,
    )


def _withdraw(
    state: TimedFactState, status: FactStatus, successor_id: UUID | None, moment: CommitTimes
) -> TimedFactState:
    return replace(
        state,
        status=status,
        believed_to=moment.decided_at if state.believed_from else None,
        superseded_by=successor_id or state.superseded_by,
        unresolved=False,
    )


def _mention(
    state: TimedFactState, moment: CommitTimes, true_from: datetime | None = None, *, raises_confidence: bool
) -> TimedFactState:
    gain = CONFIRMATION_GAIN * (1 - state.confidence) if raises_confidence else 0.0
    return replace(
        state,
        confidence=state.confidence + gain,
        true_from=min(state.true_from, true_from or state.true_from),
        mention_count=state.mention_count + 1,
        last_confirmed_at=max(state.last_confirmed_at or moment.occurred_at, moment.occurred_at),
    )
