"""What limits count, and the reservations that hold a tenant's limits while many workers decide at once.

A scope's turns are decided one after the other, so its tables tell all that there is. A tenant's are not: each turn
reserves what it is about to use before it is committed, and counts until its commit is projected.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
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
_NO_SOURCE: Final = {"owner": "", "source_id": ""}

_SQL: Final = queries("limits")


async def find_exhausted_limit(
    connection: AsyncConnection[TupleRow], scope: Scope, rules: EffectivePolicy, at: datetime
) -> LimitHit | None:
    """The first limit that leaves a turn published `at` nothing over, as far as the tables know.

    One round trip, none where no limit is set. A turn that is let through may still break one.
    """
    asked = counted_levels(rules)
    if not asked:
        return None
    used = await _usage(connection, scope, asked, {**_NO_SOURCE, **_periods(at)})
    return next((hit for level in asked if (hit := exhausted_limit(level, asked[level], used[level]))), None)


async def is_received(connection: AsyncConnection[TupleRow], owner: str, source_id: str) -> bool:
    """Whether publishing a turn again does nothing: it is under way, or was decided and may not be tried again."""
    asked = {"owner": owner, "source_id": source_id}
    row = await (await connection.execute(_SQL["is_received"], asked)).fetchone()
    return row is not None and bool(row[0])


class LimitReservations:
    """Lets turns through under the limits of their scope and tenant; every call waits while Postgres is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def exhausted_limit(self, scope: Scope, rules: EffectivePolicy, at: datetime) -> LimitHit | None:
        """As `find_exhausted_limit`."""
        if not counted_levels(rules):
            return None
        return await retry_while_unavailable(partial(self._exhausted_limit, scope, rules, at), name="limits")

    async def reserve(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """The first limit that `usage` would break; without one it is reserved and counts from now on.

        Exact under any number of callers, if calls for one scope come one after the other, each when all earlier
        commits of it are projected. The same source may call again: that replaces its reservation. No round trip where
        no limit is set.
        """
        asked = counted_levels(rules)
        if "scope" in asked:
            hit = await retry_while_unavailable(partial(self._check, usage, {"scope": asked["scope"]}), name="limits")
            if hit is not None:
                return hit
        if "tenant" not in asked:
            return None
        return await retry_while_unavailable(partial(self._reserve, usage, asked["tenant"]), name="reserve")

    async def check(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """As `reserve`, as far as the tables know, and nothing is reserved."""
        asked = counted_levels(rules)
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
