"""What a commit does to the tables: a pure function. The projector and the rebuild both live on it.

No clock, no randomness, no input or output: the same log gives the same rows, today and in ten years.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from projections.rows import (
    Changes,
    CommitRow,
    EventRow,
    FactRow,
    FactState,
    KnownFact,
    LogPosition,
    Reason,
    Rejection,
    ScopeStep,
)
from projections.state import State, scope_columns, source_of, targets_of
from schemas.commit import Commit
from schemas.events import (
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactReplaced,
    FactSkipped,
    FactsMerged,
    MemoryEvent,
)
from schemas.facts import NewFact

CONFIRMATION_GAIN = 0.25
"""The part of the remaining doubt that a confirmation takes away: c + .25 (1 - c)."""


def fold(state: State, commit: Commit, position: LogPosition, record: bytes) -> Changes:
    """What `commit`, whose bytes are `record`, changes where the tables stand at `state`.

    The first commit of a source is applied, any later one is a rejection and nothing else. A target that
    does not stand as the decision saw it stays as it is; a new fact then stands beside it, marked stale.
    """
    if source_of(commit) in state.applied:
        detail = f"{commit.source_id} has its commit already, earlier in the log: this one is ignored"
        return refused(position, record, reason="duplicate_source", detail=detail, commit=commit)
    draft = _Draft(state, commit, position)
    for event in commit.events:
        draft.enter(event)
    return draft.changes(record)


def refused(
    position: LogPosition, record: bytes, *, reason: Reason, detail: str, commit: Commit | None = None
) -> Changes:
    """The changes of a record that is not applied: it is kept as a rejection, with its bytes."""
    rejection = Rejection(
        position=position,
        item=0,
        owner=commit.owner if commit else None,
        source_id=commit.source_id if commit else None,
        reason=reason,
        detail=detail,
        record=record,
    )
    return Changes(rejections=(rejection,))


class _Draft:
    """One commit's changes in the making; the state it starts from stays as it is."""

    def __init__(self, state: State, commit: Commit, position: LogPosition) -> None:
        self._state = state
        self._commit = commit
        self._position = position
        self._scope = scope_columns(commit.scope)
        self._known: dict[UUID, KnownFact] = {}
        self._facts: list[FactRow] = []
        self._events: list[EventRow] = []
        self._rejections: list[Rejection] = []
        self._confirmed: set[UUID] = set()

    def enter(self, event: MemoryEvent) -> None:
        targets = targets_of(event)
        sound = self._sound(event, targets)
        stale = len(sound) < len(targets)
        fact_id = self._take_effect(event, sound, stale=stale)
        ended = tuple(target for target in targets if target != fact_id)
        self._events.append(
            EventRow(
                position=self._position, commit=self._commit, event=event, fact_id=fact_id, targets=ended, stale=stale
            )
        )

    def changes(self, record: bytes) -> Changes:
        new = {row.fact.fact_id for row in self._facts}
        facts = (replace(row, state=self._known[row.fact.fact_id].state) for row in self._facts)
        step = ScopeStep(scope=self._scope, owner=self._commit.owner, commits=1)
        return Changes(
            commits=(CommitRow(position=self._position, commit=self._commit, record=record),),
            events=tuple(self._events),
            facts=tuple(facts),
            updates=tuple(known for known in self._known.values() if known.fact_id not in new),
            steps=(step,) if self._events else (),
            rejections=tuple(self._rejections),
        )

    def _take_effect(self, event: MemoryEvent, targets: list[KnownFact], *, stale: bool) -> UUID:
        """Change the targets and add the new fact; gives the fact that the event is about."""
        decided_at = self._commit.decided_at
        match event:
            case FactAdded():
                self._add(event.fact, targets, stale=stale, unresolved=event.unresolved)
            case FactSkipped() | FactConfirmed():
                self._mention(targets, raises_confidence=isinstance(event, FactConfirmed))
                return event.target
            case FactsMerged():
                self._supersede(event.fact, targets, believed_to=decided_at)
                self._add(event.fact, targets, stale=stale)
            case FactReplaced():
                self._supersede(event.fact, targets, true_to=event.ended_at, closed_at=decided_at)
                self._add(event.fact, targets, stale=stale)
            case FactContradicted():
                self._archive(event.fact, targets)
                self._add(event.fact, targets, stale=stale)
        return event.fact.fact_id

    def _add(self, fact: NewFact, ended: list[KnownFact], *, stale: bool, unresolved: bool = False) -> None:
        state = FactState(confidence=fact.confidence)
        supersedes = tuple(known.fact_id for known in ended)
        self._know(KnownFact(fact_id=fact.fact_id, scope=self._scope, state=state))
        self._facts.append(
            FactRow(
                commit=self._commit,
                fact=fact,
                supersedes=supersedes,
                unresolved=unresolved,
                stale=stale,
                state=state,
            )
        )

    def _mention(self, targets: list[KnownFact], *, raises_confidence: bool) -> None:
        for known in targets:
            state = known.state
            confidence = state.confidence
            if raises_confidence and known.fact_id not in self._confirmed:
                confidence += CONFIRMATION_GAIN * (1 - confidence)
                self._confirmed.add(known.fact_id)
            mentioned = replace(
                state,
                confidence=confidence,
                mention_count=state.mention_count + 1,
                last_confirmed_at=_later(state.last_confirmed_at, self._commit.occurred_at),
            )
            self._know(replace(known, state=mentioned))

    def _supersede(
        self,
        fact: NewFact,
        targets: list[KnownFact],
        *,
        believed_to: datetime | None = None,
        true_to: datetime | None = None,
        closed_at: datetime | None = None,
    ) -> None:
        for known in targets:
            state = replace(
                known.state,
                status="superseded",
                superseded_by=fact.fact_id,
                believed_to=believed_to,
                true_to=true_to,
                closed_at=closed_at,
            )
            self._know(replace(known, state=state))

    def _archive(self, fact: NewFact, targets: list[KnownFact]) -> None:
        believed_to = self._commit.decided_at
        for known in targets:
            state = replace(known.state, status="archived", superseded_by=fact.fact_id, believed_to=believed_to)
            self._know(replace(known, state=state))

    def _sound(self, event: MemoryEvent, targets: Iterable[UUID]) -> list[KnownFact]:
        """The targets that stand as the decision saw them; the others become one rejection."""
        known = {target: self._known.get(target) or self._state.facts.get(target) for target in targets}
        faults = {target: fault for target, fact in known.items() if (fault := self._fault(fact))}
        if faults:
            foreign = any(reason == "foreign_target" for reason, _ in faults.values())
            self._rejections.append(
                Rejection(
                    position=self._position,
                    item=event.ordinal + 1,
                    owner=self._commit.owner,
                    source_id=self._commit.source_id,
                    reason="foreign_target" if foreign else "stale_target",
                    detail="; ".join(f"{target} {text}" for target, (_, text) in faults.items()),
                )
            )
        return [fact for target, fact in known.items() if fact is not None and target not in faults]

    def _fault(self, fact: KnownFact | None) -> tuple[Reason, str] | None:
        if fact is None:
            return "stale_target", "is not known"
        if fact.scope != self._scope:
            return "foreign_target", "belongs to another scope"
        if fact.state.status != "active":
            return "stale_target", f"is {fact.state.status}"
        return None

    def _know(self, known: KnownFact) -> None:
        self._known[known.fact_id] = known


def _later(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else max(one, other)
