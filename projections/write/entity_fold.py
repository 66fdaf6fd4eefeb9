"""Which events about entities are applied, and the rows that they make (pure)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from mnemolog.projections.write import rows
from mnemolog.schemas import entity_events, ids
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import Alias
from mnemolog.schemas.scope import ScopeColumns, scope_columns


@dataclass(slots=True)
class EntityFold:
    """Collects the rows of one commit's events; `fact` gives a known fact, None for an unknown one.

    `known` has the scope of each known entity and change; `undone` are known entities that no fact names any more.
    """

    commit: Commit
    position: rows.LogPosition
    known: Mapping[UUID, ScopeColumns]
    undone: Collection[UUID]
    fact: Callable[[UUID], rows.KnownFact | None]
    added: list[rows.AnyEntityRow] = field(default_factory=list)
    rejections: list[rows.RejectionRow] = field(default_factory=list)
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
        linked = [one for one in self.commit.entity_events if isinstance(one, entity_events.FactLinked)]
        named = {link.entity_id for one in linked if one.fact_id in new for link in one.links}
        for one in linked:
            if one.fact_id in self._repetitions:
                others = (link.entity_id for link in one.links if link.entity_id not in named)
                self._repeated |= dict.fromkeys(others, one.fact_id)

    def add_event(self, event: entity_events.AnyEntityEvent) -> None:
        faults = dict.fromkeys(self._faults(event))
        if not faults:
            self.added += self._rows(event)
            return
        rejection = rows.RejectionRow(
            position=self.position,
            item=event.ordinal + 1,
            owner=self.commit.owner,
            source_id=self.commit.source_id,
            reason="foreign_target",
            detail="; ".join(faults),
        )
        self.rejections.append(rejection)

    def _rows(self, event: entity_events.AnyEntityEvent) -> Iterator[rows.AnyEntityRow]:
        match event:
            case entity_events.EntityRegistered():
                yield from self._registered(event)
            case entity_events.EntityAliasAdded(entity_id=entity_id, alias=alias):
                yield from (
                    [rows.StaleEntity(entity_id=entity_id)] if alias.kind == "name" else self._named_again(entity_id)
                )
                yield self._alias(event, entity_id, event.ordinal, alias)
            case entity_events.FactLinked():
                yield from self._named_again(*[link.entity_id for link in event.links if link.type is None])
                yield from (rows.StaleEntity(entity_id=link.entity_id) for link in event.links if link.type is not None)
                repetition = self._repetitions.get(event.fact_id)
                for link in {(link.entity_id, link.role): link for link in event.links}.values():
                    yield rows.LinkRow(fact_id=event.fact_id, event_id=event.event_id, link=link, told_by=repetition)
            case entity_events.RelationStated() | entity_events.RelationEnded():
                yield from self._named_again(event.subject_id, event.object_id)
                relation_id = ids.relation_id(event.subject_id, event.predicate, event.object_id)
                repetition = self._repetitions.get(event.fact_id)
                yield rows.EvidenceRow(commit=self.commit, relation_id=relation_id, event=event, told_by=repetition)
            case _:
                yield from self._changed(event)

    def _registered(self, event: entity_events.EntityRegistered) -> Iterator[rows.AnyEntityRow]:
        here = scope_columns(self.commit.scope)
        twins = tuple(twin for twin in event.possible_twins if self._scope_of(twin) == here)
        self._own[event.entity_id] = here
        yield rows.EntityRow(commit=self.commit, event=event, possible_twins=twins)
        for place, alias in enumerate(event.aliases):
            yield self._alias(event, event.entity_id, place, alias, is_own=place == 0)

    def _changed(self, event: entity_events.AnyEntityChange) -> Iterator[rows.AnyEntityRow]:
        entity_id, aliases = event.entity_ids[0], event.aliases
        self._own[event.event_id] = scope_columns(self.commit.scope)
        if isinstance(event, entity_events.EntitySplit):
            new = {name: getattr(event, name) for name in ("event_id", "ordinal", "name", "type")}
            yield from self._registered(
                entity_events.EntityRegistered(entity_id=event.new_id, aliases=event.names, **new)
            )
            entity_id, aliases = event.new_id, aliases[1:]
        for place, alias in enumerate(aliases, start=1):
            yield self._alias(event, entity_id, place, alias)
        yield rows.EntityChangeRow(position=self.position, commit=self.commit, event=event)

    def _alias(
        self, event: entity_events.AnyEntityEvent, entity_id: UUID, place: int, alias: Alias, *, is_own: bool = False
    ) -> rows.AliasRow:
        repeated = self._repeated.get(entity_id)
        return rows.AliasRow(
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

    def _named_again(self, *entity_ids: UUID) -> Iterator[rows.StaleEntity]:
        return (rows.StaleEntity(entity_id=one) for one in dict.fromkeys(entity_ids) if one in self.undone)

    def _faults(self, event: entity_events.AnyEntityEvent) -> Iterator[str]:
        """What the event names that is not known in its scope, and what it makes that is known already."""
        made: UUID | None = None
        match event:
            case entity_events.EntityRegistered(entity_id=made) | entity_events.EntitySplit(new_id=made):
                pass
            case entity_events.RelationEvent() if event.subject_id == event.object_id:
                yield f"a relation of the entity {event.subject_id} to itself"
        if made is not None and self._scope_of(made) is not None:
            yield f"the entity {made} is known already"
        here = scope_columns(self.commit.scope)
        unknown = [f"change {change}" for change in event.change_ids if self._scope_of(change) != here]
        unknown += [f"entity {one}" for one in event.entity_ids if one != made and self._scope_of(one) != here]
        unknown += [f"fact {one}" for one in event.fact_ids if (known := self.fact(one)) is None or known.scope != here]
        yield from (f"the {one} is not known in this scope" for one in unknown)

    def _scope_of(self, entity_id: UUID) -> ScopeColumns | None:
        return self._own.get(entity_id) or self.known.get(entity_id)
