"""What a commit can say happened to entities: named in the past tense.

A change of an entity holds until it is undone.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, get_args
from uuid import UUID

from pydantic import Field, TypeAdapter

from mnemolog.schemas import entities
from mnemolog.schemas.base import Count, IfAny, IfSet, Record, Text, Timestamp
from mnemolog.schemas.provenance import Decision


class EntityEvent(Record):
    """An event about entities; the ordinals go on after the events about facts.

    What it names is read from its fields `entity_id`, `named`, `facts`, `proposal` and `alias`.
    """

    event_id: UUID
    ordinal: Count

    @property
    def entity_ids(self) -> tuple[UUID, ...]:
        """The entities that it names, its subject first."""
        named: tuple[UUID, ...] = getattr(self, "named", ())
        return named or (getattr(self, "entity_id"),)  # noqa: B009 - see above

    @property
    def fact_ids(self) -> tuple[UUID, ...]:
        facts: tuple[UUID, ...] = getattr(self, "facts", ())
        return facts

    @property
    def change_ids(self) -> tuple[UUID, ...]:
        """The earlier changes that it settles or takes back."""
        proposal: UUID | None = getattr(self, "proposal", None)
        return () if proposal is None else (proposal,)


class EntityChange(EntityEvent):
    """What a person, a policy or a rule changed, and why."""

    decision: Decision

    @property
    def aliases(self) -> tuple[entities.Alias, ...]:
        """The names that it gives to the entity that it is about; of a split to the new one."""
        alias: entities.Alias | None = getattr(self, "alias", None)
        return () if alias is None else (alias,)


class EntityRenamed(EntityChange):
    """The entity has another own name; the former one stays one of its names."""

    event: Literal["entity_renamed"] = "entity_renamed"
    entity_id: UUID
    name: entities.EntityName
    alias: entities.Alias


class EntityAliasSet(EntityChange):
    """A person gave the entity a name; of `moved_from` it is no name any more."""

    event: Literal["entity_alias_set"] = "entity_alias_set"
    entity_id: UUID
    alias: entities.Alias
    moved_from: IfSet[UUID] = None

    @property
    def entity_ids(self) -> tuple[UUID, ...]:
        return (self.entity_id,) if self.moved_from is None else (self.entity_id, self.moved_from)


class EntitiesMerged(EntityChange):
    """`merged` are the same as `into`: what is known of them is known of it. `proposal` is what a person confirmed."""

    event: Literal["entities_merged"] = "entities_merged"
    merged: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=entities.MAX_MERGED)]
    into: UUID
    proposal: IfSet[UUID] = None

    @property
    def entity_ids(self) -> tuple[UUID, ...]:
        return (self.into, *self.merged)


class MergeProposed(EntityChange):
    """`merged` may be the same as `into`: nothing changes until a person confirms it. Its event's id names it."""

    event: Literal["merge_proposed"] = "merge_proposed"
    merged: UUID
    into: UUID

    @property
    def entity_ids(self) -> tuple[UUID, ...]:
        return (self.into, self.merged)


class MergeRejected(EntityChange):
    """A person said that the entities of a proposal are two."""

    event: Literal["merge_rejected"] = "merge_rejected"
    proposal: UUID
    named: Annotated[tuple[UUID, ...], Field(min_length=2, max_length=2)]


class EntitySplit(EntityChange):
    """A new entity has these facts and names of another one. The first of its names is its own."""

    event: Literal["entity_split"] = "entity_split"
    entity_id: UUID
    new_id: UUID
    name: entities.EntityName
    type: entities.EntityType
    names: Annotated[tuple[entities.Alias, ...], Field(min_length=1, max_length=entities.MAX_MOVED + 1)]
    facts: Annotated[tuple[UUID, ...], Field(max_length=entities.MAX_MOVED)] = ()

    @property
    def entity_ids(self) -> tuple[UUID, ...]:
        return (self.entity_id, self.new_id)

    @property
    def aliases(self) -> tuple[entities.Alias, ...]:
        return self.names


