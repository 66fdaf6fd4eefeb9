"""Limits at the edge: a quick answer before a turn is published. The truth is told where the turn is decided."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.errors import LimitExceededError, ServerUnavailableError, SettingsError
from mnemolog.projections.limits import is_received, too_large, used_up_before
from mnemolog.projections.policies import may_have_limits, policies_for
from mnemolog.reading import Reader
from mnemolog.schemas.policy import LimitHit, Rules
from mnemolog.schemas.turn import Turn

PATIENCE_SECONDS: Final = 1.0
REMEMBERED: Final = timedelta(seconds=1)
REMEMBERED_TENANTS: Final = 1000

_log = structlog.get_logger(__name__)


class Edge:
    """Tells of turns that would be refused for a limit.

    Whether a tenant has limits at all is asked once a second: a limit that was set takes that long to be seen here.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    async def check(self, reader: Reader, turn: Turn, now: datetime) -> None:
        """Raise `LimitExceededError` where a limit of the turn's scope or tenant is used up, or the turn is too large.

        Takes two round trips where the tenant has limits, else none but for one a second. A turn that was published
        before is let through: its second copy does nothing. So is every turn while Postgres is away or not migrated
        yet, or has no answer within a second.
        """
        if self._knows_no_limits(turn.scope.tenant, now):
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                hit = await self._hit(reader, turn, now)
        except (ServerUnavailableError, SettingsError, TimeoutError) as error:
            _log.debug("limits_not_checked", turn_id=turn.turn_id, error=str(error) or type(error).__name__)
            return
        if hit is not None:
            raise LimitExceededError(turn.turn_id, hit)

    def _knows_no_limits(self, tenant: str, now: datetime) -> bool:
        seen = self._seen.get(tenant)
        return seen is not None and not seen.limited and seen.holds(now)

    async def _hit(self, reader: Reader, turn: Turn, now: datetime) -> LimitHit | None:
        async with reader.connection() as connection:
            if not await self._has_limits(connection, turn.scope.tenant, now):
                return None
            rules = (await policies_for(connection, turn.scope)).over(Rules())
            if not rules.limits:
                return None
            size = len(turn.to_bytes())
            hit = too_large(rules, size) or await used_up_before(connection, turn.scope, rules, now)
            if hit is None or await is_received(connection, turn.scope.owner, turn.turn_id):
                return None
            return hit

    async def _has_limits(self, connection: AsyncConnection[TupleRow], tenant: str, now: datetime) -> bool:
        seen = self._seen.get(tenant)
        if seen is not None and seen.holds(now):
            return seen.limited
        limited = await may_have_limits(connection, tenant)
        if len(self._seen) >= REMEMBERED_TENANTS:
            self._seen.clear()
        self._seen[tenant] = _Seen(at=now, limited=limited)
        return limited


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Whether a tenant had limits when it was looked at."""

    at: datetime
    limited: bool

    def holds(self, now: datetime) -> bool:
        return timedelta(0) <= now - self.at < REMEMBERED  # a clock may have been put back
