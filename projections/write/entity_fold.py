"""Which events about entities are applied, the rows that they make.

And the current state of entities that follows from them (pure).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple
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
    EntityAliasSet,
    EntityDecisionUndone,
    EntityForgotten,
    EntityRegistered,
    EntityRenamed,
    EntitySplit,
    FactLinked,
    MergeRejected,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.scope import ScopeColumns, scope_columns

OTHER: Final = "other"
"""The type of an entity of which nobody has said what it is."""
EntityStatus = Literal["active", "merged", "forgotten", "undone"]


class RegisteredEntity(NamedTuple):
    """An entity as it was registered; it `is_named` by a fact that was not undone."""

    entity_id: UUID
    event_id: UUID
    name: str
    type: str
    is_user: bool
    is_named: bool


class GivenAlias(NamedTuple):
    """A name as an event gave it; `place` is that within its commit.

    An entity keeps its first name, which `is_own`; it has another name while a fact that was not undone says it.
    """

    entity_id: UUID
    kind: str
    key: str
    text: str
    place: int
    event_id: UUID
    log_offset: int
    is_own: bool
    is_said: bool


class GivenType(NamedTuple):
    """The type that a fact gives to an entity without a type."""

    fact_id: UUID
    entity_id: UUID
    type: str


class StoredChange(NamedTuple):
    """A change, and whether it holds."""

    event: AnyEntityChange
    log_offset: int
    in_effect: bool


class CurrentEntity(NamedTuple):
    """What an entity is now."""

    name: str
    type: str
    status: EntityStatus
    merged_into: UUID | None


@dataclass(slots=True)
class CurrentState:
    """What entities, their names and the links of facts are after the changes that connect them."""

    entities: Mapping[UUID, RegisteredEntity]
    aliases: Sequence[GivenAlias]
    types: Sequence[GivenType]
    moved: dict[tuple[UUID, UUID], UUID] = field(default_factory=dict)
    """Per fact and entity that it was linked to, the entity that it is linked to now."""
    _parents: dict[UUID, UUID] = field(default_factory=dict)
    _names: dict[UUID, str] = field(default_factory=dict)
    _forgotten: set[UUID] = field(default_factory=set)
    _withdrawn: set[GivenAlias] = field(default_factory=set)
    _undone: set[UUID] = field(default_factory=set)
    _split_off: set[UUID] = field(default_factory=set)
    _never_split: set[UUID] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        entities: Iterable[RegisteredEntity],
        aliases: Sequence[GivenAlias],
        links: Iterable[tuple[UUID, UUID]],
        changes: Iterable[StoredChange],
        types: Sequence[GivenType] = (),
    ) -> "CurrentState":
        """`links` are pairs of a fact that a split names and an entity; `types` are in log order."""
        state = cls({one.entity_id: one for one in entities}, aliases, types, {link: link[1] for link in links})
        for change in changes:
            state._apply(change) if change.in_effect else state._leave_out(change.event)
        return state

    def current(self) -> dict[UUID, CurrentEntity]:
        known = self._living_roots()
        return {entity_id: self._current(entity, known) for entity_id, entity in self.entities.items()}

    def current_aliases(self) -> dict[GivenAlias, UUID | None]:
        """The entity that has each name now; None for a name that is none any more."""
        known = self._living_roots()
        return {
            alias: self._root(alias.entity_id) if self._is_current(alias, known) else None for alias in self.aliases
        }

    def _apply(self, change: StoredChange) -> None:
        match change.event:
            case EntityRenamed(entity_id=entity_id, name=name):
                self._names[entity_id] = name
            case EntityAliasSet(moved_from=moved_from, alias=alias):
                if moved_from is not None:
                    self._withdraw(moved_from, [alias], change.log_offset)
            case EntitiesMerged(merged=merged, into=into):
                for entity_id in merged:
                    if self._never_split.isdisjoint((entity_id, into)):
                        self._join(entity_id, into)
            case EntitySplit() as split:
                self._split_off.add(split.new_id)
                self._split(split)
                self._withdraw(split.entity_id, split.names, change.log_offset)
            case EntityForgotten(entity_id=entity_id) if entity_id not in self._never_split:
                root = self._root(entity_id)
                self._forgotten |= {one for one in self.entities if self._root(one) == root}

    def _leave_out(self, event: AnyEntityChange) -> None:
        """What a split that was undone had made is what it was made of: later facts may name it.

        A merge or a forgetting of it was not meant for what it was made of, and falls with the split.
        """
        self._undone.add(event.event_id)
        if isinstance(event, EntitySplit):
            self._never_split.add(event.new_id)
            self._join(event.new_id, event.entity_id)

    def _split(self, split: EntitySplit) -> None:
        root, facts = self._root(split.entity_id), set(split.facts)
        for (fact_id, linked), holder in self.moved.items():
            if fact_id in facts and self._root(holder) == root:
                self.moved[fact_id, linked] = split.new_id

    def _withdraw(self, entity_id: UUID, names: Iterable[Alias], log_offset: int) -> None:
        """Take the names that were given before from the entity, and from entities that were merged into it."""
        root, keys = self._root(entity_id), {(alias.kind, alias.key) for alias in names}
        self._withdrawn |= {
            one
            for one in self.aliases
            if (one.kind, one.key) in keys and one.log_offset < log_offset and self._root(one.entity_id) == root
        }

    def _join(self, entity_id: UUID, into: UUID) -> None:
        one, other = self._root(entity_id), self._root(into)
        if one != other:
            self._parents[one] = other

    def _root(self, entity_id: UUID) -> UUID:
        while (parent := self._parents.get(entity_id)) is not None:
            entity_id = parent
        return entity_id

    def _is_forgotten(self, entity_id: UUID) -> bool:
        """Whether it was, or what it is now: a forgetting may hold again after a merge."""
        return not self._forgotten.isdisjoint((entity_id, self._root(entity_id)))

    def _living_roots(self) -> set[UUID]:
        """The entities for which somebody speaks: a fact that was not undone, a person, or the user themselves."""
        return {
            self._root(one.entity_id)
            for one in self.entities.values()
            if one.is_user or one.is_named or one.entity_id in self._split_off
        }

    def _current(self, entity: RegisteredEntity, known: set[UUID]) -> CurrentEntity:
        root = self._root(entity.entity_id)
        status: EntityStatus = "active"
        if self._is_forgotten(entity.entity_id):
            status = "forgotten"
        elif root != entity.entity_id:
            status = "merged"
        elif root not in known:
            status = "undone"
        name, kind = self._name_of(entity, known), self._type_of(entity)
        return CurrentEntity(name, kind, status, root if root != entity.entity_id else None)

    def _name_of(self, entity: RegisteredEntity, known: set[UUID]) -> str:
        """What a person called it; for a tie the first proper name of it, or of what was merged into it."""
        if (renamed := self._names.get(entity.entity_id)) is not None:
            return renamed
        if not any(one.is_own and one.kind == "tie" and one.entity_id == entity.entity_id for one in self.aliases):
            return entity.name
        named = [one for one in self.aliases if one.kind == "name" and self._is_in(one.entity_id, entity)]
        current = (one for one in named if self._is_current(one, known))
        # The names of the entity itself first, in the order in which they were given.
        first = min(
            current,
            key=lambda one: (one.entity_id != entity.entity_id, one.log_offset, one.place, one.key),
            default=None,
        )
        return entity.name if first is None else self._names.get(first.entity_id, first.text)

    def _type_of(self, entity: RegisteredEntity) -> str:
        """The registered type; where that is not known the first type that a fact gave, or that of a merged entity."""
        if entity.type != OTHER:
            return entity.type
        held = (self.moved.get((one.fact_id, one.entity_id), one.entity_id) for one in self.types)
        given = [one.type for one, holder in zip(self.types, held, strict=True) if self._is_in(holder, entity)]
        members = [one for one in self.entities.values() if self._is_in(one.entity_id, entity) and one.type != OTHER]
        return next(iter((*given, *sorted(one.type for one in members))), OTHER)

    def _is_in(self, entity_id: UUID, entity: RegisteredEntity) -> bool:
        """Whether it is the entity, or was merged into it."""
        return entity_id == entity.entity_id or self._root(entity_id) == entity.entity_id

    def _is_current(self, alias: GivenAlias, known: set[UUID]) -> bool:
        if alias in self._withdrawn or alias.event_id in self._undone or self._is_forgotten(alias.entity_id):
            return False
        entity = self.entities[alias.entity_id]
        is_users = alias.kind == "user" or (entity.is_user and alias.event_id == entity.event_id)
        return self._root(alias.entity_id) in known and (alias.is_own or alias.is_said or is_users)


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
