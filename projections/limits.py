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

from mnemolog.projections.pools import Pool, persistently
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import Level, LimitHit, LimitName, Limits, Rules
from mnemolog.schemas.scope import Scope

LIMIT_LOCK: Final = 0x6D6E_0003
"""First half of the advisory locks under which a tenant's turns reserve; the second is a hash of the tenant."""
RETENTION: Final = timedelta(days=7)
"""Older reservations are of turns that were never committed: each delivery of a turn makes its reservation anew."""
LEVELS: Final[tuple[Level, ...]] = ("scope", "tenant")
_KINDS: Final = ("facts", "turns", "tokens")
_NO_SOURCE: Final = {"owner": "", "source_id": ""}

_SQL: Final = queries("limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """Active and pending facts, turns of one minute, tokens of one day; None is not counted."""

    facts: int | None = None
    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
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
    def amounts(self) -> Amounts:
        return Amounts(facts=self.facts, turns=1, tokens=self.tokens)


def too_large(rules: Rules, size: int) -> LimitHit | None:
    """The limit that a turn of `size` bytes breaks by itself."""
    for level, limits in _set(rules):
        if limits.bytes_per_turn is not None and size > limits.bytes_per_turn:
            return LimitHit(name="bytes_per_turn", level=level, count=size, limit=limits.bytes_per_turn)
    return None


def used_up(level: Level, limits: Limits, used: Amounts) -> LimitHit | None:
    """The first limit that leaves nothing over."""
    for name, count, limit, _ in _counted(limits, used, Amounts()):
        if count >= limit:
            return LimitHit(name=name, level=level, count=count, limit=limit)
    return None


def exceeded(level: Level, limits: Limits, used: Amounts, more: Amounts) -> LimitHit | None:
    """The first limit that `more` would break; what adds nothing breaks none. `count` is what would be."""
    for name, count, limit, added in _counted(limits, used, more):
        if added > 0 and count + added > limit:
            return LimitHit(name=name, level=level, count=count + added, limit=limit)
    return None


async def used_up_before(
    connection: AsyncConnection[TupleRow], scope: Scope, rules: Rules, at: datetime
) -> LimitHit | None:
    """The first limit that leaves a turn published `at` nothing over, as far as the tables know.

    One round trip, none where no limit is set. A turn that is let through may still break one.
    """
    asked = _counting(rules)
    if not asked:
        return None
    used = await _usage(connection, scope, asked, {**_NO_SOURCE, **_times(at)})
    return next((hit for level in asked if (hit := used_up(level, asked[level], used[level]))), None)


async def is_received(connection: AsyncConnection[TupleRow], owner: str, source_id: str) -> bool:
    """Whether a turn is on its way or was decided, and not refused for a limit: publishing it again does nothing."""
    asked = {"owner": owner, "source_id": source_id}
    row = await (await connection.execute(_SQL["is_received"], asked)).fetchone()
    return row is not None and bool(row[0])


class Reservations:
    """Lets turns through under the limits of their scope and tenant; every call waits while Postgres is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def used_up(self, scope: Scope, rules: Rules, at: datetime) -> LimitHit | None:
        """As `used_up_before`."""
        if not _counting(rules):
            return None
        return await persistently(partial(self._used_up, scope, rules, at), name="limits")

    async def refused(self, claim: Claim, rules: Rules) -> LimitHit | None:
        """The first limit that `claim` would break; without one it is reserved and counts from now on.

        Exact under any number of callers, if calls for one scope come one after the other, each when all earlier
        commits of it are projected. The same source may call again: that replaces its reservation. No round trip where
        no limit is set.
        """
        asked = _counting(rules)
        if "scope" in asked:
            hit = await persistently(partial(self._foreseen, claim, {"scope": asked["scope"]}), name="limits")
            if hit is not None:
                return hit
        if "tenant" not in asked:
            return None
        return await persistently(partial(self._reserve, claim, asked["tenant"]), name="reserve")

    async def foreseen(self, claim: Claim, rules: Rules) -> LimitHit | None:
        """As `refused`, as far as the tables know, and nothing is reserved."""
        asked = _counting(rules)
        return await persistently(partial(self._foreseen, claim, asked), name="limits") if asked else None

    async def _used_up(self, scope: Scope, rules: Rules, at: datetime) -> LimitHit | None:
        async with self._pool.connection() as connection:
            return await used_up_before(connection, scope, rules, at)

    async def _foreseen(self, claim: Claim, asked: Mapping[Level, Limits]) -> LimitHit | None:
        given = {"owner": claim.owner, "source_id": claim.source_id, **_times(claim.published_at)}
        async with self._pool.connection() as connection:
            used = await _usage(connection, claim.scope, asked, given)
        hits = (exceeded(level, asked[level], used[level], claim.amounts) for level in asked)
        return next((hit for hit in hits if hit is not None), None)

    async def _reserve(self, claim: Claim, limits: Limits) -> LimitHit | None:
        parameters = {
            "lock": LIMIT_LOCK,
            "tenant": claim.scope.tenant,
            "owner": claim.owner,
            "source_id": claim.source_id,
            "published_at": claim.published_at,
            "facts": max(claim.facts, 0),
            "tokens": claim.tokens,
            "max_facts": limits.active_facts,
            "max_turns": limits.turns_per_minute,
            "max_tokens": limits.tokens_per_day,
            "retention": RETENTION,
            **_times(claim.published_at),
        }
        async with self._pool.connection() as connection:
            # The commit is sent along: while the tenant is locked, nobody waits for this process's loop.
            async with connection.pipeline(), connection.transaction():
                await connection.execute(_SQL["lock_tenant"], parameters)
                cursor = await connection.execute(_SQL["reserve"], parameters)
            ((facts, turns, tokens, reserved),) = await cursor.fetchall()
        if reserved:
            return None
        return exceeded("tenant", limits, Amounts(facts=facts, turns=turns, tokens=tokens), claim.amounts)


async def _usage(
    connection: AsyncConnection[TupleRow], scope: Scope, asked: Mapping[Level, Limits], given: Mapping[str, Any]
) -> dict[Level, Amounts]:
    """What each level has of that which its limits in `asked` count."""
    flags = {
        f"{level}_{kind}": limit is not None
        for level in LEVELS
        for kind, limit in zip(_KINDS, _of(asked.get(level, Limits())), strict=True)
    }
    cursor = await connection.execute(_SQL["usage"], {**scope.columns, **flags, **given})
    (counts,) = await cursor.fetchall()
    return {
        level: Amounts(**dict(zip(_KINDS, counts[place : place + 3], strict=True)))
        for level, place in zip(LEVELS, (0, 3), strict=True)
    }


def _counted(limits: Limits, used: Amounts, more: Amounts) -> Iterator[tuple[LimitName, int, int, int]]:
    """Name, count, limit and addition of each limit that is set and counted."""
    names: tuple[LimitName, ...] = ("active_facts", "turns_per_minute", "tokens_per_day")
    for name, kind, limit in zip(names, _KINDS, _of(limits), strict=True):
        count = getattr(used, kind)
        if limit is not None and count is not None:
            yield name, count, limit, getattr(more, kind) or 0


def _set(rules: Rules) -> Iterator[tuple[Level, Limits]]:
    return ((level, rules.limits[level]) for level in LEVELS if level in rules.limits)


def _counting(rules: Rules) -> dict[Level, Limits]:
    """The levels with a limit that needs counting."""
    return {level: limits for level, limits in _set(rules) if any(limit is not None for limit in _of(limits))}


def _of(limits: Limits) -> tuple[int | None, int | None, int | None]:
    """The limits that need counting, in the order of `_KINDS`."""
    return (limits.active_facts, limits.turns_per_minute, limits.tokens_per_day)


def _times(at: datetime) -> dict[str, datetime]:
    minute = at.astimezone(UTC).replace(second=0, microsecond=0)
    return {"minute": minute, "day": minute.replace(hour=0, minute=0)}
