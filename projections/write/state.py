"""The state of the tables that a fold reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import UUID

from mnemolog.projections.write.entities.rows import EntityChangeRow, EntityRow
from mnemolog.projections.write.rows import Changes, KnownFact
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.changes import EntityChange
from mnemolog.schemas.entities.events import FactLinked, RelationEvent
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

    Changes of entities are among these. `undone_entities` are those that no fact names any more.
    """

    applied: dict[SourceKey, LastAttempt] = field(default_factory=dict)
    facts: dict[UUID, KnownFact] = field(default_factory=dict)
    entities: dict[UUID, ScopeColumns] = field(default_factory=dict)
    undone_entities: frozenset[UUID] = frozenset()

    def apply(self, changes: Changes) -> Self:
        """The state in which the next commit is folded; this one is not modified."""
        after = replace(self, applied=dict(self.applied), facts=dict(self.facts), entities=dict(self.entities))
        after.advance(changes)
        return after

    def advance(self, changes: Changes) -> None:
        """Become the state in which the next commit is folded: for who holds the only reference."""
        for row in changes.commits:
            self.applied[source_of(row.commit)] = attempt_of(row.commit)
        for new in changes.facts:
            fact_id = new.fact.fact_id
            self.facts[fact_id] = KnownFact(fact_id=fact_id, scope=scope_columns(new.commit.scope), state=new.state)
        for known in changes.updates:
            self.facts[known.fact_id] = known
        for entity in changes.entities:
            if isinstance(entity, EntityRow):
                self.entities[entity.event.entity_id] = scope_columns(entity.commit.scope)
            elif isinstance(entity, EntityChangeRow):
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
        linked = [event.fact_id for event in commit.entity_events if isinstance(event, (FactLinked, RelationEvent))]
        linked += [one for event in commit.entity_events if isinstance(event, EntityChange) for one in event.fact_ids]
        own = {event.new_fact.fact_id for event in commit.events if event.new_fact}
        named |= dict.fromkeys(fact_id for fact_id in linked if fact_id not in own)
    return list(named)
