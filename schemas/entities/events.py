"""What a commit can say happened to entities, beside its events about facts; named in the past tense.

What turns say of entities is here; what persons decide about them is in `changes`.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, get_args
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import Timestamp
from mnemolog.schemas.entities.base import EntityEvent
from mnemolog.schemas.entities.changes import EntityChangeUnion
from mnemolog.schemas.entities.model import MAX_LINKS, Alias, EntityLink, EntityName, EntityType, ResolutionStep
from mnemolog.schemas.entities.relations import PredicateName, Strength


class EntityRegistered(EntityEvent):
    """An entity that was not known before. The first of its aliases is its own name.

    It may be the same as one of `possible_twins`, which its name could mean as well: in doubt it is another one.
    """

    event: Literal["entity_registered"] = "entity_registered"
    entity_id: UUID
    name: EntityName
    type: EntityType
    aliases: Annotated[tuple[Alias, ...], Field(min_length=1)]
    possible_twins: tuple[UUID, ...] = Field(default=(), exclude_if=lambda twins: not twins)


class EntityAliasAdded(EntityEvent):
    """A known entity was named in another way, and was found by `step`. The first entity of an alias keeps it."""

    event: Literal["entity_alias_added"] = "entity_alias_added"
    entity_id: UUID
    alias: Alias
    step: ResolutionStep
    compared: tuple[UUID, ...] = Field(default=(), exclude_if=lambda compared: not compared)


class FactLinked(EntityEvent):
    """The entities that a fact names: its subject, others, and an owner of each ("Ana's dog")."""

    event: Literal["fact_linked"] = "fact_linked"
    fact_id: UUID
    links: Annotated[tuple[EntityLink, ...], Field(min_length=1, max_length=MAX_LINKS)]


class RelationEvent(EntityEvent):
    """What the fact `fact_id` says of `predicate`, which the object is to the subject; `inverse` is the way back."""

    fact_id: UUID
    subject_id: UUID
    predicate: PredicateName
    object_id: UUID
    inverse: PredicateName | None = None


class RelationStated(RelationEvent):
    """The fact is evidence of the relation. Whether that holds follows from the states of all its evidence."""

    event: Literal["relation_stated"] = "relation_stated"
    strength: Strength


class RelationEnded(RelationEvent):
    """The fact says that the relation is over: what was evidence of it up to `ended_at` is none from then on."""

    event: Literal["relation_ended"] = "relation_ended"
    ended_at: Timestamp


AnyEntityEvent = Annotated[
    EntityRegistered | EntityAliasAdded | FactLinked | RelationStated | RelationEnded | EntityChangeUnion,
    Field(discriminator="event"),
]
ENTITY_EVENT_CLASSES: Final[Mapping[str, type[EntityEvent]]] = {
    event.model_fields["event"].default: event for event in get_args(get_args(AnyEntityEvent)[0])
}
"""Every class of event about entities by its name on the wire."""
