"""Checks which facts the events of a commit may change, and builds the rows of the commit (pure)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from mnemolog.projections.write import effects, rows
from mnemolog.projections.write.entity_fold import EntityFold
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import DecisionUndone, FactPending, MemoryEvent, PendingRejected, PolicySet
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.scope import ScopeColumns, scope_columns

SourceKey = tuple[str, str]
"""Owner and source id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAttempt:
    """The last commit of a source: how often it was tried, and whether it may be tried again."""

    number: int
    retryable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldState:
    """The last attempts of the sources at hand, the facts that their events name, and the scopes of entities.

    `undone_entities` are entities that no fact names any more.
    """

    applied: dict[SourceKey, LastAttempt] = field(default_factory=dict)
    facts: dict[UUID, rows.KnownFact] = field(default_factory=dict)
    entities: dict[UUID, ScopeColumns] = field(default_factory=dict)
    undone_entities: frozenset[UUID] = frozenset()

    def advance(self, changes: rows.Changes) -> None:
        """Become the state in which the next commit is folded."""
        for row in changes.commits:
            self.applied[source_of(row.commit)] = attempt_of(row.commit)
        for new in changes.facts:
            fact_id = new.fact.fact_id
            self.facts[fact_id] = rows.KnownFact(
                fact_id=fact_id, scope=scope_columns(new.commit.scope), state=new.state
            )
        for known in changes.updates:
            self.facts[known.fact_id] = known
        for entity in changes.entities:
            if isinstance(entity, rows.EntityRow):
                self.entities[entity.event.entity_id] = scope_columns(entity.commit.scope)
            elif isinstance(entity, rows.EntityChangeRow):
                self.entities[entity.event.event_id] = scope_columns(entity.commit.scope)


def source_of(commit: Commit) -> SourceKey:
    return (commit.owner, commit.source_id)


def attempt_of(commit: Commit) -> LastAttempt:
    return LastAttempt(number=commit.attempt, retryable=commit.retryable)


def fact_ids_of_commits(commits: Iterable[Commit]) -> list[UUID]:
    """Every known fact that the commits' events name, whose ends they move, or whose entities they name."""
    named: dict[UUID, None] = {}
    for commit in commits:
        for event in commit.events:
            named |= dict.fromkeys((*event.named_ids, *(one.fact_id for one in event.moved_ends)))
        linked = [fact_id for event in commit.entity_events for fact_id in event.fact_ids]
        own = {event.new_fact.fact_id for event in commit.events if event.new_fact}
        named |= dict.fromkeys(fact_id for fact_id in linked if fact_id not in own)
    return list(named)


def fold(state: FoldState, commit: Commit, position: rows.LogPosition, record: bytes) -> rows.Changes:
    """What `commit`, whose bytes are `record`, changes in tables at `state`.

    The first commit of a source is applied, and the next attempt of one that is retryable; any other is a rejection
    and nothing else. A target that is not as the decision saw it is left as it is; a new fact is then added beside it,
    marked stale.
    """
    last = state.applied.get(source_of(commit))
    if last and not (last.retryable and attempt_of(commit).number == last.number + 1):
        detail = f"{commit.source_id} has its commit already, earlier in the log: this one is ignored"
        return reject_record(position, record, reason="duplicate_source", detail=detail, commit=commit)
    draft = _CommitFold(state, commit, position)
    for event in commit.events:
        draft.add_event(event)
    if commit.entity_events:
        draft.add_entity_events()
    return draft.changes(record)


def reject_record(
    position: rows.LogPosition,
    record: bytes,
    *,
    reason: rows.RejectionReason,
    detail: str,
    commit: Commit | None = None,
) -> rows.Changes:
    """The changes of a record that is not applied: it is kept as a rejection, with its bytes."""
    rejection = rows.RejectionRow(
        position=position,
        item=0,
        owner=commit.owner if commit else None,
        source_id=commit.source_id if commit else None,
        reason=reason,
        detail=detail,
        record=record,
    )
    return rows.Changes(rejections=[rejection])


_SETTLEMENTS: Final[Mapping[FactStatus, rows.Settlement | None]] = {
    "pending_confirmation": None,
    "active": "confirmed",
    "retracted": "deleted",
    "undone": "undone",
}


