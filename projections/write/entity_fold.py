"""Which events about entities are applied, and the rows that they make (pure)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from mnemolog.projections.write.rows import (
    AliasRow,
    AnyEntityRow,
    EntityChangeRow,
    EntityRow,
    EvidenceRow,
    LinkRow,
    LogPosition,
    RejectionRow,
    StaleEntity,
)
from mnemolog.schemas import ids
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import Alias
from mnemolog.schemas.entity_events import (
    AnyEntityChange,
    AnyEntityEvent,
    EntitiesMerged,
    EntityAliasAdded,
    EntityDecisionUndone,
    EntityRegistered,
    EntitySplit,
    FactLinked,
    MergeRejected,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.scope import ScopeColumns, scope_columns

EntityScopes = Mapping[UUID, ScopeColumns]
"""The scope of each known entity, and of each known change of entities."""


@dataclass(slots=True)
class EntityFold:
    """Collects the rows of one commit's events; `scope_of_fact` gives the scope of a fact, None for an unknown one.

    `undone` are the known entities that no fact names any more.
    """

    commit: Commit
    position: LogPosition
    known: EntityScopes
    undone: Collection[UUID]
    scope_of_fact: Callable[[UUID], ScopeColumns | None]
    rows: list[AnyEntityRow] = field(default_factory=list)
    rejections: list[RejectionRow] = field(default_factory=list)
    _own: dict[UUID, ScopeColumns] = field(default_factory=dict)
    _repetitions: dict[UUID, UUID] = field(default_factory=dict)
    """The event of the first repetition of each known fact that the commit repeats."""
    _repeated: dict[UUID, UUID] = field(default_factory=dict)
    """Per entity that no new fact of the commit names, the known fact whose repetition names it."""

    def __post_init__(self) -> None:
        new = {fact.fact_id for event in self.commit.events if (fact := event.new_fact) is not None}
        for event in self.commit.events:
            if event.told_id is not None and event.told_id not in new:
                self._repetitions.setdefault(event.told_id, event.event_id)
        linked = [one for one in self.commit.entity_events if isinstance(one, FactLinked)]
        named = {link.entity_id for one in linked if one.fact_id in new for link in one.links}
        for one in linked:
            if one.fact_id in self._repetitions:
                others = (link.entity_id for link in one.links if link.entity_id not in named)
                self._repeated |= dict.fromkeys(others, one.fact_id)

    def add_event(self, event: AnyEntityEvent) -> None:
        if faults := list(self._faults(event)):
            self.rejections.append(self._rejection(event, faults))
        else:
            self.rows += self._rows(event)

    def _rows(self, event: AnyEntityEvent) -> Iterator[AnyEntityRow]:
        match event:
            case EntityRegistered():
                yield from self._registered(event)
            case EntityAliasAdded(entity_id=entity_id, alias=alias):
                yield from (
                    [StaleEntity(entity_id=entity_id)] if alias.kind == "name" else self._named_again([entity_id])
                )
                yield self._alias(event, entity_id, event.ordinal, alias)
            case FactLinked():
                yield from self._named_again([link.entity_id for link in event.links if link.type is None])
                yield from (StaleEntity(entity_id=link.entity_id) for link in event.links if link.type is not None)
                repetition = self._repetitions.get(event.fact_id)
                for link in {(link.entity_id, link.role): link for link in event.links}.values():
                    yield LinkRow(fact_id=event.fact_id, event_id=event.event_id, link=link, told_by=repetition)
            case RelationStated() | RelationEnded():
                yield from self._named_again([event.subject_id, event.object_id])
                relation_id = ids.relation_id(event.subject_id, event.predicate, event.object_id)
                repetition = self._repetitions.get(event.fact_id)
                yield EvidenceRow(commit=self.commit, relation_id=relation_id, event=event, told_by=repetition)
            case _:
                yield from self._changed(event)

    def _registered(self, event: EntityRegistered) -> Iterator[AnyEntityRow]:
        twins = tuple(twin for twin in event.possible_twins if self._is_here(self._scope_of(twin)))
        self._own[event.entity_id] = scope_columns(self.commit.scope)
        yield EntityRow(commit=self.commit, event=event, possible_twins=twins)
        for place, alias in enumerate(event.aliases):
            yield self._alias(event, event.entity_id, place, alias, is_own=place == 0)

    def _changed(self, event: AnyEntityChange) -> Iterator[AnyEntityRow]:
        entity_id, aliases = event.entity_ids[0], event.aliases
        self._own[event.event_id] = scope_columns(self.commit.scope)
        if isinstance(event, EntitySplit):
            yield from self._registered(_new_entity(event))
            entity_id, aliases = event.new_id, aliases[1:]
        for place, alias in enumerate(aliases, start=1):
            yield self._alias(event, entity_id, place, alias)
        where = {"partition": self.position.partition, "log_offset": self.position.offset}
        yield EntityChangeRow(commit=self.commit, event=event, **where)

    def _alias(
        self, event: AnyEntityEvent, entity_id: UUID, place: int, alias: Alias, *, is_own: bool = False
    ) -> AliasRow:
        repeated = self._repeated.get(entity_id)
        return AliasRow(
            commit=self.commit,
            log_offset=self.position.offset,
            entity_id=entity_id,
            event_id=event.event_id,
            place=place,
            alias=alias,
            is_own=is_own,
            told_by=None if repeated is None else self._repetitions[repeated],
            repeated_fact_id=repeated,
        )

    def _named_again(self, entity_ids: list[UUID]) -> Iterator[StaleEntity]:
        return (StaleEntity(entity_id=one) for one in dict.fromkeys(entity_ids) if one in self.undone)

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
                yield from self._change_faults(event)

    def _change_faults(self, event: AnyEntityChange) -> Iterator[str]:
        known = event.entity_ids
        match event:
            case EntitySplit(entity_id=entity_id, new_id=new_id):
                known = (entity_id,)
                if self._scope_of(new_id) is not None:
                    yield f"the entity {new_id} is known already"
            case EntityDecisionUndone(original_id=change_id) | MergeRejected(proposal=change_id):
                yield from self._change_fault(change_id)
            case EntitiesMerged(proposal=UUID() as change_id):
                yield from self._change_fault(change_id)
        for entity_id in known:
            yield from self._entity_fault(entity_id)
        for fact_id in event.fact_ids:
            if not self._is_here(self.scope_of_fact(fact_id)):
                yield f"the fact {fact_id} is not known in this scope"

    def _change_fault(self, event_id: UUID) -> Iterator[str]:
        if not self._is_here(self._scope_of(event_id)):
            yield f"the change {event_id} is not known in this scope"

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


def _new_entity(split: EntitySplit) -> EntityRegistered:
    return EntityRegistered(
        event_id=split.event_id,
        ordinal=split.ordinal,
        entity_id=split.new_id,
        name=split.name,
        type=split.type,
        aliases=split.names,
    )
