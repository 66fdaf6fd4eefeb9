"""Usage counts, and the reservations that keep a tenant's limits exact while many workers decide at once.

The turns of a scope are decided one after the other, so its tables have all usage. Those of a tenant are not: each turn
reserves what it is about to use before it is committed, and the reservation counts until the commit is projected.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_value
from mnemolog.projections.db.pools import Pool
from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.budgets import find_spent_budget
from mnemolog.schemas.costs.prices import NO_PRICES, PriceTable
from mnemolog.schemas.policy import (
    COUNTED_LIMITS,
    LEVELS,
    EffectivePolicy,
    Level,
    LimitHit,
    Limits,
    TurnUsage,
    UsageCounts,
    counted_levels,
    exceeded_limit,
    exhausted_limit,
)
from mnemolog.schemas.scope import Scope

LIMIT_LOCK: Final = 0x6D6E_0003
"""First half of the advisory locks under which a tenant's turns reserve; the second is a hash of the tenant."""
RESERVATION_RETENTION: Final = timedelta(days=7)
"""Older reservations are of turns that were never committed: each delivery of a turn makes its reservation anew."""

_SQL: Final = queries("limits")


async def find_exhausted_limit(
    connection: AsyncConnection[TupleRow],
    scope: Scope,
    rules: EffectivePolicy,
    at: datetime,
    prices: PriceTable = NO_PRICES,
) -> LimitHit | None:
    """The first limit without room for a turn published `at`, by the counts in the tables.

    One round trip for all that is counted, and one for each level with a limit on money; none where no limit is set. A
    turn that is admitted may still exceed one.
    """
    asked, periods = counted_levels(rules), _periods(at)
    if asked:
        used = await _usage(connection, scope, asked, {"owner": "", "source_id": "", **periods})
        hits = (exhausted_limit(level, asked[level], used[level]) for level in asked)
        if hit := next((hit for hit in hits if hit is not None), None):
            return hit
    return await find_spent_budget(connection, scope, rules, periods["day"], prices)


async def is_received(connection: AsyncConnection[TupleRow], owner: str, source_id: str) -> bool:
    """Whether publishing a turn again does nothing: it is under way, or was decided and may not be tried again."""
    asked = {"owner": owner, "source_id": source_id}
    return bool(await fetch_value(connection, _SQL["is_received"], asked))


class LimitReservations(Store):
    """Admits turns under the limits of their scope and tenant; `prices` make money of tokens."""

    def __init__(self, pool: Pool, prices: PriceTable = NO_PRICES) -> None:
        super().__init__(pool)
        self._prices = prices

    async def exhausted_limit(self, scope: Scope, rules: EffectivePolicy, at: datetime) -> LimitHit | None:
        """As `find_exhausted_limit`."""
        if not rules.has_counted_limits:
            return None
        return await self._run("limits", find_exhausted_limit, scope, rules, at, self._prices)

    async def reserve(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """The first limit that `usage` would break; without one it is reserved and counts from now on.

        Exact under any number of callers, if calls for one scope come one after the other, each when all earlier
        commits of it are projected. The same source may call again: that replaces its reservation. No round trip where
        no limit is set.
        """
        asked = counted_levels(rules)
        tenant_limits = asked.pop("tenant", None)
        if asked and (hit := await self._run("limits", _exceeded_limit, usage, asked)):
            return hit
        return await self._run("reserve", _reserve, usage, tenant_limits) if tenant_limits else None

    async def check(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """As `reserve`, by the counts in the tables; nothing is reserved."""
        asked = counted_levels(rules)
        return await self._run("limits", _exceeded_limit, usage, asked) if asked else None


async def _exceeded_limit(
    connection: AsyncConnection[TupleRow], usage: TurnUsage, asked: Mapping[Level, Limits]
) -> LimitHit | None:
    given = {"owner": usage.owner, "source_id": usage.source_id, **_periods(usage.published_at)}
    used = await _usage(connection, usage.scope, asked, given)
    hits = (exceeded_limit(level, asked[level], used[level], usage.counts) for level in asked)
    return next((hit for hit in hits if hit is not None), None)


async def _reserve(connection: AsyncConnection[TupleRow], usage: TurnUsage, limits: Limits) -> LimitHit | None:
    parameters = {
        "lock": LIMIT_LOCK,
        "tenant": usage.scope.tenant,
        "owner": usage.owner,
        "source_id": usage.source_id,
        "published_at": usage.published_at,
        "facts": max(usage.facts, 0),
        "tokens": usage.tokens,
        "turns": usage.turns,
        "max_facts": limits.active_facts,
        "max_turns": limits.turns_per_minute,
        "max_tokens": limits.tokens_per_day,
        "retention": RESERVATION_RETENTION,
        **_periods(usage.published_at),
    }
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
    """The usage of each level, as far as its limits in `asked` count it."""
    flags = {
        f"{level}_{kind}": getattr(asked.get(level), name, None) is not None
        for level in LEVELS
        for kind, name in COUNTED_LIMITS.items()
    }
    cursor = await connection.execute(_SQL["usage"], {**scope.columns, **flags, **given})
    (counts,) = await cursor.fetchall()
    return {
        level: UsageCounts(**dict(zip(COUNTED_LIMITS, counts[place : place + 3], strict=True)))
        for level, place in zip(LEVELS, (0, 3), strict=True)
    }


def _periods(at: datetime) -> dict[str, datetime]:
    minute = at.astimezone(UTC).replace(second=0, microsecond=0)
    return {"minute": minute, "day": minute.replace(hour=0, minute=0)}
