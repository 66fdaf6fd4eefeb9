"""What entities, their names and the subjects of facts are by the changes that hold (pure)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple
from uuid import UUID

from mnemolog.schemas import entity_events
from mnemolog.schemas.entities import Alias

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

    event: entity_events.AnyEntityChange
    log_offset: int
    in_effect: bool


class ConnectedEntities(NamedTuple):
    """Entities that changes connect, these changes in the log's order, and `links`: facts with their first subjects."""

    entities: Sequence[RegisteredEntity]
    changes: Sequence[StoredChange]
    links: Sequence[tuple[UUID, UUID]]


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
        known, found = self._living_roots(), {}
        for entity_id, entity in self.entities.items():
            root = self._root(entity_id)
            status: EntityStatus = "active"
            if self._is_forgotten(entity_id):
                status = "forgotten"
            elif root != entity_id:
                status = "merged"
            elif root not in known:
                status = "undone"
            name, kind = self._name_of(entity, known), self._type_of(entity)
            found[entity_id] = CurrentEntity(name, kind, status, root if root != entity_id else None)
        return found

    def current_aliases(self) -> dict[GivenAlias, UUID | None]:
        """The entity that has each name now; None for a name that is none any more."""
        known = self._living_roots()
        return {
            alias: self._root(alias.entity_id) if self._is_current(alias, known) else None for alias in self.aliases
        }

    def _apply(self, change: StoredChange) -> None:
        match change.event:
            case entity_events.EntityRenamed(entity_id=entity_id, name=name):
                self._names[entity_id] = name
            case entity_events.EntityAliasSet(moved_from=moved_from, alias=alias):
                if moved_from is not None:
                    self._withdraw(moved_from, [alias], change.log_offset)
            case entity_events.EntitiesMerged(merged=merged, into=into):
                for entity_id in merged:
                    if self._never_split.isdisjoint((entity_id, into)):
                        self._join(entity_id, into)
            case entity_events.EntitySplit() as split:
                self._split_off.add(split.new_id)
                root, facts = self._root(split.entity_id), set(split.facts)
                moved = [link for link, holder in self.moved.items() if link[0] in facts and self._root(holder) == root]
                self.moved |= dict.fromkeys(moved, split.new_id)
                self._withdraw(split.entity_id, split.names, change.log_offset)
            case entity_events.EntityForgotten(entity_id=entity_id) if entity_id not in self._never_split:
                root = self._root(entity_id)
                self._forgotten |= {one for one in self.entities if self._root(one) == root}

    def _leave_out(self, event: entity_events.AnyEntityChange) -> None:
        """What a split that was undone had made is what it was made of: later facts may name it.

        A merge or a forgetting of it was not meant for what it was made of, and falls with the split.
        """
        self._undone.add(event.event_id)
        if isinstance(event, entity_events.EntitySplit):
            self._never_split.add(event.new_id)
            self._join(event.new_id, event.entity_id)

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
        if alias in self._withdrawn or self._is_forgotten(alias.entity_id):
            return False
        if alias.event_id in self._undone and not alias.is_said:
            return False
        entity = self.entities[alias.entity_id]
        is_users = alias.kind == "user" or (entity.is_user and alias.event_id == entity.event_id)
        return self._root(alias.entity_id) in known and (alias.is_own or alias.is_said or is_users)
