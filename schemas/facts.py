"""Facts on their way from a turn to the log."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import (
    Count,
    Fraction,
    Identifier,
    IfAny,
    IfSet,
    Json,
    Metadata,
    Record,
    Text,
    Timestamp,
    normalise,
)
from mnemolog.schemas.entities import (
    MAX_ENTITIES,
    MAX_RELATIONS,
    MAX_UNLINKED,
    NamedEntity,
    NamedRelation,
    UnlinkedName,
)
from mnemolog.schemas.vector import Vector

Certainty = Literal["explicit", "strong", "weak", "speculation"]
CONFIDENCE_OF_CERTAINTY: dict[Certainty, float] = {"explicit": 0.95, "strong": 0.80, "weak": 0.60, "speculation": 0.40}
"""First confidence by how a fact was stated (Arandu's write pipeline, confidence levels)."""

ConfidencePreset = Literal["standard", "cautious"]
CAUTIOUS_CONFIDENCE = 0.40
"""First confidence under the preset `cautious`, however a fact was stated (Mem Skill, confidence policy)."""

Authority = Literal["extracted", "human"]
"""Who stated a fact. What a human stated is ended only by a human, never by an extraction."""
FactStatus = Literal["active", "superseded", "archived", "pending_confirmation", "expired", "retracted", "undone"]
OPEN_STATUSES: Final[frozenset[FactStatus]] = frozenset({"active", "pending_confirmation"})
"""What events may end: facts that are believed or wait for a confirmation."""
ENDED_STATUSES: Final[frozenset[FactStatus]] = frozenset({"superseded", "expired", "retracted"})
"""What was true once and has ended, if it is believed still."""

ImportanceCategory = Literal[
    "biographical_milestone",
    "relationship_change",
    "stable_preference",
    "specific_event",
    "routine_activity",
    "conversational",
]
IMPORTANCE_OF_CATEGORY: dict[ImportanceCategory, float] = {
    "biographical_milestone": 0.9,
    "relationship_change": 0.8,
    "stable_preference": 0.6,
    "specific_event": 0.5,
    "routine_activity": 0.3,
    "conversational": 0.1,
}
"""High, medium, low by kind of fact; the order is Arandu's, the numbers are ours."""
DEFAULT_IMPORTANCE = 0.5

ActionHint = Literal["new", "update", "retract"]
ConflictAction = Literal["keep_both", "keep_old", "replace", "contradict"]
CATEGORIES = (
    "identity",
    "hard_preference",
    "soft_preference",
    "task_context",
    "health",
    "finance",
    "relationship",
    "professional",
    "other",
)
PROFILE_SECTION_OF: Final[Mapping[str, str]] = {
    "identity": "identity",
    "hard_preference": "hard_preferences",
    "soft_preference": "soft_preferences",
    "task_context": "current_tasks",
    "health": "sensitive_topics",
    "finance": "sensitive_topics",
    "professional": "work",
    "relationship": "relationships",
}
"""The section of a profile that shows the facts of a category; `other` has those of all others."""
_STRICTEST: Final = ("hard_preference", "health", "finance", "identity", "relationship", "professional", "task_context")
Slot = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
MAX_MORE_CATEGORIES: Final = 9
MoreCategories = Annotated[tuple[Slot, ...], Field(max_length=MAX_MORE_CATEGORIES, exclude_if=lambda more: not more)]


def ranked_categories(given: Iterable[str]) -> dict[str, Any]:
    """The fields `category` and `more_categories` of a fact of these categories, the strictest rules first.

    The profile shows a fact by its first one, a context by all. Those without rules of their own stay in their order.
    """
    distinct = [one for one in dict.fromkeys(given) if one != "other"] or ["other"]
    category, *more = sorted(distinct, key=lambda one: (*_STRICTEST, one).index(one))
    return {"category": category, "more_categories": tuple(more[:MAX_MORE_CATEGORIES])}


class Statement(Record):
    """What was said, and where: `excerpt` occurs in the turn."""

    text: Text
    excerpt: Text


class ExtractedFact(Statement):
    """One self-contained fact, in the language of the conversation; `search_text` is what is embedded.

    `single_valued` says that its key holds one value at a time although no registry names it. Filters find it by its
    `category` and by each of `more_categories`, and a rule for any of them holds for it. `value_json` is the
    value as an application has it: an import or an edit gives it. A `retract` ends
    something with nothing in its place. `entities` are those that it names, its subject among them where its type is
    known, and `relations` what it says that they are to each other, or with a `retract` no longer are; in the log both
    are events of their own. `unlinked` are names that were left out of `entities`; in the log they are in the step that
    resolves.
    """

    search_text: Text
    key: Slot | None = None
    value: Text | None = None
    value_json: IfSet[Json] = None
    category: Slot = "other"
    more_categories: MoreCategories = ()
    importance_category: ImportanceCategory | None = None
    importance: Fraction = DEFAULT_IMPORTANCE
    certainty: Certainty = "explicit"
    subject: Text | None = None
    event_time: Timestamp | None = None
    valid_until: Timestamp | None = None
    action_hint: ActionHint = "new"
    single_valued: bool = False
    entities: IfAny[Annotated[tuple[NamedEntity, ...], Field(max_length=MAX_ENTITIES)]] = ()
    relations: IfAny[Annotated[tuple[NamedRelation, ...], Field(max_length=MAX_RELATIONS)]] = ()
    unlinked: IfAny[Annotated[tuple[UnlinkedName, ...], Field(max_length=MAX_UNLINKED)]] = ()

    @property
    def content_hash(self) -> str:
        return content_hash(self.text)

    @property
    def categories(self) -> tuple[str, ...]:
        return (self.category, *self.more_categories)


class EmbeddedFact(Record):
    fact: ExtractedFact
    vector: Vector


class Candidate(Record):
    """A known fact near a new one, or of the same key, as it was when it was looked up.

    One that is `ended` was true until `true_to`; only a statement that was made before that is compared with it.

    `similarity` is cosine, -1..1; `said_at` is when any turn said it last; `metadata` are its own, or those of its
    source. `challenged_by` names the pending facts that
    would overwrite this one, or what it was before it was merged or corrected. `subject_relation` says whether it is
    about the entity that the new one is about, as entities tell: the same, another one, or a possible twin.
    """

    fact_id: UUID
    similarity: Annotated[float, Field(ge=-1.0, le=1.0)]
    text: Text
    content_hash: Text
    key: Slot | None = None
    value: Text | None = None
    confidence: Fraction
    true_from: Timestamp
    true_to: Timestamp | None = None
    valid_until: Timestamp | None = None
    category: Slot = "other"
    more_categories: MoreCategories = ()
    subject: Text | None = None
    excerpt: Text = ""
    status: Literal["active", "pending_confirmation", "ended"] = "active"
    authority: Authority = "extracted"
    unresolved: bool = False
    single_valued: bool = False
    action_hint: ActionHint = Field(default="new", exclude_if=lambda hint: hint == "new")
    event_time: Timestamp | None = None
    said_at: Timestamp | None = None
    value_json: IfSet[Json] = None
    importance: Fraction = DEFAULT_IMPORTANCE
    importance_category: ImportanceCategory | None = None
    metadata: Metadata = Field(default_factory=dict, exclude_if=lambda metadata: not metadata)
    challenged_by: tuple[UUID, ...] = ()
    subject_relation: IfSet[Literal["same", "other", "twin"]] = None

    @property
    def categories(self) -> tuple[str, ...]:
        return (self.category, *self.more_categories)

    def __hash__(self) -> int:  # metadata have no hash
        return hash(self.fact_id)

    @property
    def is_of_other_entity(self) -> bool:
        """Whether it is about another entity than the new fact is, or may be."""
        return self.subject_relation in ("other", "twin")


class PromotedFrom(Record):
    """The fact of another scope that a statement was promoted from: what `source_id` said, last said at `said_at`."""

    fact_id: UUID
    source_id: Identifier
    said_at: Timestamp


class Original(Record):
    """What a promoted statement keeps of the fact that it was: it counts as much as that did in its own scope."""

    promoted_from: PromotedFrom
    true_from: Timestamp
    confidence: Fraction
    speaker: Text | None = None
    authority: Authority = "extracted"
    metadata: IfSet[Metadata] = None


class MatchedFact(EmbeddedFact):
    """A new fact with the known ones near it; a promoted one has its `original`."""

    candidates: tuple[Candidate, ...] = ()
    original: IfSet[Original] = None

    def said_at(self, occurred_at: datetime) -> datetime:
        """When it was said, in a source of the time `occurred_at`: a promoted one long before its command."""
        return occurred_at if self.original is None else self.original.promoted_from.said_at

    def holds_since(self, occurred_at: datetime) -> datetime:
        return self.fact.event_time or self.said_at(occurred_at)


class NewFact(ExtractedFact):
    """A fact as it enters the log: with its id, its times, its first confidence and its vector.

    `said_at` is when it was last said, where that is not the time of its source: a merged fact is as new as the newest
    of its parents. `metadata` are its own, where they are not those of its source: an edited fact keeps them.
    """

    fact_id: UUID
    confidence: Fraction
    true_from: Timestamp
    speaker: Text | None = None
    authority: Authority = "extracted"
    said_at: IfSet[Timestamp] = None
    metadata: IfSet[Metadata] = None
    vector: Vector


class FactState(Record):
    """The fields of a fact that events can change."""

    status: FactStatus
    confidence: Fraction
    mention_count: Count
    last_confirmed_at: Timestamp | None
    true_to: Timestamp | None
    closed_at: Timestamp | None
    believed_from: Timestamp | None
    believed_to: Timestamp | None
    superseded_by: UUID | None
    unresolved: bool
    true_from: Timestamp


class Reversal(Record):
    """A fact with status `now` gets the state `before` again; without `before` it did not exist, and is undone."""

    fact_id: UUID
    now: FactStatus
    before: FactState | None

    @property
    def is_believed(self) -> bool:
        """Whether the fact is believed from then on."""
        return self.before is not None and self.before.believed_from is not None and self.before.believed_to is None


class MovedEnd(Record):
    """The new end of a fact that `ender` had ended, and that ends otherwise now: an end follows its ender.

    Without `ended_at` the fact is open again; with it, it ends then, in favour of `ended_by` or by its own term.
    `unresolved` where it is beside another value of its key without a decision on the two; `beside` are those values,
    and of these only the ones that are certainly about the same subject, if there are any.
    """

    fact_id: UUID
    ender: UUID
    ended_at: Timestamp | None = None
    ended_by: UUID | None = None
    unresolved: bool = False
    beside: IfAny[tuple[UUID, ...]] = ()


def content_hash(text: str) -> str:
    """SHA-256 (hex) of the normalised text without closing punctuation: equal where the words are equal."""
    return hashlib.sha256(normalise(text).rstrip(" .!?;,").encode()).hexdigest()
