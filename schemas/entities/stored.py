"""Values that commands about entities read from tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from mnemolog.schemas.entities.model import Alias, EntityType, KnownEntity, Role
from mnemolog.schemas.entities.relations import PredicateName, Strength
from mnemolog.schemas.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntity:
    """An entity of the tables with the names that it has now, those of what was merged into it among them."""

    entity_id: UUID
    scope: Scope
    name: str
    type: EntityType
    status: Literal["active", "merged", "forgotten", "undone"]
    merged_into: UUID | None
    aliases: tuple[Alias, ...] = ()

    @property
    def is_user(self) -> bool:
        return any(alias.kind == "user" for alias in self.aliases)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinDetails:
    """What may be shown of a possible twin: its names, its own first, and texts of active facts that name it."""

    names: tuple[str, ...]
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProposal:
    """A proposed merge of two entities, as they are now, and whether it still waits for a person."""

    event_id: UUID
    scope: Scope
    merged: UUID
    into: UUID
    merged_name: str
    into_name: str
    is_pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChange:
    """A change of entities, or an undo of one, and whether the original is in effect.

    It `enables` where the original was in effect after it; `latest_id` is the last event about the original.
    """

    event_id: UUID
    event: str
    source_id: str
    entity_ids: tuple[UUID, ...]
    original_id: UUID
    original_event: str
    in_effect: bool
    enables: bool
    latest_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFact:
    """An active fact that names an entity, and since when it is true."""

    fact_id: UUID
    text: str
    true_from: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySource:
    """What a summary may be written from: the first facts of all active ones, the new and often confirmed ones first.

    `total` is how many active facts there are, `versions` how many summaries of the entity were written before, and
    `changed` how many facts have changed since the one that is shown; without one that is `total`.
    """

    facts: Sequence[SummaryFact]
    total: int
    versions: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRelation:
    """What a fact says of a relation: that it is so, with a strength, or with `ended_at` that it is over since then."""

    subject_id: UUID
    predicate: PredicateName
    object_id: UUID
    inverse: PredicateName | None
    strength: Strength | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedFact:
    """Whom a known fact names, as they are now, and what it says that they are to each other.

    `links` are entities with their roles, the subject first. `entities` are all that links and relations name, the
    owners of their ties among them.
    """

    fact_id: UUID
    subject: str | None
    true_from: datetime
    links: Sequence[tuple[UUID, Role]]
    relations: Sequence[StoredRelation]
    entities: Mapping[UUID, KnownEntity]
