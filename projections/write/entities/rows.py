"""The rows of entities, as values."""

from dataclasses import dataclass
from uuid import UUID

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.changes import AnyEntityChange
from mnemolog.schemas.entities.events import EntityRegistered, RelationEnded, RelationStated
from mnemolog.schemas.entities.model import Alias, EntityLink


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    """A new entity; `possible_twins` are those of its scope."""

    commit: Commit
    event: EntityRegistered
    possible_twins: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRow:
    """A name of an entity; `place` is that among the names that its commit gives, `is_own` the first of its own.

    `told_by` is the repetition that told it, `told_of` the fact that was repeated.
    """

    commit: Commit
    log_offset: int
    entity_id: UUID
    event_id: UUID
    place: int
    alias: Alias
    is_own: bool = False
    told_by: UUID | None = None
    told_of: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """An entity that a fact names; `told_by` is the repetition that told it."""

    fact_id: UUID
    event_id: UUID
    link: EntityLink
    told_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """What a fact says of a relation, which becomes a row too where it is the first; `told_by` as in `LinkRow`."""

    commit: Commit
    relation_id: UUID
    event: RelationStated | RelationEnded
    told_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChangeRow:
    """What a person decided about entities."""

    commit: Commit
    partition: int
    log_offset: int
    event: AnyEntityChange


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAgainRow:
    """An entity had been undone and is named again, or got a name or a type: it is derived anew. No table has it."""

    entity_id: UUID


AnyEntityRow = EntityRow | AliasRow | LinkRow | EvidenceRow | EntityChangeRow | NamedAgainRow
