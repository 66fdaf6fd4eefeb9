"""What the read side answers with: frozen values, ready to be written as JSON."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from schemas.envelopes import Outcome

MemoryEventName = Literal["ADD", "SKIP", "KEEP", "MERGE", "REPLACE", "CONTRADICT"]
Status = Literal["pending"] | Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One version of a fact. A dimension of the scope that is not set is None.

    `true_from`/`true_to` say when it was so, `believed_from`/`believed_to` when it was held so.
    """

    fact_id: UUID
    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    text: str
    key: str | None
    value: str | None
    category: str
    importance: float
    certainty: str
    confidence: float
    subject: str | None
    speaker: str | None
    excerpt: str
    status: str
    unresolved: bool
    stale: bool
    event_time: datetime | None
    valid_until: datetime | None
    true_from: datetime
    true_to: datetime | None
    closed_at: datetime | None
    believed_from: datetime
    believed_to: datetime | None
    mention_count: int
    last_confirmed_at: datetime | None
    supersedes: list[UUID]
    superseded_by: UUID | None
    source_id: str
    embedding_model: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of one scope, by section; `updated_at` is None where nothing is.

    An entry has key, value, text, category, confidence, at, valid_until and fact_id; a recent change has event,
    text, fact_id, at and the old facts.
    """

    identity: list[dict[str, Any]] = field(default_factory=list)
    hard_preferences: list[dict[str, Any]] = field(default_factory=list)
    soft_preferences: list[dict[str, Any]] = field(default_factory=list)
    current_tasks: list[dict[str, Any]] = field(default_factory=list)
    recent_changes: list[dict[str, Any]] = field(default_factory=list)
    sensitive_topics: list[dict[str, Any]] = field(default_factory=list)
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one statement of a turn did: `fact_id` is the new fact, or the known one that SKIP and KEEP leave."""

    fact_id: UUID
    text: str
    event: MemoryEventName
    targets: tuple[UUID, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of all model calls of a turn; a call that several turns shared is counted in parts."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """How a turn ended and what it did; `pending` means that its end is not in the tables yet.

    `conflicts` counts statements that a model had to weigh against known facts. `facts_updated` counts known facts
    that were merged or replaced, `facts_deleted` those that were contradicted. `duration_ms` is from the broker's
    acknowledgement to the decision, `milliseconds` the work of each stage.
    """

    turn_id: str
    status: Status
    success: bool = False
    error: str | None = None
    memories: tuple[Memory, ...] = ()
    skipped: int = 0
    conflicts: int = 0
    facts_added: int = 0
    facts_updated: int = 0
    facts_unchanged: int = 0
    facts_deleted: int = 0
    llm_calls: int = 0
    embedding_calls: float = 0.0
    tokens: Tokens = Tokens()
    milliseconds: dict[str, float] = field(default_factory=dict)
    duration_ms: float | None = None
