"""What an operator has decided for a tenant or a scope: how facts may change, and how much is allowed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from mnemolog.schemas.base import PART_OF_ANSWERS, Count, Fraction, Record, Text
from mnemolog.schemas.costs import Money
from mnemolog.schemas.entities import SummaryLanguage
from mnemolog.schemas.facts import ConfidencePreset, Slot
from mnemolog.schemas.instructions import Instructions
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides, ShownAge, ShownCount, ShownTimeout, ShownTokens

Level = Literal["tenant", "scope"]
ProfilePublishing = Literal["at_once", "every_turns", "session_end"]
"""When readers get a new profile: with each change; every so many turns and when a session ends; or only then."""
SummaryTime = Literal["off", "on_demand", "after_changes"]
"""When a model writes summaries of entities: never, when a command asks for one, or also after changes of facts."""
SummaryChanges = Annotated[int, Field(ge=1, le=1000)]
SummaryTokens = Annotated[int, Field(ge=30, le=1000)]
SUMMARY_CHANGES: Final = 10
SUMMARY_TOKENS: Final = 200
"""Within the 100 to 300 tokens of a profile of arandu."""
SUMMARY_FIELDS: Final = ("entity_summary", "summary_changes", "summary_tokens", "summary_language")
"""The rules on summaries of entities."""
PROFILE_EVERY: Final = 5
"""Turns between two profiles, unless a policy says otherwise (Mem Skill, stage 5)."""
LimitName = Literal["active_facts", "turns_per_minute", "bytes_per_turn", "tokens_per_day", "cost_per_day"]
WhenSpent = Literal["reject", "raw"]
"""What becomes of a turn when a budget of the day is spent: it is rejected, or stored as it is."""
WhenUnread = Literal["dead_letter", "raw"]
"""What becomes of a turn that no model could read: nothing but a dead letter, or its messages as raw facts as well."""
BUDGETS: Final[frozenset[LimitName]] = frozenset({"tokens_per_day", "cost_per_day"})
"""The limits on what models take in a day; `WhenSpent` is about them."""
CallTurns = Annotated[int, Field(ge=1, le=100)]
"""How many turns of a conversation may share a call; with 1 each has its own."""
CallTokens = Annotated[int, Field(ge=0, le=20_000)]
CallLinger = Annotated[float, Field(ge=0, le=60)]
"""Seconds."""
_Limit = Annotated[int, Field(ge=0)] | None
_Amount = Annotated[float, Field(ge=0)]

HIGH_RISK: Final[tuple[str, ...]] = ("identity", "health", "finance")
"""Categories or keys whose overwrite needs a confidence of `CONFIRM_BELOW` (Mem Skill, safety requirements)."""
CONFIRM_BELOW: Final = 0.90
RESEND_WINDOW: Final = 600.0
"""Seconds: longer than clients try again, shorter than people take to say a thing once more."""
SINGLE_VALUED: Final[frozenset[str]] = frozenset(
    {
        *("name", "full_name", "first_name", "last_name", "nickname", "age", "birthday", "birth_date", "birth_place"),
        *("gender", "nationality", "native_language", "marital_status", "religion", "blood_type", "height", "weight"),
        *("home_city", "home_country", "home_town", "hometown", "home", "home_address", "address", "postal_code"),
        *("phone", "phone_number", "email", "e_mail", "time_zone", "timezone", "employer", "job_title", "profession"),
        *("employment_status", "salary", "manager", "boss", "team", "school", "university", "field_of_study"),
        *("spouse", "husband", "wife", "partner", "girlfriend", "boyfriend", "mother", "father", "household"),
        *("diet", "doctor", "dentist", "therapist", "bank", "rent", "budget", "mortgage", "insurance", "car"),
        *("editor", "browser", "operating_system", "shoe_size", "username"),
    }
)
"""Keys that hold one value at a time, with every key that begins with `favourite_` or `favorite_`."""
CONVERSATION_MESSAGES: Final = 10
"""As mem0 (10 messages)."""
CONVERSATION_TOKENS: Final = 600
CONVERSATION_AGE: Final = 86_400.0
"""Seconds: an answer of the next morning still finds its question."""
KNOWN_ENTITIES: Final = 10
KNOWN_FACTS: Final = 10
KNOWN_TOKENS: Final = 800
"""As arandu (`informed_extraction_topk`, `informed_extraction_context_budget_tokens`)."""
KNOWN_TIMEOUT: Final = 0.5
BACKGROUND_FIELDS: Final = (
    *("conversation_messages", "conversation_tokens", "conversation_age"),
    *("known_entities", "known_facts", "known_tokens", "known_timeout"),
)
"""The rules on what an extraction is shown beside its turn."""
CALL_TURNS: Final = 20
CALL_TOKENS: Final = 2000
"""Twenty messages of the length that people type; a longer reply comes close to the seconds that a call may take."""
CALL_FIELDS: Final = ("call_turns", "call_tokens", "call_linger")
"""The rules on which turns are asked about in one call."""


def is_single_valued(key: str | None, more: tuple[str, ...] = ()) -> bool:
    """Whether a key holds one value at a time, by the registry and the configured `more`."""
    return key is not None and (key in SINGLE_VALUED or key in more or key.startswith(("favourite_", "favorite_")))


def _is_unset(given: object) -> bool:
    return given is None


class Limits(Record):
    """The most that is allowed; None means no limit. A minute and a day are those of the broker's clock, in UTC.

    `cost_per_day` is in the currency of the price table.
    """

    active_facts: _Limit = None
    turns_per_minute: _Limit = None
    bytes_per_turn: _Limit = None
    tokens_per_day: _Limit = None
    cost_per_day: Money | None = Field(default=None, exclude_if=_is_unset)


LEVELS: Final[tuple[Level, ...]] = ("scope", "tenant")
COUNTED_LIMITS: Final[Mapping[str, LimitName]] = {
    "facts": "active_facts",
    "turns": "turns_per_minute",
    "tokens": "tokens_per_day",
}
"""The limit on each field of `UsageCounts`."""
LIMIT_ADVICE: Final[Mapping[LimitName, str]] = {
    "active_facts": "delete facts",
    "turns_per_minute": "publish it again in the next minute",
    "bytes_per_turn": "publish it in smaller parts",
    "tokens_per_day": "publish it again tomorrow (UTC)",
    "cost_per_day": "publish it again tomorrow (UTC)",
}
"""What else helps a turn that was refused for a limit, besides a higher limit."""


@pydantic_dataclass(frozen=True, slots=True, kw_only=True, config=PART_OF_ANSWERS)
class LimitHit:
    """The limit that a turn was refused for: `count` is what there was, or what the turn would have made of it.

    Of `cost_per_day` both are money.
    """

    name: LimitName
    level: Level
    count: Count | _Amount
    limit: Count | _Amount

    def __str__(self) -> str:
        return f"{self.name.replace('_', ' ')} of the {self.level}: {self.count} of {self.limit}"


class Policy(Record):
    """What is not set stays as it is at the level above: a scope's before its tenant's before the configured one.

    `add_only`: no update or delete, duplicates by equal words only. `single_valued` and `high_risk` take the place of
    those of the level above; limits hold at each level by themselves. `profile_every` is the number of turns of
    `every_turns`. Some fields bound what an extraction is shown beside its turn: messages before it (their number,
    estimated tokens, and age in seconds), known facts, the entities whose names it is told, and the seconds that
    reading these may take. Others say which turns of a conversation share a call: how many, with how many estimated
    tokens of their messages, and the seconds after its publication that a turn waits for others; and when entities are
    summarised (`summary_changes` is the number of changed facts of `after_changes`), in how many estimated tokens and
    in which language.
    """

    add_only: bool | None = None
    confidence: ConfidencePreset | None = None
    confirm_below: Fraction | None = None
    high_risk: tuple[Slot, ...] | None = None
    single_valued: tuple[Slot, ...] | None = None
    min_importance: Fraction | None = None
    publish_profile: ProfilePublishing | None = Field(default=None, exclude_if=_is_unset)
    profile_every: Annotated[int | None, Field(ge=1, le=1000)] = Field(default=None, exclude_if=_is_unset)
    when_spent: WhenSpent | None = Field(default=None, exclude_if=_is_unset)
    when_unread: WhenUnread | None = Field(default=None, exclude_if=_is_unset)
    instructions: Instructions | None = Field(default=None, exclude_if=_is_unset)
    conversation_messages: ShownCount | None = Field(default=None, exclude_if=_is_unset)
    conversation_tokens: ShownTokens | None = Field(default=None, exclude_if=_is_unset)
    conversation_age: ShownAge | None = Field(default=None, exclude_if=_is_unset)
    known_entities: ShownCount | None = Field(default=None, exclude_if=_is_unset)
    known_facts: ShownCount | None = Field(default=None, exclude_if=_is_unset)
    known_tokens: ShownTokens | None = Field(default=None, exclude_if=_is_unset)
    known_timeout: ShownTimeout | None = Field(default=None, exclude_if=_is_unset)
    call_turns: CallTurns | None = Field(default=None, exclude_if=_is_unset)
    call_tokens: CallTokens | None = Field(default=None, exclude_if=_is_unset)
    call_linger: CallLinger | None = Field(default=None, exclude_if=_is_unset)
    entity_summary: SummaryTime | None = Field(default=None, exclude_if=_is_unset)
    summary_changes: SummaryChanges | None = Field(default=None, exclude_if=_is_unset)
    summary_tokens: SummaryTokens | None = Field(default=None, exclude_if=_is_unset)
    summary_language: SummaryLanguage | None = Field(default=None, exclude_if=_is_unset)
    limits: Limits = Limits()
    note: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """The policy that applies to one source, all fields set. `limits` are those that tenant and scope have set."""

    add_only: bool = False
    confidence: ConfidencePreset = "standard"
    confirm_below: float = CONFIRM_BELOW
    resend_window: float = RESEND_WINDOW
    high_risk: tuple[str, ...] = HIGH_RISK
    single_valued: tuple[str, ...] = ()
    min_importance: float = 0.0
    publish_profile: ProfilePublishing = "at_once"
    profile_every: int = PROFILE_EVERY
    when_spent: WhenSpent = "reject"
    when_unread: WhenUnread = "dead_letter"
    instructions: Instructions | None = None
    conversation_messages: int = CONVERSATION_MESSAGES
    conversation_tokens: int = CONVERSATION_TOKENS
    conversation_age: float = CONVERSATION_AGE
    known_entities: int = KNOWN_ENTITIES
    known_facts: int = KNOWN_FACTS
    known_tokens: int = KNOWN_TOKENS
    known_timeout: float = KNOWN_TIMEOUT
    call_turns: int = CALL_TURNS
    call_tokens: int = CALL_TOKENS
    call_linger: float = 0.0
    entity_summary: SummaryTime = "off"
    summary_changes: int = SUMMARY_CHANGES
    summary_tokens: int = SUMMARY_TOKENS
    summary_language: SummaryLanguage = "facts"
    limits: Mapping[Level, Limits] = field(default_factory=dict)

    def overlaid_by(self, policy: Policy, level: Level) -> "EffectivePolicy":
        """These rules, replaced by what `policy` sets."""
        said = {name: value for name in POLICY_FIELDS if (value := getattr(policy, name)) is not None}
        if policy.instructions is not None:
            said["instructions"] = policy.instructions.over(self.instructions)
        return replace(self, **said, limits={**self.limits, level: policy.limits})

    def with_overrides(self, overrides: Overrides) -> "EffectivePolicy":
        """These rules, replaced by what a turn sets."""
        names = ("add_only", "confidence", "confirm_below", "min_importance", *BACKGROUND_FIELDS)
        return replace(self, **{name: value for name in names if (value := getattr(overrides, name)) is not None})

    @property
    def has_counted_limits(self) -> bool:
        """Whether a limit is set that is about more than one turn."""
        return any(limits != Limits(bytes_per_turn=limits.bytes_per_turn) for limits in self.limits.values())

    @property
    def budgets_alone(self) -> "EffectivePolicy":
        """These rules with no other limits than those on what models take in a day."""
        kept = {level: {name: getattr(limits, name) for name in BUDGETS} for level, limits in self.limits.items()}
        return replace(self, limits={level: Limits(**budgets) for level, budgets in kept.items()})

    @property
    def without_budgets(self) -> "EffectivePolicy":
        """These rules without the limits on what models take in a day."""
        unset: dict[str, None] = dict.fromkeys(BUDGETS)
        return replace(self, limits={level: limits.model_copy(update=unset) for level, limits in self.limits.items()})

    def is_single_valued(self, key: str | None) -> bool:
        return is_single_valued(key, self.single_valued)

    def is_high_risk(self, categories: Iterable[str], key: str | None) -> bool:
        return not {*categories, key}.isdisjoint(self.high_risk)


POLICY_FIELDS: Final = (
    *("add_only", "confidence", "confirm_below", "high_risk", "single_valued", "min_importance"),
    *("publish_profile", "profile_every", "when_spent", "when_unread"),
    *BACKGROUND_FIELDS,
    *CALL_FIELDS,
    *SUMMARY_FIELDS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPolicies:
    """The policies that were set for a scope's tenant and for the scope itself."""

    tenant: Policy | None = None
    scope: Policy | None = None

    @classmethod
    def from_json(cls, tenant: str | None, scope: str | None) -> "StoredPolicies":
        """None is a policy that was never set."""
        tenants, own = (Policy.model_validate_json(text) if text else None for text in (tenant, scope))
        return cls(tenant=tenants, scope=own)

    def overlay(self, defaults: EffectivePolicy) -> EffectivePolicy:
        """The policy that applies where `defaults` are configured."""
        rules = defaults if self.tenant is None else defaults.overlaid_by(self.tenant, "tenant")
        return rules if self.scope is None else rules.overlaid_by(self.scope, "scope")


