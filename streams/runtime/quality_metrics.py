"""Export figures of decision quality of the last 30 days as metrics: how often facts are overwritten, and wrongly."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog
from psycopg import OperationalError
from psycopg_pool import PoolTimeout

from mnemolog.projections import metrics
from mnemolog.projections.db.pools import Pool
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality

QUALITY_PERIOD: Final = timedelta(days=30)
UPDATE_SECONDS: Final = 30.0

log = structlog.get_logger(__name__)


async def export_quality_metrics(pool: Pool, now: Callable[[], datetime]) -> None:
    """Update the metrics every `UPDATE_SECONDS`; an unavailable Postgres is reported by the stages."""
    while True:
        try:
            await update_quality_metrics(pool, now())
        except (OperationalError, PoolTimeout) as error:
            log.warning("quality_metrics_unavailable", error=str(error))
        await asyncio.sleep(UPDATE_SECONDS)


async def update_quality_metrics(pool: Pool, at: datetime) -> None:
    """Show the figures of the 30 days before `at`, over all tenants."""
    async with pool.connection() as connection:
        _set_gauges(await decision_quality(connection, None, at - QUALITY_PERIOD, at))


def _set_gauges(quality: DecisionQuality) -> None:
    """Show the figures of the last 30 days, counted from the tables."""
    results = {how: sum(getattr(one, how) for one in quality.overwrites) for how in ("undone", "rejected", "corrected")}
    total = sum(one.overwrites for one in quality.overwrites)
    for result, number in {**results, "kept": total - sum(results.values())}.items():
        metrics.RECENT_OVERWRITES.labels(result=result).set(number)
    held = quality.held
    settled = {"confirmed": held.confirmed, "rejected": held.rejected, "overtaken": held.overtaken}
    for settlement, number in {**settled, "open": held.held - sum(settled.values())}.items():
        metrics.HELD_OVERWRITES.labels(settlement=settlement).set(number)
    metrics.PENDING.set(held.open)
    metrics.PENDING_OLDEST.set(held.oldest_seconds)
    metrics.PENDING_MEDIAN.set(held.median_seconds)
    metrics.UNRESOLVED.set(quality.unresolved)
