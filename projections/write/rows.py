"""Rows that a fold makes, as values, and how rows of several commits are merged."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import Alias, EntityLink
from mnemolog.schemas.entity_events import AnyEntityChange, EntityRegistered, RelationEnded, RelationStated
from mnemolog.schemas.events import FactPending, MemoryEvent, PolicySet, Relation
from mnemolog.schemas.facts import OPEN_STATUSES, FactStatus, NewFact
from mnemolog.schemas.scope import ScopeColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    """A new entity; `possible_twins` are entities of its scope."""

    commit: Commit
    event: EntityRegistered
    possible_twins: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRow:
    """A name of an entity; `place` counts the names that its commit gives, `is_own` is the entity's first name.

    Where a repetition of a known fact gave the name, `told_by` is its event and `repeated_fact_id` the known fact.
    """

    commit: Commit
    log_offset: int
    entity_id: UUID
    event_id: UUID
    place: int
    alias: Alias
    is_own: bool = False
    told_by: UUID | None = None
    repeated_fact_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """An entity that a fact names; `told_by` is the event of the repetition that named it, where one did."""

    fact_id: UUID
    event_id: UUID
    link: EntityLink
    told_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """What a fact says of a relation, which becomes a row too where it is the first; `told_by` as in `LinkRow`."""

    commit: Commit
    relation_id: UUID
    event: RelationStated | RelationEnded
    told_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChangeRow:
    """What a person decided about entities."""

    position: "LogPosition"
    commit: Commit
    event: AnyEntityChange


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleEntity:
    """An entity whose state is derived anew: it was undone and is named again, or it got a name or a type.

    No row of a table.
    """

    entity_id: UUID


AnyEntityRow = EntityRow | AliasRow | LinkRow | EvidenceRow | EntityChangeRow | StaleEntity


RejectionReason = Literal["duplicate_source", "not_a_commit", "not_storable", "stale_target", "foreign_target"]
Settlement = Literal["confirmed", "rejected", "overtaken", "deleted", "undone"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LogPosition:
    """A record's place in `memory_events`."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedFactState:
    """The fields of a fact that later commits can change, and since when they have these values."""

    status: FactStatus = "active"
    confidence: float
    mention_count: int = 1
    last_confirmed_at: datetime | None = None
    true_to: datetime | None = None
    closed_at: datetime | None = None
    believed_from: datetime | None
    believed_to: datetime | None = None
    superseded_by: UUID | None = None
    unresolved: bool = False
    true_from: datetime
    state_since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact as the fold knows it: its scope and its state."""

    fact_id: UUID
    scope: ScopeColumns
    state: TimedFactState

    @property
    def is_open(self) -> bool:
        return self.state.status in OPEN_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    """An applied commit with the exact bytes of its record."""

    position: LogPosition
    commit: Commit
    record: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event; `stale` where a target was no longer as the decision saw it.

    `fact_id` is the fact that it is about: the new one, else the first that it names; a policy and an undo have none.
    `targets` are the others, and all that a retraction or an expiry ends.
    """

    position: LogPosition
    commit: Commit
    event: MemoryEvent
    fact_id: UUID | None
    targets: tuple[UUID, ...]
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """A new fact; `ordinal` is that of its event, `supersedes` names the versions that it really ended."""

    commit: Commit
    fact: NewFact
    ordinal: int
    supersedes: tuple[UUID, ...]
    stale: bool
    state: TimedFactState


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerStateRow:
    """The state of a fact until event `event_id` changed it at `until`."""

    fact_id: UUID
    event_id: UUID
    state: TimedFactState
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRow:
    """`fact_id` extends, or is similar to, `related_id`."""

    fact_id: UUID
    related_id: UUID
    relation: Relation
    event_id: UUID
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementRow:
    """What became of a pending fact by event `event_id`; without a `settlement` it is pending again."""

    fact_id: UUID
    settlement: Settlement | None
    event_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """An overwrite that is held back."""

    commit: Commit
    event: FactPending


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneRow:
    """Event `event_id` is not in effect because of `undone_by`; without that it is in effect again."""

    event_id: UUID
    undone_by: UUID | None
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """The policy that applies to `scope` from now on; that of a whole tenant names only the tenant."""

    scope: ScopeColumns
    event: PolicySet
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionRow:
    """What was not applied, and why. Item 0 is the whole record, kept in `record`; item n is event n - 1."""

    position: LogPosition
    item: int
    owner: str | None
    source_id: str | None
    reason: RejectionReason
    detail: str
    record: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeIncrement:
    """How many new commits a scope has that may change a decision: those with events or a speaker.

    And how many more facts that are active or pending, and who spoke, each speaker once, in the order of the log.
    """

    scope: ScopeColumns
    owner: str
    partition: int
    commits: int
    facts: int
    speakers: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Changes:
    """What one or many commits do to the tables. `updates` are known facts with their new states."""

    commits: list[CommitRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    facts: list[FactRow] = field(default_factory=list)
    updates: list[KnownFact] = field(default_factory=list)
    former_states: list[FormerStateRow] = field(default_factory=list)
    relations: list[RelationRow] = field(default_factory=list)
    pending: list[PendingRow] = field(default_factory=list)
    settlements: list[SettlementRow] = field(default_factory=list)
    undone: list[UndoneRow] = field(default_factory=list)
    policies: list[PolicyRow] = field(default_factory=list)
    entities: list[AnyEntityRow] = field(default_factory=list)
    scope_increments: list[ScopeIncrement] = field(default_factory=list)
    rejections: list[RejectionRow] = field(default_factory=list)

    def merge_rows(self) -> Self:
        """Leave each row once, in the final state that all its changes give it; returns the changes themselves."""
        updates = {known.fact_id: known for known in self.updates}
        for place, new in enumerate(self.facts):
            known = updates.pop(new.fact.fact_id, None)
            if known is not None and known.state is not new.state:
                self.facts[place] = replace(new, state=known.state)
        self.updates = list(updates.values())
        self.settlements = list({settled.fact_id: settled for settled in self.settlements}.values())
        self.undone = list({row.event_id: row for row in self.undone}.values())
        self.policies = list({row.scope: row for row in self.policies}.values())
        increments: dict[ScopeColumns, ScopeIncrement] = {}
        for step in self.scope_increments:
            if (before := increments.get(step.scope)) is None:
                increments[step.scope] = step
                continue
            increments[step.scope] = replace(
                step,
                commits=before.commits + step.commits,
                facts=before.facts + step.facts,
                speakers=tuple(dict.fromkeys((*before.speakers, *step.speakers))),
            )
        self.scope_increments = list(increments.values())
        return self


def merge_changes(parts: Iterable[Changes]) -> Changes:
    """One set of changes that does what `parts` do one after another."""
    merged = Changes()
    for part in parts:
        for kind in fields(Changes):
            getattr(merged, kind.name).extend(getattr(part, kind.name))
    return merged.merge_rows()
