"""Commands about entities: each names entities of exactly its scope by their ids."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from mnemolog.schemas.base import Record
from mnemolog.schemas.entities.model import MAX_MERGED, MAX_MOVED, EntityName, EntityType


class RenameEntity(Record):
    """Give an entity another own name; the former one stays one of its names."""

    kind: Literal["rename_entity"] = "rename_entity"
    entity_id: UUID
    name: EntityName


class AliasEntity(Record):
    """Give an entity one more name. One that another entity has moves only where `moved_from` names that entity."""

    kind: Literal["alias_entity"] = "alias_entity"
    entity_id: UUID
    name: EntityName
    moved_from: UUID | None = None


class MergeEntities(Record):
    """Say that entities are one: `into`."""

    kind: Literal["merge_entities"] = "merge_entities"
    entity_ids: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MAX_MERGED)]
    into: UUID


class SplitEntity(Record):
    """Say that an entity is two: a new one called `name` gets these facts and names of it.

    `type` is that of the entity unless given.
    """

    kind: Literal["split_entity"] = "split_entity"
    entity_id: UUID
    name: EntityName
    type: EntityType | None = None
    fact_ids: Annotated[tuple[UUID, ...], Field(max_length=MAX_MOVED)] = ()
    names: Annotated[tuple[EntityName, ...], Field(max_length=MAX_MOVED)] = ()

    @model_validator(mode="after")
    def _moves_something(self) -> Self:
        if not self.fact_ids and not self.names:
            raise ValueError("a split names facts, names or both that the new entity gets")
        return self


class ForgetEntity(Record):
    """Forget an entity: its names and what links facts to it; with `facts`, delete the facts that name it too."""

    kind: Literal["forget_entity"] = "forget_entity"
    entity_id: UUID
    facts: bool = False


class SummariseEntity(Record):
    """Have a model write a summary of an entity from its active facts, where a policy allows it.

    One that is sent `by_policy` is written only where as many facts have changed since as the policy says.
    """

    kind: Literal["summarise_entity"] = "summarise_entity"
    entity_id: UUID
    by_policy: bool = False


EntityCommand = RenameEntity | AliasEntity | MergeEntities | SplitEntity | ForgetEntity
