"""Limits as arithmetic: which limit a turn exceeds, from what is used and what the turn adds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mnemolog.schemas.policy import EffectivePolicy, Level, LimitHit, LimitName, Limits
from mnemolog.schemas.scope import Scope

LEVELS: Final[tuple[Level, ...]] = ("scope", "tenant")
COUNTED_LIMITS: Final[Mapping[str, LimitName]] = {
    "facts": "active_facts",
    "turns": "turns_per_minute",
    "tokens": "tokens_per_day",
}
"""The limit on each field of `UsageCounts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCounts:
    """Active and pending facts, turns of one minute, tokens of one day; None is not counted."""

    facts: int | None = None
    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """What one turn is about to use: facts more than before, and tokens. It is one turn of its minute.

    `published_at` is the broker's time of it, which tells the minute and the day.
    """

    owner: str
    source_id: str
    scope: Scope
    published_at: datetime
    facts: int
    tokens: int

    @property
    def counts(self) -> UsageCounts:
        return UsageCounts(facts=self.facts, turns=1, tokens=self.tokens)


def exceeded_turn_size(rules: EffectivePolicy, size: int) -> LimitHit | None:
    """The limit that a turn of `size` bytes breaks by itself."""
    for level, limits in _levels_with_limits(rules):
        if limits.bytes_per_turn is not None and size > limits.bytes_per_turn:
            return LimitHit(name="bytes_per_turn", level=level, count=size, limit=limits.bytes_per_turn)
    return None


def exhausted_limit(level: Level, limits: Limits, used: UsageCounts) -> LimitHit | None:
    """The first limit that leaves nothing over."""
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
