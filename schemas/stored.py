"""Values that stages, decisions and commands read from tables.

Known facts, entities, their events, replies and background.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from mnemolog.schemas.base import Count, Identifier, Record, Text, Timestamp
from mnemolog.schemas.entities import Alias, EntityType, KnownEntity, PredicateName, Role, Strength
from mnemolog.schemas.events import Overwrite
from mnemolog.schemas.facts import OPEN_STATUSES, Authority, ExtractedFact, FactState, Slot
from mnemolog.schemas.provenance import FactSnapshot
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector

ReplyKey = tuple[str, str, str, str]
"""Owner, source id, stage and version of the prompt and model."""
EventPosition = tuple[int, int, int]
"""Partition, offset and ordinal: events of one owner compare by it."""
MAX_CANDIDATES_OF_KEY: Final = 5
"""How many facts of an equal key are candidates on top of the nearest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFact:
    """A fact as it was stated, its scope, and its state. Its vector is left in the table."""

    fact_id: UUID
    scope: Scope
    fact: ExtractedFact
    true_from: datetime
    speaker: str | None
    authority: Authority
    metadata: Mapping[str, Any]
    state: FactState

    @property
    def is_open(self) -> bool:
        return self.state.status in OPEN_STATUSES

    @property
    def ends_at(self) -> datetime | None:
        """When it ends by its own term or an announced end, the earlier of the two."""
        return min((end for end in (self.fact.valid_until, self.state.true_to) if end is not None), default=None)

    @property
    def snapshot(self) -> FactSnapshot:
        return FactSnapshot(
            fact_id=self.fact_id,
            text=self.fact.text,
            key=self.fact.key,
            value=self.fact.value,
            confidence=self.state.confidence,
            true_from=self.true_from,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotableFact:
    """A fact that may be promoted, with its vector, which source said it, and when it was last said."""

    stored: StoredFact
    vector: Vector
    source_id: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotableFacts:
    """The first facts that a promotion selects; of `total` ones `free` can be promoted and `known` were before."""

    facts: tuple[PromotableFact, ...] = ()
    free: int = 0
    known: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCase:
    """An overwrite that is held back: `fact_id` would do `action` to `targets`. `speaker` said it at `said_at`.

    `successors` are what merged or corrected targets have become: `fact_id` was not shown them and would not end them.
    """

    fact_id: UUID
    targets: tuple[UUID, ...]
    successors: tuple[UUID, ...] = ()
    action: Overwrite
    ended_at: datetime | None
    needs_human: bool
    said_at: datetime
    speaker: str | None = None
    authority: Authority = "extracted"


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """A new fact to find candidates for: `min_similarity` is the least cosine similarity.

    Facts of the `key` are candidates at any distance, those about the same `subject` first: all of them, or with
    `ends_only` the statements of an end or a denial.
    """

    vector: Vector
    content_hash: str
    min_similarity: float
    key: str | None = None
    subject: str | None = None
    ends_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFactsQuery:
    """A new fact about an entity, whose facts of its `key` are candidates too; facts that are `known` are left out."""

    entity_id: UUID
    key: str
    vector: Vector
    known: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedFact:
    """A fact that was true and has ended, or will, in favour of `ended_by` or of what was merged into that.

    `earlier_end` is the last end that something else had set for it, `earlier_ender`, which is still believed.
    `rival_ids` are the other active facts of its key, and the fact that `ended_by` gives way to; `related_ids` are
    facts that it adds to or is similar to, `later_ids` facts of its key that began after its end and have ended too.
    It `was_open` where it was active before; late news came with its end. `by_command`: `update` or `correct` has put a
    text in its place, perhaps one that begins later.
    """

    fact_id: UUID
    ended_by: UUID
    was_open: bool = True
    was_unresolved: bool = False
    by_command: bool = False
    earlier_end: datetime | None = None
    earlier_ender: UUID | None = None
    rival_ids: tuple[UUID, ...] = ()
    later_ids: tuple[UUID, ...] = ()
    related_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeFacts:
    """The first facts of a scope, and how many it has."""

    total: int
    fact_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DueExpiry:
    """An active fact whose end has passed."""

    ends_at: datetime
    fact_id: UUID
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalDecision:
    """The decision that an event made, or that an undo took out of effect or put back into it."""

    event_id: UUID
    event: str
    position: EventPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """An event and the facts that it brought, changed and names; an undo names what its original does as well.

    `enables` says that its original was in effect after it, and `latest_id` is the last event that changed this.
    `statement_text` is the text that it brought along.
    """

    event_id: UUID
    event: str
    position: EventPosition
    source_id: str
    occurred_at: datetime
    original: OriginalDecision
    enables: bool
    latest_id: UUID
    decided_by: str
    statement_text: str | None = None
    new_fact_id: UUID | None = None
    changed_fact_ids: frozenset[UUID] = frozenset()
    named_fact_ids: frozenset[UUID] = frozenset()

    @property
    def is_latest(self) -> bool:
        """Whether no later event has undone or reinstated its original."""
        return self.latest_id == self.event_id

    @property
    def affected_fact_ids(self) -> frozenset[UUID]:
        """The facts that would be different without this event."""
        return self.changed_fact_ids if self.new_fact_id is None else self.changed_fact_ids | {self.new_fact_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerState:
    """The state of a fact before an event changed it."""

    event_id: UUID
    state: FactState


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHistory:
    """Facts with their states, their former states, and all events that name them; everything in the log's order."""

    facts: Mapping[UUID, StoredFact]
    former_states: Mapping[UUID, Sequence[FormerState]]
    events: Sequence[LoggedEvent]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """A model's reply to one attempt, stored before it is used; `reply` is its text.

    `shared` is a `SharedCall` as JSON, where several turns were asked about together: then the text and the tokens are
    the part of one turn. `paid_by` is the position of the record that it was asked for: the attempt of that record
    counts what it took, another one of the same source gets it for nothing. None where that is not known. `endpoint` is
    the fallback that answered, None for the first server.
    """

    owner: str
    source_id: str
    stage: str
    version: str
    attempt: int
    reply: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int | None = None
    milliseconds: float
    shared: str | None = None
    paid_by: str | None = None
    endpoint: str | None = None

    def is_paid_by_another(self, position: str | None) -> bool:
        """Whether another record than the one at `position` pays for it."""
        return None not in (self.paid_by, position) and self.paid_by != position

    @property
    def key(self) -> ReplyKey:
        return (self.owner, self.source_id, self.stage, self.version)

    @property
    def attempt_key(self) -> tuple[ReplyKey, int]:
        return self.key, self.attempt


class SharedCall(Record):
    """A call that asked about several turns, as it is kept with the part of each of them.

    `turns` is their number, `others` are the other turns, `request` is the digest of the prompt, `known` are the facts
    that it showed, `entities` the entities that it named. The call counts for the turn whose part `is_counted`.
    """

    turns: Count
    request: Text
    is_counted: bool
    known: tuple[UUID, ...] = ()
    entities: tuple[UUID, ...] = ()
    others: tuple[Identifier, ...] = ()


class ReplyNotStorableError(ValueError):
    """The database refuses the content of a reply."""


class EarlierMessage(Record):
    """A message of an earlier turn of the same scope; of a long one only the end."""

    turn_id: Identifier
    role: Literal["user", "assistant"]
    name: Text | None = None
    content: Text
    at: Timestamp


class ShownFact(Record):
    """A known fact as a prompt shows it."""

    fact_id: UUID
    text: Text
    key: Slot | None = None
    value: Text | None = None
    subject: Text | None = None


class ShownEntity(Record):
    """A known entity as a prompt names it: its other names, and what it is to others ("wife of the user").

    `twins` are entities that it may be the same as.
    """

    entity_id: UUID
    name: Text
    type: Text
    names: tuple[Text, ...] = ()
    ties: tuple[Text, ...] = ()
    twins: tuple[UUID, ...] = ()


class Background(Record):
    """What an extraction is shown beside its turn: it explains, and is no evidence.

    The messages before the turn, the oldest first; known entities and known facts, the best first; the names of the
    user. `notes` say what could not be read.
    """

    messages: tuple[EarlierMessage, ...] = ()
    entities: tuple[ShownEntity, ...] = ()
    facts: tuple[ShownFact, ...] = ()
    names: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()

    @property
    def turn_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(message.turn_id for message in self.messages))


NO_BACKGROUND: Final = Background()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntity:
    """An entity of the tables with the names that it has now, and the names of entities that were merged into it."""

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
    `changed` how many facts have changed since the shown summary; without one it is `total`.
    """

    facts: Sequence[SummaryFact]
    total: int
    versions: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRelation:
    """What a fact says of a relation: that it is so, with a strength, or without one that it is over since then."""

    subject_id: UUID
    predicate: PredicateName
    object_id: UUID
    inverse: PredicateName | None
    strength: Strength | None
    ended_at: datetime | None = None

    @property
    def key(self) -> tuple[UUID, PredicateName, UUID]:
        return self.subject_id, self.predicate, self.object_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedFact:
    """The entities that a known fact names, as they are now, and the relations that it states between them.

    `links` are entities with their roles, the subject first; of an entity into which others were merged `bearers` has
    the one that the fact named. `entities` are all that links and relations name, the owners of their ties among them.
    """

    fact_id: UUID
    text: str
    subject: str | None
    true_from: datetime
    links: Sequence[tuple[UUID, Role]]
    relations: Sequence[StoredRelation]
    entities: Mapping[UUID, KnownEntity]
    bearers: Mapping[UUID, UUID] = field(default_factory=dict)
