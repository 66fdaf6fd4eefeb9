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

    def draft(committed: Commit, ordinal: int) -> EntityRegistered:
        return EntityRegistered(
            event_id=ids.event_id(committed.owner, committed.source_id, ordinal),
            ordinal=ordinal,
            entity_id=entity_id or entity_id_at(committed, place),
            name=name,
            type=kind,
            aliases=(name_alias(name, vector), *aliases),
            possible_twins=twins,
        )

    return draft


def alias_added(entity_id: UUID, alias: Alias, *, step: ResolutionStep = "prefix") -> EntityDraft:
    def draft(committed: Commit, ordinal: int) -> EntityAliasAdded:
        event_id = ids.event_id(committed.owner, committed.source_id, ordinal)
        return EntityAliasAdded(event_id=event_id, ordinal=ordinal, entity_id=entity_id, alias=alias, step=step)

    return draft


def linked(fact: int | UUID, *entity_ids: UUID, role: Role = "object") -> EntityDraft:
    """`fact` is a known one, or the ordinal of the commit's event that adds it."""

    def draft(committed: Commit, ordinal: int) -> FactLinked:
        fact_id = fact if isinstance(fact, UUID) else fact_id_at(committed, fact)
        links = tuple(EntityLink(entity_id=entity_id, role=role, step="exact") for entity_id in entity_ids)
        event_id = ids.event_id(committed.owner, committed.source_id, ordinal)
        return FactLinked(event_id=event_id, ordinal=ordinal, fact_id=fact_id, links=links)

    return draft


def renamed(entity_id: UUID, name: str) -> EntityDraft:
    def draft(committed: Commit, ordinal: int) -> EntityRenamed:
        event_id = ids.event_id(committed.owner, committed.source_id, ordinal)
        decision = Decision(by="human", reason=f"a human renamed it to {name}")
        fields = {"event_id": event_id, "ordinal": ordinal, "decision": decision}
        return EntityRenamed.model_validate({**fields, "entity_id": entity_id, "name": name, "alias": name_alias(name)})

    return draft


def relation_stated(
    fact: int | UUID, subject_id: UUID, predicate: str, object_id: UUID, *, strength: Strength = "strong"
) -> EntityDraft:
    """`fact` as in `linked`; the inverse is that of the registry."""

    def draft(committed: Commit, ordinal: int) -> RelationStated:
        fields = _relation_fields(committed, ordinal, fact, (subject_id, predicate, object_id))
        return RelationStated(**fields, strength=strength)

    return draft


def relation_ended(fact: int | UUID, subject_id: UUID, predicate: str, object_id: UUID, *, at: datetime) -> EntityDraft:
    """The fact says that the relation is over since `at`."""

    def draft(committed: Commit, ordinal: int) -> RelationEnded:
        fields = _relation_fields(committed, ordinal, fact, (subject_id, predicate, object_id))
        return RelationEnded(**fields, ended_at=at)

    return draft


def _relation_fields(
    committed: Commit, ordinal: int, fact: int | UUID, relation: tuple[UUID, str, UUID]
) -> dict[str, Any]:
    subject_id, predicate, object_id = relation
    known = PREDICATES.get(predicate)
    return {
        "event_id": ids.event_id(committed.owner, committed.source_id, ordinal),
        "ordinal": ordinal,
        "fact_id": fact if isinstance(fact, UUID) else fact_id_at(committed, fact),
        "subject_id": subject_id,
        "predicate": predicate,
        "object_id": object_id,
        "inverse": known.inverse if known else None,
    }
