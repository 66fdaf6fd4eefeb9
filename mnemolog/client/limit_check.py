"""Limits checked before a turn is published. Only a hint: the stage that decides a turn enforces them."""

import asyncio
from datetime import datetime, timedelta
from typing import Final

from mnemolog.client.read_pool import ReadPool
from mnemolog.errors import LimitExceededError, ServerUnavailableError, SettingsError
from mnemolog.projections.logs import get_logger
from mnemolog.projections.stores.limits import find_exhausted_limit, is_received
from mnemolog.projections.stores.policies import fetch_policies, may_have_limits
from mnemolog.schemas.costs.prices import NO_PRICES, PriceTable
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, exceeded_turn_size
from mnemolog.schemas.turn import Turn

CHECK_TIMEOUT_SECONDS: Final = 1.0
CACHE_TTL: Final = timedelta(seconds=1)
MAX_CACHED_TENANTS: Final = 1000

_log = get_logger(__name__)


class LimitPrecheck:
    """Tells of turns that would be refused for a limit.

    Whether a tenant has limits at all is asked once a second: a limit that was set takes that long to be seen here.
    """

    def __init__(self, prices: PriceTable = NO_PRICES) -> None:
        self._prices = prices
        # By tenant: when it was asked whether it has limits, and the answer.
        self._cache: dict[str, tuple[datetime, bool]] = {}

    async def check(self, pool: ReadPool, turn: Turn, now: datetime) -> None:
        """Raise `LimitExceededError` where a limit of the turn's scope or tenant is used up, or the turn is too large.

        Takes two round trips where the tenant has limits, else none but for one a second. A turn that was published
        before is let through: its second copy does nothing. So is every turn while Postgres is away or not migrated
        yet, or has no answer within a second.
        """
        if self._cached_answer(turn.scope.tenant, now) is False:
            return
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                hit = await self._limit_hit(pool, turn, now)
        except (ServerUnavailableError, SettingsError, TimeoutError) as error:
            _log.debug("limits_not_checked", turn_id=turn.turn_id, error=str(error) or type(error).__name__)
            return
        if hit is not None:
            raise LimitExceededError(turn.turn_id, hit)

    def _cached_answer(self, tenant: str, now: datetime) -> bool | None:
        """Whether a tenant has limits; None where that is to be asked (again)."""
        asked_at, has_limits = self._cache.get(tenant, (now, None))
        return has_limits if timedelta(0) <= now - asked_at < CACHE_TTL else None  # a clock may have been put back

    async def _limit_hit(self, pool: ReadPool, turn: Turn, now: datetime) -> LimitHit | None:
        async with pool.connection() as connection:
            if (limited := self._cached_answer(turn.scope.tenant, now)) is None:
                limited = await may_have_limits(connection, turn.scope.tenant)
                if len(self._cache) >= MAX_CACHED_TENANTS:
                    self._cache.clear()
                self._cache[turn.scope.tenant] = now, limited
            if not limited:
                return None
            rules = (await fetch_policies(connection, turn.scope)).overlay(EffectivePolicy())
            if not rules.limits:
                return None
            refusing = rules if rules.when_spent == "reject" else rules.without_budgets
            hit = exceeded_turn_size(rules, len(turn.to_bytes())) or await find_exhausted_limit(
                connection, turn.scope, refusing, now, self._prices
            )
            if hit is None or await is_received(connection, turn.scope.owner, turn.turn_id):
                return None
            return hit
