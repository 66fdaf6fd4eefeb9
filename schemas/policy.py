"""What an operator has decided for a tenant or a scope: how facts may change, and how much is allowed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from mnemolog.schemas.base import PART_OF_ANSWERS, Count, Fraction, IfSet, Record, Text
from mnemolog.schemas.costs import Money
from mnemolog.schemas.entities import SummaryLanguage
from mnemolog.schemas.facts import ConfidencePreset, Slot
from mnemolog.schemas.instructions import Instructions
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import BackgroundRules, Overrides

Level = Literal["tenant", "scope"]
ProfilePublishing = Literal["at_once", "every_turns", "session_end"]
"""When readers get a new profile: with each change; every so many turns and when a session ends; or only then."""
SummaryTime = Literal["off", "on_demand", "after_changes"]
"""When a model writes summaries of entities: never, when a command asks for one, or also after changes of facts."""
SummaryChanges = Annotated[int, Field(ge=1, le=1000)]
SummaryTokens = Annotated[int, Field(ge=30, le=1000)]
SUMMARY_FIELDS: Final = ("entity_summary", "summary_changes", "summary_tokens", "summary_language")
"""The rules on summaries of entities."""
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


def is_single_valued(key: str | None, more: tuple[str, ...] = ()) -> bool:
    """Whether a key holds one value at a time, by the registry and the configured `more`."""
    return key is not None and (key in SINGLE_VALUED or key in more or key.startswith(("favourite_", "favorite_")))


class Limits(Record):
    """The most that is allowed; None means no limit. A minute and a day are those of the broker's clock, in UTC.

    `cost_per_day` is in the currency of the price table.
    """

    active_facts: _Limit = None
    turns_per_minute: _Limit = None
    bytes_per_turn: _Limit = None
    tokens_per_day: _Limit = None
    cost_per_day: IfSet[Money] = None


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


class Policy(BackgroundRules):
    """What is not set stays as it is at the level above: a scope's before its tenant's before the configured one.

    `add_only`: no update or delete, duplicates by equal words only. `single_valued` and `high_risk` take the place of
    those of the level above; limits hold at each level by themselves. `profile_every` is the number of turns of
    `every_turns`. Some fields say which turns of a conversation share a call: how many, with how many estimated tokens
    of their messages, and the seconds after its publication that a turn waits for others; and when entities are
    summarised (`summary_changes` is the number of changed facts of `after_changes`), in how many estimated tokens and
    in which language.
    """

    add_only: bool | None = None
    confidence: ConfidencePreset | None = None
    confirm_below: Fraction | None = None
    high_risk: tuple[Slot, ...] | None = None
    single_valued: tuple[Slot, ...] | None = None
    min_importance: Fraction | None = None
    publish_profile: IfSet[ProfilePublishing] = None
    profile_every: IfSet[Annotated[int, Field(ge=1, le=1000)]] = None
    when_spent: IfSet[WhenSpent] = None
    when_unread: IfSet[WhenUnread] = None
    instructions: IfSet[Instructions] = None
    call_turns: IfSet[CallTurns] = None
    call_tokens: IfSet[CallTokens] = None
    call_linger: IfSet[CallLinger] = None
    entity_summary: IfSet[SummaryTime] = None
    summary_changes: IfSet[SummaryChanges] = None
    summary_tokens: IfSet[SummaryTokens] = None
    summary_language: IfSet[SummaryLanguage] = None
    limits: Limits = Limits.model_construct()
    note: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """The policy that applies to one source, all fields set. `limits` are those that tenant and scope have set."""

    add_only: bool = False
    confidence: ConfidencePreset = "standard"
    confirm_below: float = 0.90
    resend_window: float = 600.0  # seconds: longer than clients try again, shorter than people take to say it once more
    high_risk: tuple[str, ...] = ("identity", "health", "finance")  # Mem Skill, safety requirements
    single_valued: tuple[str, ...] = ()
    min_importance: float = 0.0
    publish_profile: ProfilePublishing = "at_once"
    profile_every: int = 5  # Mem Skill, stage 5
    when_spent: WhenSpent = "reject"
    when_unread: WhenUnread = "dead_letter"
    instructions: Instructions | None = None
    conversation_messages: int = 10  # as mem0
    conversation_tokens: int = 600
    conversation_age: float = 86_400.0  # seconds: an answer of the next morning still finds its question
    known_entities: int = 10
    known_facts: int = 10
    known_tokens: int = 800  # as arandu (`informed_extraction_topk`, `informed_extraction_context_budget_tokens`)
    known_timeout: float = 0.5
    call_turns: int = 20
    # Twenty messages of the length that people type; a longer reply comes close to the seconds that a call may take.
    call_tokens: int = 2000
    call_linger: float = 0.0
    entity_summary: SummaryTime = "off"
    summary_changes: int = 10
    summary_tokens: int = 200  # within the 100 to 300 tokens of a profile of arandu
    summary_language: SummaryLanguage = "facts"
    limits: Mapping[Level, Limits] = field(default_factory=dict)

    def overlaid_by(self, policy: Policy, level: Level) -> "EffectivePolicy":
        """These rules, replaced by what `policy` sets."""
        names = Policy.model_fields.keys() - {"limits", "note"}
        said = {name: value for name in names if (value := getattr(policy, name)) is not None}
        if policy.instructions is not None:
            said["instructions"] = policy.instructions.over(self.instructions)
        return replace(self, **said, limits={**self.limits, level: policy.limits})

    def with_overrides(self, overrides: Overrides) -> "EffectivePolicy":
        """These rules, replaced by what a turn sets."""
        names = ("add_only", "confidence", "confirm_below", "min_importance", *BackgroundRules.model_fields)
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
    for level in LEVELS:
        limits = rules.limits.get(level, Limits())
        if limits.bytes_per_turn is not None and size > limits.bytes_per_turn:
            return LimitHit(name="bytes_per_turn", level=level, count=size, limit=limits.bytes_per_turn)
    return None


def exceeded_limit(
    level: Level, limits: Limits, used: UsageCounts, extra: UsageCounts | None = None
) -> LimitHit | None:
    """The first limit that `extra` would break; what adds nothing breaks none. `count` is what would be.

    Without `extra` the first limit that has no room left.
    """
    for kind, name in COUNTED_LIMITS.items():
        count, limit = getattr(used, kind), getattr(limits, name)
        if limit is None or count is None:
            continue
        added = 0 if extra is None else getattr(extra, kind) or 0
        if (extra is None and count >= limit) or (added > 0 and count + added > limit):
            return LimitHit(name=name, level=level, count=count + added, limit=limit)
    return None


def counted_levels(rules: EffectivePolicy) -> dict[Level, Limits]:
    """The levels with a limit that needs counting."""
    return {
        level: rules.limits[level]
        for level in LEVELS
        if any(getattr(rules.limits.get(level), name, None) is not None for name in COUNTED_LIMITS.values())
    }
