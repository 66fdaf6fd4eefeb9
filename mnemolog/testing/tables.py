"""The tables in memory: commits, folded by the product's own fold, and the rows that come of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel

from mnemolog.projections.queries.results import Fact
from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import (
    AliasRow,
    Changes,
    EntityRow,
    EventRow,
    FactRow,
    FormerStateRow,
    LinkRow,
    LogPosition,
    TimedFactState,
)
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ENDED_STATUSES, OPEN_STATUSES
from mnemolog.schemas.policy import StoredPolicies
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope, ScopeColumns, scope_columns
from mnemolog.schemas.turn import Turn
from mnemolog.streams.text.differences import USER_WORDS

T = TypeVar("T")
_NAME_KEYS: Final = ("name", "full_name", "first_name", "nickname")
_MAX_NAME: Final = 100
_TAKING_BACK: Final = ("fact_retracted", "pending_rejected", "conflict_resolved")
_STATE: Final = frozenset(one.name for one in fields(TimedFactState))


@dataclass(frozen=True, slots=True)
class Version:
    """A fact in one of its states; it has the fields of both, and those of the state go first."""

    row: FactRow
    state: TimedFactState
    disputed: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state if name in _STATE else self.row.fact, name)

    @property
    def scope(self) -> ScopeColumns:
        return scope_columns(self.row.commit.scope)

    @property
    def is_open(self) -> bool:
        return self.state.status in OPEN_STATUSES

    @property
    def is_active(self) -> bool:
        return self.state.status == "active"

    @property
    def was_true(self) -> bool:
        return self.state.believed_from is not None and self.state.status in {*ENDED_STATUSES, "active"}

    @property
    def has_ended(self) -> bool:
        """Whether it was true until `true_to`, and is believed still."""
        return self.was_true and self.state.believed_to is None and self.state.true_to is not None

    @property
    def end(self) -> datetime | None:
        return min((end for end in (self.row.fact.valid_until, self.state.true_to) if end is not None), default=None)

    def holds(self, at: datetime) -> bool:
        """Whether it has not ended at a time."""
        return self.end is None or self.end > at

    @property
    def learned(self) -> tuple[datetime, int, UUID]:
        """Its place in the order in which facts were learned."""
        return self.row.commit.decided_at, self.row.ordinal, self.row.fact.fact_id

    @property
    def own_metadata(self) -> dict[str, Any]:
        return dict(self.row.fact.metadata or self.row.commit.metadata)

    def shown(self, at: datetime) -> Fact:
        """The fact as readers see it at a time: what has ended by then is expired."""
        commit = self.row.commit
        ids = {name: getattr(commit.scope, name, None) for name in SCOPE_FIELDS}
        is_over = self.is_open and not self.holds(at)
        return made(
            Fact,
            *(self.state, self.row.fact, self.row),
            **ids,
            more_categories=list(self.row.fact.more_categories),
            status="expired" if is_over else self.state.status,
            recorded_at=commit.decided_at,
            supersedes=list(self.row.supersedes),
            source_id=commit.source_id,
            embedding_model=self.row.fact.vector.model,
            metadata=self.own_metadata,
            begins_later=self.is_open and self.state.true_from > at,
            disputed=self.disputed,
        )


@dataclass
class Tables:
    """What a log of commits has made, and the turns and commands that were received."""

    state: FoldState = field(default_factory=FoldState)
    rows: Changes = field(default_factory=Changes)
    facts: dict[UUID, FactRow] = field(default_factory=dict)
    received: dict[tuple[str, str], Turn | Command] = field(default_factory=dict)
    """By owner and source id, the first of each."""
    records: int = 0
    disputed: set[UUID] = field(default_factory=set)
    """The facts that a held overwrite would end or deny."""

    def append(self, commit: Commit) -> None:
        """Take a commit as the next record of the log."""
        changes = fold(self.state, commit, LogPosition(partition=0, offset=self.records), commit.to_bytes())
        self.records += 1
        self.state.advance(changes)
        for kind in fields(Changes):
            getattr(self.rows, kind.name).extend(getattr(changes, kind.name))
        self.facts |= {row.fact.fact_id: row for row in changes.facts}
        cases = [row.event for row in self.open_cases() if row.event.action != "merge"]
        self.disputed = {fact_id for event in cases for fact_id in self.challenged(event.fact.fact_id)}

    def version(self, fact_id: UUID) -> Version:
        """A known fact as it is now."""
        return Version(self.facts[fact_id], self.state.facts[fact_id].state, fact_id in self.disputed)

    def known(self, fact_ids: Iterable[UUID]) -> Iterator[Version]:
        """The known facts among these."""
        return (self.version(one) for one in fact_ids if one in self.facts)

    def in_scope(self, scope: ScopeColumns, *statuses: str) -> list[Version]:
        """The facts of exactly one scope in the order in which they were learned; those of some statuses, or all."""
        found = (one for one in self.known(self.facts) if one.scope == scope)
        return sorted(
            (one for one in found if not statuses or one.status in statuses), key=lambda version: version.learned
        )

    def superseded_by(self, ender: UUID) -> list[Version]:
        """The facts of its scope in whose place a fact has come."""
        scope = self.version(ender).scope
        return [one for one in self.known(self.facts) if one.superseded_by == ender and one.scope == scope]

    def former(self, fact_id: UUID) -> list[FormerStateRow]:
        """The former states of a fact, the oldest first."""
        found = (row for row in self.rows.former_states if row.fact_id == fact_id)
        return sorted(found, key=lambda row: (row.until, row.state.state_since))

    def is_undone(self, event_id: UUID) -> bool:
        turns = [row.undone_by for row in self.rows.undone if row.event_id == event_id]
        return bool(turns) and turns[-1] is not None

    def events_of(self, *fact_ids: UUID) -> list[EventRow]:
        """The events that made, touched or challenged one of these facts, in the order of the log."""
        changed = {row.event_id for row in self.rows.former_states if row.fact_id in fact_ids}
        return [
            row
            for row in self.rows.events
            if row.fact_id in fact_ids or not set(fact_ids).isdisjoint(row.targets) or row.event.event_id in changed
        ]

    def merged_into(self, fact_id: UUID) -> list[UUID]:
        """A fact, what it was merged or corrected into, what that was, and so on."""
        found = [fact_id]
        for one in found:
            state = self.version(one)
            is_part = state.status == "superseded" and state.believed_to is not None
            if is_part and state.superseded_by is not None and state.superseded_by not in found:
                found.append(state.superseded_by)
        return found

    def is_taken_back(self, fact_id: UUID) -> bool:
        """Whether a command ended a fact, or what it was merged or corrected into, as one that says nothing more."""
        for version in self.known(self.merged_into(fact_id)):
            one, was_true = version.fact_id, version.believed_from is not None and version.believed_to is None
            changing = {row.event_id for row in self.former(one)}
            for row in () if version.is_open else self.rows.events:
                kind = row.event.event
                if (
                    row.event.event_id in changing
                    and row.event.decision.by == "person"
                    and kind not in ("decision_undone", "subjects_changed")
                    and (one in row.targets or (row.fact_id == one and kind in _TAKING_BACK))
                    and not (was_true and kind in ("pending_confirmed", "conflict_resolved"))
                    and not self.is_undone(row.event.event_id)
                ):
                    return True
        return False

    def open_cases(self) -> Iterator[Any]:
        """The rows of held overwrites that wait for a confirmation."""
        return (
            row for row in self.rows.pending if self.version(row.event.fact.fact_id).status == "pending_confirmation"
        )

    def challenged(self, pending_id: UUID) -> dict[UUID, bool]:
        """The open facts that a held overwrite challenges, and whether each is only what a target has become."""
        waiting = next(row.event for row in self.rows.pending if row.event.fact.fact_id == pending_id)
        found = dict.fromkeys(waiting.targets, False)
        for target in waiting.targets:
            for one in self.merged_into(target)[1:]:
                if one == pending_id:
                    break
                found.setdefault(one, True)
        return {fact_id: is_later for fact_id, is_later in found.items() if self.version(fact_id).is_open}

    def user_names(
        self, scope: ScopeColumns, speaker: str | None = None, user_words: Sequence[str] = tuple(USER_WORDS)
    ) -> tuple[str, ...]:
        """The names of the user of a scope: the first speaker and what facts about the user have as a name."""
        if not scope[1]:
            return ()
        spoken = [name for step in self.rows.scope_increments if step.scope == scope for name in step.speakers]
        named = (name for name in (*spoken, speaker) if name is not None and name.lower() not in user_words)
        first = next(named, None)
        subjects = {None, *user_words, *({first.lower()} if first else ())}
        facts = [
            one
            for one in self.in_scope(scope, "active", *ENDED_STATUSES)
            if one.key in _NAME_KEYS
            and 1 <= len(one.value or "") <= _MAX_NAME
            and one.believed_to is None
            and (one.subject and one.subject.lower()) in subjects
        ]
        values = {one.value for one in facts[-20:]} | {first}
        return tuple(sorted(value for value in values if value))

    def policies_of(self, scope: Scope) -> StoredPolicies:
        """What was set last for a scope and for its tenant."""
        found = {row.scope: row.event.policy for row in self.rows.policies}
        return StoredPolicies(tenant=found.get((scope.tenant, "", "", "", "")), scope=found.get(scope_columns(scope)))

    @property
    def aliases(self) -> Iterator[AliasRow]:
        return (row for row in self.rows.entities if isinstance(row, AliasRow))

    @property
    def entities(self) -> dict[UUID, EntityRow]:
        return {row.event.entity_id: row for row in self.rows.entities if isinstance(row, EntityRow)}

    def links(self, fact_ids: Iterable[UUID]) -> list[LinkRow]:
        wanted = frozenset(fact_ids)
        return [row for row in self.rows.entities if isinstance(row, LinkRow) and row.fact_id in wanted]


def made(kind: type[T], *sources: Any, **given: Any) -> T:
    """A value of `kind`: with what is `given`, and each other field from the first of `sources` that has it."""
    names = kind.model_fields if issubclass(kind, BaseModel) else (one.name for one in fields(cast("Any", kind)))
    for name in names:
        if name not in given:
            given |= next(({name: getattr(one, name)} for one in sources if hasattr(one, name)), {})
    return kind(**given)