NO_POLICIES: Final = StoredPolicies()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCounts:
    """Active and pending facts, turns of one minute, tokens of one day; None is not counted."""

    facts: int | None = None
    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """What one turn is about to use: facts more than before, and tokens. An imported fact is no turn of its minute.

    `published_at` is the broker's time of it, which gives the minute and the day.
    """

    owner: str
    source_id: str
    scope: Scope
    published_at: datetime
    facts: int
    tokens: int
    turns: int = 1

    @property
    def counts(self) -> UsageCounts:
        return UsageCounts(facts=self.facts, turns=self.turns, tokens=self.tokens)


def exceeded_turn_size(rules: EffectivePolicy, size: int) -> LimitHit | None:
    """The limit that a turn of `size` bytes breaks by itself."""
    for level, limits in _levels_with_limits(rules):
        if limits.bytes_per_turn is not None and size > limits.bytes_per_turn:
            return LimitHit(name="bytes_per_turn", level=level, count=size, limit=limits.bytes_per_turn)
    return None


def exhausted_limit(level: Level, limits: Limits, used: UsageCounts) -> LimitHit | None:
    """The first limit that has no room left."""
    for name, count, limit, _ in _counted_limits(limits, used, UsageCounts()):
        if count >= limit:
            return LimitHit(name=name, level=level, count=count, limit=limit)
    return None