class EntityForgotten(EntityChange):
    """The entity has no names any more, and no fact names it. Its facts stay what they are."""

    event: Literal["entity_forgotten"] = "entity_forgotten"
    entity_id: UUID


class EntitySummarised(EntityChange):
    """A text about the entity that was written from these facts alone, all that were shown to who wrote it.

    `version` counts the summaries of the entity from 1, `left_out` the active facts that there was no room for.
    """

    event: Literal["entity_summarised"] = "entity_summarised"
    entity_id: UUID
    version: Annotated[int, Field(ge=1)]
    text: Annotated[Text, Field(min_length=1, max_length=entities.MAX_SUMMARY)]
    language: entities.SummaryLanguage
    facts: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=entities.MAX_SUMMARISED)]
    left_out: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0


class EntityDecisionUndone(EntityChange):
    """A change of entities holds no more, or, where an undo of it was undone, does again (`reinstated`)."""

    event: Literal["entity_decision_undone"] = "entity_decision_undone"
    undone: UUID
    undone_event: Text
    reinstated: IfSet[UUID] = None
    named: Annotated[tuple[UUID, ...], Field(min_length=1)]

    @property
    def change_ids(self) -> tuple[UUID, ...]:
        return (self.original_id,)

    @property
    def original_id(self) -> UUID:
        return self.reinstated or self.undone


EntityChangeUnion = (
    EntityRenamed
    | EntityAliasSet
    | EntitiesMerged
    | MergeProposed
    | MergeRejected
    | EntitySplit
    | EntityForgotten
    | EntitySummarised
    | EntityDecisionUndone
)
AnyEntityChange = Annotated[EntityChangeUnion, Field(discriminator="event")]
ENTITY_CHANGE: Final[TypeAdapter[AnyEntityChange]] = TypeAdapter(AnyEntityChange)


class EntityRegistered(EntityEvent):
    """An entity that was not known before. The first of its aliases is its own name.

    It may be the same as one of `possible_twins`, which its name could mean as well: in doubt it is another one.
    """

    event: Literal["entity_registered"] = "entity_registered"
    entity_id: UUID
    name: entities.EntityName
    type: entities.EntityType
    aliases: Annotated[tuple[entities.Alias, ...], Field(min_length=1)]
    possible_twins: IfAny[tuple[UUID, ...]] = ()


class EntityAliasAdded(EntityEvent):
    """A known entity was named in another way, and was found by `step`. The first entity of an alias keeps it."""

    event: Literal["entity_alias_added"] = "entity_alias_added"
    entity_id: UUID
    alias: entities.Alias
    step: entities.ResolutionStep
    compared: IfAny[tuple[UUID, ...]] = ()


class FactLinked(EntityEvent):
    """The entities that a fact names: its subject, others, and an owner of each ("Ana's dog")."""

    event: Literal["fact_linked"] = "fact_linked"
    fact_id: UUID
    links: Annotated[tuple[entities.EntityLink, ...], Field(min_length=1, max_length=entities.MAX_LINKS)]

    @property
    def entity_ids(self) -> tuple[UUID, ...]:
        return tuple(link.entity_id for link in self.links)

    @property
    def fact_ids(self) -> tuple[UUID, ...]:
        return (self.fact_id,)


class RelationEvent(EntityEvent):
    """What the fact `fact_id` says of `predicate`, which the object is to the subject; `inverse` is the way back."""

    fact_id: UUID
    subject_id: UUID
    predicate: entities.PredicateName
    object_id: UUID
    inverse: entities.PredicateName | None = None

    @property
    def entity_ids(self) -> tuple[UUID, ...]:
        return (self.subject_id, self.object_id)

    @property
    def fact_ids(self) -> tuple[UUID, ...]:
        return (self.fact_id,)


class RelationStated(RelationEvent):
    """The fact is evidence of the relation. Whether that holds follows from the states of all its evidence."""

    event: Literal["relation_stated"] = "relation_stated"
    strength: entities.Strength


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