class _CommitFold:
    """Collects one commit's changes; the state it starts from is not modified."""

    def __init__(self, state: FoldState, commit: Commit, position: rows.LogPosition) -> None:
        self._state = state
        self._commit = commit
        self._position = position
        self._scope = scope_columns(commit.scope)
        self._times = effects.CommitTimes.of_commit(commit)
        self._known: dict[UUID, rows.KnownFact] = {}
        self._confirmed: set[UUID | None] = set()
        self._changes = rows.Changes()

    def add_event(self, event: MemoryEvent) -> None:
        changes, named = self._changes, event.named_ids
        faults = dict(self._target_faults(event)) if named else {}
        sound = {target: self._fact(target).state for target in named if target not in faults}
        former = list(self._apply_to_targets(event, sound)) if sound else []
        if event.moved_ends:
            former += self._move_ends(event, sound)
        stale = bool(faults) or not self._may_set_policy(event)
        if row := self._new_fact_row(event, sound, stale=stale):
            changes.facts.append(row)
        subject_id = event.subject_id
        if event.fixed_overwrite not in ("retract", "expire"):  # these may end their subject
            named = tuple([target for target in named if target != subject_id])
        changes.events.append(
            rows.EventRow(
                position=self._position,
                commit=self._commit,
                event=event,
                fact_id=subject_id,
                targets=named,
                stale=stale,
            )
        )
        if former:
            changes.former_states += former
            changes.settlements += self._settlements(event, former)
        if stale:
            changes.rejections.append(self._rejection(event, faults))
        self._add_rows_of_kind(event, sound)

    def _add_rows_of_kind(self, event: MemoryEvent, sound: effects.FactStates) -> None:
        changes, since = self._changes, self._times.decided_at
        if event.relation is not None and event.new_fact is not None:
            changes.relations += [
                rows.RelationRow(
                    fact_id=event.new_fact.fact_id,
                    related_id=target,
                    relation=event.relation,
                    event_id=event.event_id,
                    since=since,
                )
                for target in sound
            ]
        match event:
            case FactPending():
                changes.pending.append(rows.PendingRow(commit=self._commit, event=event))
            case DecisionUndone() if sound or not event.reversals:
                changes.undone.append(rows.UndoneRow(event_id=event.undone, undone_by=event.event_id, since=since))
                if event.reinstated is not None:
                    changes.undone.append(rows.UndoneRow(event_id=event.reinstated, undone_by=None, since=since))
            case PolicySet() if self._may_set_policy(event):
                scope = (self._scope[0], "", "", "", "") if event.level == "tenant" else self._scope
                changes.policies.append(rows.PolicyRow(scope=scope, event=event, since=since))

    def add_entity_events(self) -> None:
        """After the events about facts: a link is about a fact that is known then."""
        state = self._state
        entities = EntityFold(self._commit, self._position, state.entities, state.undone_entities, self._known_fact)
        for event in self._commit.entity_events:
            entities.add_event(event)
        self._changes.entities += entities.added
        self._changes.rejections += entities.rejections

    def changes(self, record: bytes) -> rows.Changes:
        """All changes of the commit; it can be asked for once."""
        changes, commit = self._changes, self._commit
        changes.commits.append(rows.CommitRow(position=self._position, commit=commit, record=record))
        changes.updates += self._known.values()
        speakers: dict[str, None] = {}
        if commit.scope is not None:  # who spoke in the turn, or in the facts that a command imports or promotes
            added = (event.new_fact for event in commit.events)
            said_by = (commit.speaker, *(fact.speaker for fact in added if fact))
            speakers = dict.fromkeys(speaker for speaker in said_by if speaker is not None)
        if changes.events or speakers:
            open_before = sum(known.is_open for fact_id in self._known if (known := self._state.facts.get(fact_id)))
            changes.scope_increments.append(
                rows.ScopeIncrement(
                    scope=self._scope,
                    owner=commit.owner,
                    partition=self._position.partition,
                    commits=1,
                    facts=sum(known.is_open for known in self._known.values()) - open_before,
                    speakers=tuple(speakers),
                )
            )
        return changes.merge_rows()

    def _apply_to_targets(self, event: MemoryEvent, sound: effects.FactStates) -> Iterator[rows.FormerStateRow]:
        """Let the event change its targets; gives the former state of each that changed."""
        raised = event.confirmed_id
        after = effects.states_after(
            event, sound, self._times.of_event(event), raises_confidence=raised not in self._confirmed
        )
        if raised in sound:
            self._confirmed.add(raised)
        own_ends = {moved.fact_id: moved for moved in event.moved_ends}
        for fact_id, changed in after.items():
            state = effects.state_with_own_end(changed, own_ends.get(fact_id), self._times)
            if state != sound[fact_id]:
                yield self._change(event, fact_id, state)

    def _move_ends(self, event: MemoryEvent, sound: effects.FactStates) -> Iterator[rows.FormerStateRow]:
        """Move the ends that were made in favour of facts that the event has withdrawn, or says began earlier."""
        for moved in event.moved_ends:
            known = self._known_fact(moved.fact_id)
            is_stale = moved.ender in event.named_ids and moved.ender not in sound
            if is_stale or known is None or known.scope != self._scope or moved.fact_id in sound:
                continue
            state = effects.state_with_moved_end(known.state, moved, self._times)
            if state is not None and state != known.state:
                yield self._change(event, moved.fact_id, state)

    def _change(self, event: MemoryEvent, fact_id: UUID, state: rows.TimedFactState) -> rows.FormerStateRow:
        """Give the fact its new state; returns the row of its former state."""
        before = self._fact(fact_id).state
        since = max(before.state_since, self._times.decided_at)  # a clock may have gone back
        self._known[fact_id] = replace(self._fact(fact_id), state=replace(state, state_since=since))
        return rows.FormerStateRow(fact_id=fact_id, event_id=event.event_id, state=before, until=since)

    def _new_fact_row(self, event: MemoryEvent, sound: effects.FactStates, *, stale: bool) -> rows.FactRow | None:
        fact = event.new_fact
        if fact is None:
            return None
        state = effects.initial_state(event, fact, self._times)
        if event.moved_ends:
            own_end = next((moved for moved in event.moved_ends if moved.fact_id == fact.fact_id), None)
            state = effects.state_with_own_end(state, own_end, self._times)
        self._known[fact.fact_id] = rows.KnownFact(fact_id=fact.fact_id, scope=self._scope, state=state)
        ended = tuple(sound) if event.overwrite in ("merge", "replace", "contradict") else ()
        return rows.FactRow(
            commit=self._commit, fact=fact, ordinal=event.ordinal, supersedes=ended, stale=stale, state=state
        )

    def _settlements(self, event: MemoryEvent, former: Sequence[rows.FormerStateRow]) -> Iterator[rows.SettlementRow]:
        """What became of facts that were pending, and which of them are pending again."""
        for row in former:
            state = self._fact(row.fact_id).state
            if (row.state.status == "pending_confirmation") == (state.status == "pending_confirmation"):
                continue
            settlement = _SETTLEMENTS.get(state.status, "overtaken")
            if isinstance(event, PendingRejected) and event.target == row.fact_id:
                settlement = "overtaken" if event.overtaken else "rejected"
            elif state.status == "archived" and state.superseded_by is None:
                settlement = "rejected"
            yield rows.SettlementRow(
                fact_id=row.fact_id, settlement=settlement, event_id=event.event_id, at=self._times.decided_at
            )

    def _may_set_policy(self, event: MemoryEvent) -> bool:
        """A tenant's policies have a scope of their own, so that they have one order in the log."""
        if not isinstance(event, PolicySet):
            return True
        scope = self._commit.scope
        return scope is not None and (event.level == "scope" or scope == tenant_scope(scope.tenant))

    def _rejection(self, event: MemoryEvent, faults: dict[UUID, tuple[rows.RejectionReason, str]]) -> rows.RejectionRow:
        detail = "; ".join(f"{target} {text}" for target, (_, text) in faults.items())
        foreign = any(reason == "foreign_target" for reason, _ in faults.values())
        if not self._may_set_policy(event):
            detail, foreign = "the policy of a tenant is set in the scope of its policies alone", True
        return rows.RejectionRow(
            position=self._position,
            item=event.ordinal + 1,
            owner=self._commit.owner,
            source_id=self._commit.source_id,
            reason="foreign_target" if foreign else "stale_target",
            detail=detail,
        )

    def _target_faults(self, event: MemoryEvent) -> Iterator[tuple[UUID, tuple[rows.RejectionReason, str]]]:
        """The named facts that are not as the decision saw them."""
        for target in event.named_ids:
            fact = self._known_fact(target)
            if fact is None:
                yield target, ("stale_target", "is not known")
            elif fact.scope != self._scope:
                yield target, ("foreign_target", "belongs to another scope")
            elif fact.state.status not in effects.required_statuses(event, target):
                yield target, ("stale_target", f"is {fact.state.status}")

    def _known_fact(self, fact_id: UUID) -> rows.KnownFact | None:
        return self._known.get(fact_id) or self._state.facts.get(fact_id)

    def _fact(self, fact_id: UUID) -> rows.KnownFact:
        return self._known.get(fact_id) or self._state.facts[fact_id]
