"""Events about entities in few words: `with_entities(commit(...), registered("Ana"), linked(0, entity_id))`."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import PREDICATES, Alias, EntityLink, ResolutionStep, Role, Strength
from mnemolog.schemas.entity_events import (
    AnyEntityEvent,
    EntityAliasAdded,
    EntityRegistered,
    EntityRenamed,
    FactLinked,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.provenance import Decision
from mnemolog.schemas.vector import Vector
from tests.support.builders.commits import fact_id_at

EntityDraft = Callable[[Commit, int], AnyEntityEvent]


def with_entities(committed: Commit, *drafts: EntityDraft) -> Commit:
    """The commit with these events about entities behind those about facts."""
    first = len(committed.events)
    events = tuple(draft(committed, ordinal) for ordinal, draft in enumerate(drafts, first))
    return committed.model_copy(update={"entity_events": events})


def entity_id_at(committed: Commit, place: int = 0) -> UUID:
    """The id of the entity that the commit registers at `place`."""
    return ids.entity_id(committed.owner, committed.source_id, place)


def name_alias(name: str, vector: Vector | None = None) -> Alias:
    return Alias(text=name, key=name.casefold(), vector=vector)


def _drafted(build: Callable[..., AnyEntityEvent], **fields: Any) -> EntityDraft:
    """An event with these fields; what is a function takes the commit."""

    def draft(committed: Commit, ordinal: int) -> AnyEntityEvent:
        event_id = ids.event_id(committed.owner, committed.source_id, ordinal)
        given = {name: value(committed) if callable(value) else value for name, value in fields.items()}
        return build(event_id=event_id, ordinal=ordinal, **given)

    return draft


def _id_of(fact: int | UUID) -> UUID | Callable[[Commit], UUID]:
    return fact if isinstance(fact, UUID) else lambda committed: fact_id_at(committed, fact)


def registered(
    name: str,
    *aliases: Alias,
    kind: str = "person",
    place: int = 0,
    entity_id: UUID | None = None,
    twins: tuple[UUID, ...] = (),
    vector: Vector | None = None,
) -> EntityDraft:
    """`place` counts the entities that the commit registers; `kind` is the type."""
    return _drafted(
        EntityRegistered,
        entity_id=entity_id or (lambda committed: entity_id_at(committed, place)),
        name=name,
        type=kind,
        aliases=(name_alias(name, vector), *aliases),
        possible_twins=twins,
    )


def alias_added(entity_id: UUID, alias: Alias, *, step: ResolutionStep = "prefix") -> EntityDraft:
    return _drafted(EntityAliasAdded, entity_id=entity_id, alias=alias, step=step)


def linked(fact: int | UUID, *entity_ids: UUID, role: Role = "object") -> EntityDraft:
    """`fact` is a known one, or the ordinal of the commit's event that adds it."""
    links = tuple(EntityLink(entity_id=entity_id, role=role, step="exact") for entity_id in entity_ids)
    return _drafted(FactLinked, fact_id=_id_of(fact), links=links)


def renamed(entity_id: UUID, name: str) -> EntityDraft:
    decision = Decision(by="person", reason=f"a person renamed it to {name}")
    return _drafted(EntityRenamed, decision=decision, entity_id=entity_id, name=name, alias=name_alias(name))


def relation_stated(
    fact: int | UUID, subject_id: UUID, predicate: str, object_id: UUID, *, strength: Strength = "strong"
) -> EntityDraft:
    """`fact` as in `linked`; the inverse is that of the registry."""
    return _drafted(RelationStated, **_relation(fact, subject_id, predicate, object_id), strength=strength)


def relation_ended(fact: int | UUID, subject_id: UUID, predicate: str, object_id: UUID, *, at: datetime) -> EntityDraft:
    """The fact says that the relation is over since `at`."""
    return _drafted(RelationEnded, **_relation(fact, subject_id, predicate, object_id), ended_at=at)


def _relation(fact: int | UUID, subject_id: UUID, predicate: str, object_id: UUID) -> dict[str, Any]:
    known = PREDICATES.get(predicate)
    inverse = known.inverse if known else None
    ends = {"subject_id": subject_id, "predicate": predicate, "object_id": object_id, "inverse": inverse}
    return {"fact_id": _id_of(fact), **ends}
