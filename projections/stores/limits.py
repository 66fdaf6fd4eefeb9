"""What limits count, and the reservations that hold a tenant's limits while many workers decide at once.

A scope's turns are decided one after the other, so its tables tell all that there is. A tenant's are not: each turn
reserves what it is about to use before it is committed, and counts until its commit is projected.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import EffectivePolicy, Level, LimitHit, LimitName, Limits
from mnemolog.schemas.scope import Scope

LIMIT_LOCK: Final = 0x6D6E_0003
"""First half of the advisory locks under which a tenant's turns reserve; the second is a hash of the tenant."""
RESERVATION_RETENTION: Final = timedelta(days=7)
"""Older reservations are of turns that were never committed: each delivery of a turn makes its reservation anew."""
LEVELS: Final[tuple[Level, ...]] = ("scope", "tenant")
_KINDS: Final = ("facts", "turns", "tokens")
_NO_SOURCE: Final = {"owner": "", "source_id": ""}

_SQL: Final = queries("limits")


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


async def find_exhausted_limit(
    connection: AsyncConnection[TupleRow], scope: Scope, rules: EffectivePolicy, at: datetime
) -> LimitHit | None:
    """The first limit that leaves a turn published `at` nothing over, as far as the tables know.

    One round trip, none where no limit is set. A turn that is let through may still break one.
    """
    asked = _counted_levels(rules)
    if not asked:
        return None
    used = await _usage(connection, scope, asked, {**_NO_SOURCE, **_periods(at)})
    return next((hit for level in asked if (hit := exhausted_limit(level, asked[level], used[level]))), None)


async def is_received(connection: AsyncConnection[TupleRow], owner: str, source_id: str) -> bool:
    """Whether a turn is on its way or was decided, and not refused for a limit: publishing it again does nothing."""
    asked = {"owner": owner, "source_id": source_id}
    row = await (await connection.execute(_SQL["is_received"], asked)).fetchone()
    return row is not None and bool(row[0])


class LimitReservations:
    """Lets turns through under the limits of their scope and tenant; every call waits while Postgres is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def exhausted_limit(self, scope: Scope, rules: EffectivePolicy, at: datetime) -> LimitHit | None:
        """As `find_exhausted_limit`."""
        if not _counted_levels(rules):
            return None
        return await retry_while_unavailable(partial(self._exhausted_limit, scope, rules, at), name="limits")

    async def reserve(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """The first limit that `usage` would break; without one it is reserved and counts from now on.

        Exact under any number of callers, if calls for one scope come one after the other, each when all earlier
        commits of it are projected. The same source may call again: that replaces its reservation. No round trip where
        no limit is set.
        """
        asked = _counted_levels(rules)
        if "scope" in asked:
            hit = await retry_while_unavailable(partial(self._check, usage, {"scope": asked["scope"]}), name="limits")
            if hit is not None:
                return hit
        if "tenant" not in asked:
            return None
        return await retry_while_unavailable(partial(self._reserve, usage, asked["tenant"]), name="reserve")

    async def check(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """As `reserve`, as far as the tables know, and nothing is reserved."""
        asked = _counted_levels(rules)
        return await retry_while_unavailable(partial(self._check, usage, asked), name="limits") if asked else None

    async def _exhausted_limit(self, scope: Scope, rules: EffectivePolicy, at: datetime) -> LimitHit | None:
        async with self._pool.connection() as connection:
            return await find_exhausted_limit(connection, scope, rules, at)

    async def _check(self, usage: TurnUsage, asked: Mapping[Level, Limits]) -> LimitHit | None:
        given = {"owner": usage.owner, "source_id": usage.source_id, **_periods(usage.published_at)}
        async with self._pool.connection() as connection:
            used = await _usage(connection, usage.scope, asked, given)
        hits = (exceeded_limit(level, asked[level], used[level], usage.counts) for level in asked)
        return next((hit for hit in hits if hit is not None), None)

    async def _reserve(self, usage: TurnUsage, limits: Limits) -> LimitHit | None:
        parameters = {
            "lock": LIMIT_LOCK,
            "tenant": usage.scope.tenant,
            "owner": usage.owner,
            "source_id": usage.source_id,
            "published_at": usage.published_at,
            "facts": max(usage.facts, 0),
            "tokens": usage.tokens,
            "max_facts": limits.active_facts,
            "max_turns": limits.turns_per_minute,
            "max_tokens": limits.tokens_per_day,
            "retention": RESERVATION_RETENTION,
            **_periods(usage.published_at),
        }
        async with self._pool.connection() as connection:
            # The commit is sent along: while the tenant is locked, nobody waits for this process's loop.
            async with connection.pipeline(), connection.transaction():
                await connection.execute(_SQL["lock_tenant"], parameters)
                cursor = await connection.execute(_SQL["reserve"], parameters)
            ((facts, turns, tokens, reserved),) = await cursor.fetchall()
        if reserved:
            return None
        return exceeded_limit("tenant", limits, UsageCounts(facts=facts, turns=turns, tokens=tokens), usage.counts)


async def _usage(
    connection: AsyncConnection[TupleRow], scope: Scope, asked: Mapping[Level, Limits], given: Mapping[str, Any]
) -> dict[Level, UsageCounts]:
    """What each level has of that which its limits in `asked` count."""
    flags = {
        f"{level}_{kind}": limit is not None
        for level in LEVELS
        for kind, limit in zip(_KINDS, _counted_values(asked.get(level, Limits())), strict=True)
    }
    cursor = await connection.execute(_SQL["usage"], {**scope.columns, **flags, **given})
    (counts,) = await cursor.fetchall()
    return {
        level: UsageCounts(**dict(zip(_KINDS, counts[place : place + 3], strict=True)))
        for level, place in zip(LEVELS, (0, 3), strict=True)
    }


def _counted_limits(limits: Limits, used: UsageCounts, more: UsageCounts) -> Iterator[tuple[LimitName, int, int, int]]:
    """Name, count, limit and addition of each limit that is set and counted."""
    names: tuple[LimitName, ...] = ("active_facts", "turns_per_minute", "tokens_per_day")
    for name, kind, limit in zip(names, _KINDS, _counted_values(limits), strict=True):
        count = getattr(used, kind)
        if limit is not None and count is not None:
            yield name, count, limit, getattr(more, kind) or 0


def _levels_with_limits(rules: EffectivePolicy) -> Iterator[tuple[Level, Limits]]:
    return ((level, rules.limits[level]) for level in LEVELS if level in rules.limits)


def _counted_levels(rules: EffectivePolicy) -> dict[Level, Limits]:
    """The levels with a limit that needs counting."""
    return {
        level: limits
        for level, limits in _levels_with_limits(rules)
        if any(limit is not None for limit in _counted_values(limits))
    }


def _counted_values(limits: Limits) -> tuple[int | None, int | None, int | None]:
    """The limits that need counting, in the order of `_KINDS`."""
    return (limits.active_facts, limits.turns_per_minute, limits.tokens_per_day)


def _periods(at: datetime) -> dict[str, datetime]:
    minute = at.astimezone(UTC).replace(second=0, microsecond=0)
    return {"minute": minute, "day": minute.replace(hour=0, minute=0)}