def exceeded_limit(level: Level, limits: Limits, used: UsageCounts, extra: UsageCounts) -> LimitHit | None:
    """The first limit that `extra` would break; what adds nothing breaks none. `count` is what would be."""
    for name, count, limit, added in _counted_limits(limits, used, extra):
        if added > 0 and count + added > limit:
            return LimitHit(name=name, level=level, count=count + added, limit=limit)
    return None


def counted_levels(rules: EffectivePolicy) -> dict[Level, Limits]:
    """The levels with a limit that needs counting."""
    return {
        level: limits
        for level, limits in _levels_with_limits(rules)
        if any(getattr(limits, name) is not None for name in COUNTED_LIMITS.values())
    }


def _counted_limits(limits: Limits, used: UsageCounts, more: UsageCounts) -> Iterator[tuple[LimitName, int, int, int]]:
    """Name, count, limit and addition of each limit that is set and counted."""
    for kind, name in COUNTED_LIMITS.items():
        count, limit = getattr(used, kind), getattr(limits, name)
        if limit is not None and count is not None:
            yield name, count, limit, getattr(more, kind) or 0


def _levels_with_limits(rules: EffectivePolicy) -> Iterator[tuple[Level, Limits]]:
    return ((level, rules.limits[level]) for level in LEVELS if level in rules.limits)
