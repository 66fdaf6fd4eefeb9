"""Limits at the edge: a quick answer before a turn is published. The truth is told where the turn is decided."""

import asyncio
from datetime import datetime
from typing import Final

import structlog

from mnemolog.errors import LimitExceededError, ServerUnavailableError, SettingsError
from mnemolog.reading import Reader
from projections.limits import is_received, too_large, used_up_before
from projections.policies import policies_for
from schemas.policy import LimitHit, Rules
from schemas.turn import Turn

PATIENCE_SECONDS: Final = 1.0

_log = structlog.get_logger(__name__)


async def check_limits(reader: Reader, turn: Turn, now: datetime) -> None:
    """Raise `LimitExceededError` where a limit of the turn's scope or tenant is used up, or the turn is too large.

    Takes one round trip, two where limits are set. A turn that was published before is let through: its second copy
    does nothing. So is every turn while Postgres is away or not migrated yet, or has no answer within a second.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            hit = await _hit(reader, turn, now)
    except (ServerUnavailableError, SettingsError, TimeoutError) as error:
        _log.debug("limits_not_checked", turn_id=turn.turn_id, error=str(error) or type(error).__name__)
        return
    if hit is not None:
        raise LimitExceededError(turn.turn_id, hit)


async def _hit(reader: Reader, turn: Turn, now: datetime) -> LimitHit | None:
    async with reader.connection() as connection:
        rules = (await policies_for(connection, turn.scope)).over(Rules())
        if not rules.limits:
            return None
        size = len(turn.to_bytes())
        hit = too_large(rules, size) or await used_up_before(connection, turn.scope, rules, now)
        if hit is None or await is_received(connection, turn.scope.owner, turn.turn_id):
            return None
        return hit
