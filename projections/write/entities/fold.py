"""Which events about entities are applied, and the rows that they make (pure).

Entities, names, links and relations are of exactly the scope of their commit: an event that names an entity or a fact
of another scope, or one that is not known, is not applied.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never
from uuid import UUID

from mnemolog.projections.write.entities.rows import AliasRow, AnyEntityRow, EntityRow, EvidenceRow, LinkRow
from mnemolog.projections.write.rows import LogPosition, RejectionRow
from mnemolog.schemas import ids
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.events import (
    AnyEntityEvent,
    EntityAliasAdded,
    EntityRegistered,
    FactLinked,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.scope import ScopeColumns, scope_columns

EntityScopes = Mapping[UUID, ScopeColumns]
"""The scope of each known entity."""


@dataclass(slots=True)
class EntityFold:
    """Collects the rows of one commit's events; `scope_of_fact` gives the scope of a fact, None for an unknown one."""

    commit: Commit
    position: LogPosition
    known: EntityScopes
    scope_of_fact: Callable[[UUID], ScopeColumns | None]
    rows: list[AnyEntityRow] = field(default_factory=list)
    rejections: list[RejectionRow] = field(default_factory=list)
    _own: dict[UUID, ScopeColumns] = field(default_factory=dict)

    def add_event(self, event: AnyEntityEvent) -> None:
        if faults := list(self._faults(event)):
            self.rejections.append(self._rejection(event, faults))
        else:
            self.rows += self._rows(event)

    def _rows(self, event: AnyEntityEvent) -> Iterator[AnyEntityRow]:
        commit, event_id = self.commit, event.event_id
        match event:
            case EntityRegistered():
                twins = tuple(twin for twin in event.possible_twins if self._is_here(self._scope_of(twin)))
                self._own[event.entity_id] = scope_columns(commit.scope)
                yield EntityRow(commit=commit, event=event, possible_twins=twins)
                for place, alias in enumerate(event.aliases):
                    entity_id = event.entity_id
                    yield AliasRow(commit=commit, entity_id=entity_id, event_id=event_id, place=place, alias=alias)
            case EntityAliasAdded(entity_id=entity_id, alias=alias):
                yield AliasRow(commit=commit, entity_id=entity_id, event_id=event_id, place=0, alias=alias)
            case FactLinked():
                for link in {(link.entity_id, link.role): link for link in event.links}.values():
                    yield LinkRow(fact_id=event.fact_id, event_id=event_id, link=link)
            case RelationStated() | RelationEnded():
                relation_id = ids.relation_id(event.subject_id, event.predicate, event.object_id)
                yield EvidenceRow(commit=commit, relation_id=relation_id, event=event)
            case _:
                assert_never(event)

    def _faults(self, event: AnyEntityEvent) -> Iterator[str]:
        match event:
            case EntityRegistered(entity_id=entity_id):
                if self._scope_of(entity_id) is not None:
                    yield f"the entity {entity_id} is known already"
            case EntityAliasAdded(entity_id=entity_id):
                yield from self._entity_fault(entity_id)
            case FactLinked():
                yield from self._fact_fault(event.fact_id)
                for link in event.links:
                    yield from self._entity_fault(link.entity_id)
            case RelationStated() | RelationEnded():
                yield from self._fact_fault(event.fact_id)
                for entity_id in (event.subject_id, event.object_id):
                    yield from self._entity_fault(entity_id)
                if event.subject_id == event.object_id:
                    yield f"a relation of the entity {event.subject_id} to itself"
            case _:
                assert_never(event)

    def _fact_fault(self, fact_id: UUID) -> Iterator[str]:
        if not self._is_here(self.scope_of_fact(fact_id)):
            yield f"the fact {fact_id} is not known in this scope"

    def _entity_fault(self, entity_id: UUID) -> Iterator[str]:
        if not self._is_here(self._scope_of(entity_id)):
            yield f"the entity {entity_id} is not known in this scope"

    def _is_here(self, scope: ScopeColumns | None) -> bool:
        return scope is not None and scope == scope_columns(self.commit.scope)

    def _scope_of(self, entity_id: UUID) -> ScopeColumns | None:
        return self._own.get(entity_id) or self.known.get(entity_id)

    def _rejection(self, event: AnyEntityEvent, faults: list[str]) -> RejectionRow:
        return RejectionRow(
            position=self.position,
            item=event.ordinal + 1,
            owner=self.commit.owner,
            source_id=self.commit.source_id,
            reason="foreign_target",
            detail="; ".join(dict.fromkeys(faults)),
        )
