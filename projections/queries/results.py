"""Answers of queries: frozen values, ready to be written as JSON."""

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args
from uuid import UUID

from mnemolog.projections.queries.trace import Trace
from mnemolog.schemas.base import Outcome, SourceKind
from mnemolog.schemas.costs import NO_COST, Cost
from mnemolog.schemas.facts import ActionHint, FactStatus
from mnemolog.schemas.filters import DayOfWeek
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

_SAYS_NOTHING: Final = (None, False, (), "")
_OTHER_NAMES: Final = ("id", "memory", "categories", "created_at", "updated_at", "structured_attributes")
_SATURDAY: Final = 6
Status = Literal["pending"] | Outcome
Axis = Literal["believed", "true"]
"""What a time is about: when something was decided, or when it was so."""
SUCCESSFUL: Final = ("stored", "nothing_stored", "done")
"""How a turn or a command ends that did what it should."""


def brief_repr(value: object, *names: str) -> str:
    """A representation for people: these fields, as far as they say anything, in the form of the constructor."""
    shown = ((name, getattr(value, name)) for name in names)
    words = ", ".join(
        f"{name}={(str(one) if isinstance(one, UUID | datetime) else one)!r}"
        for name, one in shown
        if one not in _SAYS_NOTHING
    )
    return f"{type(value).__name__}({words})"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, in the singular or the plural."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def structured_attributes(moment: datetime) -> dict[str, Any]:
    """The parts of a time in UTC, as filters ask for them. Weeks and their first day, Monday, are those of ISO 8601."""
    at = moment.astimezone(UTC)
    _, week, day = at.isocalendar()
    return {
        **{name: getattr(at, name) for name in ("year", "month", "day", "hour", "minute")},
        "day_of_week": get_args(DayOfWeek)[day - 1],
        "is_weekend": day >= _SATURDAY,
        "quarter": (at.month + 2) // 3,
        "week_of_year": week,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One version of a fact. A dimension of the scope that is not set is None.

    `true_from`/`true_to` say when it was true, `believed_from`/`believed_to` when it was believed: a pending fact has
    no `believed_from`. `recorded_at` is when it was added, `state_since` since when it has its present state.
    `begins_later` says that it is known and not yet so: `true_from` is after the time that was asked about. `disputed`
    says that an overwrite waits for a confirmation which would end or deny it; answers about the past do not tell it.
    `action_hint` is what its statement does: `new`, `update`, or `retract`, which only ends or denies something and is
    no value of its key.
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
    value_json: Any = None
    category: str
    more_categories: list[str] = field(default_factory=list)
    importance: float
    certainty: str
    confidence: float
    subject: str | None
    speaker: str | None
    excerpt: str
    status: FactStatus
    unresolved: bool
    stale: bool
    event_time: datetime | None
    valid_until: datetime | None
    true_from: datetime
    true_to: datetime | None
    closed_at: datetime | None
    believed_from: datetime | None
    believed_to: datetime | None
    recorded_at: datetime
    state_since: datetime
    authority: str
    mention_count: int
    last_confirmed_at: datetime | None
    supersedes: list[UUID]
    superseded_by: UUID | None
    source_id: str
    embedding_model: str
    metadata: dict[str, Any]
    begins_later: bool = False
    disputed: bool = False
    action_hint: ActionHint = "new"

    def __repr__(self) -> str:
        return brief_repr(self, "text", "key", "value", "status", "unresolved", "disputed", "user_id", "fact_id")

    @property
    def id(self) -> UUID:
        """`fact_id`, under the name that it has in filters and other memory layers; so are the following."""
        return self.fact_id

    @property
    def memory(self) -> str:
        return self.text

    @property
    def categories(self) -> list[str]:
        return [self.category, *self.more_categories]

    @property
    def created_at(self) -> datetime:
        return self.recorded_at

    @property
    def updated_at(self) -> datetime:
        return self.state_since

    @property
    def structured_attributes(self) -> dict[str, Any]:
        """The parts of `created_at`, in UTC."""
        return structured_attributes(self.created_at)

    def to_dict(self, *, score: float | None = None) -> dict[str, Any]:
        """All fields, those under other names among them, and the score of a hit where one is given."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        scored = {} if score is None else {"score": score}
        return own | {name: getattr(self, name) for name in _OTHER_NAMES} | scored

    @property
    def scope(self) -> Scope:
        return Scope(**{name: getattr(self, name) for name in SCOPE_FIELDS})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FoundFact(Fact):
    """A fact found by an id: `former_id` is that id, where it is the one of a former version."""

    former_id: UUID | None = None


MEMORY_NAMES: Final = frozenset({*(one.name for one in fields(Fact)), *_OTHER_NAMES})
"""The names in `Fact.to_dict`, but for the score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of one scope, by section; `updated_at` is None where nothing is.

    Every active fact is in one section: that of its category, `other` where the category has none, or `upcoming` where
    it begins later. `sensitive_topics` are health and finance. A section has the 50 surest; `facts` lists all.
    An entry has key, value, text, category, confidence, at, valid_until, fact_id, unresolved and disputed; a recent
    change has event, text, fact_id, at and the old facts. Each also has `source_id`, the turn or command that brought
    its fact, and `excerpt`, what that said. `published_at` is when the policy of the scope had it published, None where
    a profile is published with each change.
    """

    identity: list[dict[str, Any]] = field(default_factory=list)
    work: list[dict[str, Any]] = field(default_factory=list)
    relationships: list[dict[str, Any]] = field(default_factory=list)
    sensitive_topics: list[dict[str, Any]] = field(default_factory=list)
    hard_preferences: list[dict[str, Any]] = field(default_factory=list)
    soft_preferences: list[dict[str, Any]] = field(default_factory=list)
    current_tasks: list[dict[str, Any]] = field(default_factory=list)
    other: list[dict[str, Any]] = field(default_factory=list)
    upcoming: list[dict[str, Any]] = field(default_factory=list)
    recent_changes: list[dict[str, Any]] = field(default_factory=list)
    updated_at: datetime | None = None
    published_at: datetime | None = None

    def __repr__(self) -> str:
        """Each section with its texts, a line for each."""
        found = [(one.name, getattr(self, one.name)) for one in fields(self)]
        sections = [(name, entries) for name, entries in found if isinstance(entries, list) and entries]
        lines = [f"Profile, {counted(sum(len(entries) for _, entries in sections), 'entry', 'entries')}:"]
        for name, entries in sections:
            lines += [f"{name}:", *(f"  {entry.get('text')}" for entry in entries)]
        return "\n".join(lines) if sections else "Profile, empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """What one event did: `fact_id` is the new fact, or the one that the event is about where it brings none.

    `text` is what was said, or, where a command said nothing, the text of that fact. `action` says what a pending,
    confirmed or resolved decision does to its `targets`. A policy and an undo are about no single fact.
    """

    fact_id: UUID | None
    text: str | None
    event: str
    targets: tuple[UUID, ...] = ()
    reason: str = ""
    action: str | None = None
    unresolved: bool = False
    needs_human: bool = False

    def __repr__(self) -> str:
        return brief_repr(self, "event", "text", "action", "unresolved", "needs_human", "fact_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of model calls; a call that several turns shared is counted in parts.

    `cached` are those of the input that the model's server had in its cache; None where it does not tell.
    """

    input: int = 0
    output: int = 0
    cached: int | None = None
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.input + self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCost:
    """What one stage spent on a turn, in milliseconds, calls and tokens, and with which models and prompts."""

    stage: str
    milliseconds: float
    llm_calls: int
    embedding_calls: float
    tokens: Tokens
    reprompts: int
    models: tuple[str, ...]
    prompt_versions: tuple[str, ...]
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRef:
    """A fact that a result is about; `text` is None where its events do not say it."""

    fact_id: UUID
    text: str | None = None

    def __repr__(self) -> str:
        return brief_repr(self, "text", "fact_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntity:
    """An entity that the facts of a result name, as it was said, and whether it was not known before."""

    entity_id: UUID
    name: str | None = None
    is_new: bool = False

    def __repr__(self) -> str:
        return brief_repr(self, "name", "is_new", "entity_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A turn or a command: that it was published, and once it has ended, how and what it did.

    `status` is `pending` until there is an end. `added` are facts that are active from now on, `updated` known ones
    that were merged, replaced, corrected or reinstated, `unchanged` those that were only repeated, `deleted` those that
    ended with nothing in their place or never were true, `held` new ones that wait for a confirmation; `facts_added`
    and so on are their numbers. `entities` are those that its facts name, the user among them. `changes` are the
    events behind all that, in their order. `conflicts` counts statements that a model had to weigh against known facts.
    `duration_ms` is from the broker's acknowledgement to the decision, `milliseconds` the work of each stage, `stages`
    all costs of each. `cost` is the money for the tokens by the prices of this client's settings; its `amount` is None
    where a price is unknown. `attempt` counts the ends of a turn that was published again; `position` is the
    topic/partition/offset of the record that came to this one. `trace` is there on request. `reused` says that another
    turn had the id before: that first one counts, and this is its result. `notes` are for people: what else is to be
    known. A command about several scopes is a command in each: `parts` are their results, and all else sums them up.
    """

    turn_id: str
    status: Status = "pending"
    error: str | None = None
    limit: LimitHit | None = None
    source_kind: SourceKind = "turn"
    order: str | None = None
    actor: str | None = None
    attempt: int = 1
    position: str | None = None
    changes: tuple[FactChange, ...] = ()
    added: tuple[FactRef, ...] = ()
    updated: tuple[FactRef, ...] = ()
    unchanged: tuple[FactRef, ...] = ()
    deleted: tuple[FactRef, ...] = ()
    held: tuple[FactRef, ...] = ()
    entities: tuple[NamedEntity, ...] = ()
    skipped: int = 0
    conflicts: int = 0
    llm_calls: int = 0
    embedding_calls: float = 0.0
    tokens: Tokens = Tokens()
    cost: Cost = NO_COST
    milliseconds: dict[str, float] = field(default_factory=dict)
    duration_ms: float | None = None
    stages: tuple[StageCost, ...] = ()
    trace: Trace | None = None
    tenant: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    reused: bool = False
    notes: tuple[str, ...] = ()
    parts: "tuple[Result, ...]" = ()
    content_hash: str | None = None
    success: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "success", self.status in SUCCESSFUL)

    def __repr__(self) -> str:
        attempt = ["attempt"] if self.attempt > 1 else []
        lists = ("added", "updated", "unchanged", "deleted", "held", "parts")
        return brief_repr(self, "turn_id", "status", "order", "error", *attempt, *lists, "reused", "notes")

    @property
    def facts_added(self) -> int:
        return len(self.added)

    @property
    def facts_updated(self) -> int:
        return len(self.updated)

    @property
    def facts_unchanged(self) -> int:
        return len(self.unchanged)

    @property
    def facts_deleted(self) -> int:
        return len(self.deleted)

    @property
    def facts_pending(self) -> int:
        return len(self.held)

    @property
    def entities_resolved(self) -> int:
        return len(self.entities)

    @property
    def entities_added(self) -> int:
        return sum(one.is_new for one in self.entities)
