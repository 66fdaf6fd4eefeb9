"""What was spent of a budget of the day."""

from datetime import datetime
from decimal import Decimal
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.sql import queries
from mnemolog.schemas.costs.prices import ModelUsage, PriceTable
from mnemolog.schemas.policy import EffectivePolicy, Level, LimitHit
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

_SQL: Final = queries("costs")
_USAGE_OF_DAY: Final = _SQL["usage"].format(rows=_SQL["of_day"], scope=_SQL["of_one_scope"])


async def find_spent_budget(
    connection: AsyncConnection[TupleRow], scope: Scope, rules: EffectivePolicy, day: datetime, prices: PriceTable
) -> LimitHit | None:
    """The first `cost_per_day` that is spent on the day that begins at `day`, by the commits in the tables.

    One round trip for each level with such a limit. What has no price counts nothing.
    """
    for level, limits in rules.limits.items():
        if limits.cost_per_day is None:
            continue
        spent = await _spent(connection, level, scope, day, prices)
        if spent >= limits.cost_per_day:
            return LimitHit(name="cost_per_day", level=level, count=float(spent), limit=float(limits.cost_per_day))
    return None


async def _spent(
    connection: AsyncConnection[TupleRow], level: Level, scope: Scope, day: datetime, prices: PriceTable
) -> Decimal:
    named = scope.columns if level == "scope" else {**dict.fromkeys(SCOPE_FIELDS, ""), "tenant": scope.tenant}
    usages = await fetch_rows(connection, ModelUsage, _USAGE_OF_DAY, {**named, "day": day.date()})
    amounts = map(prices.amount, usages)
    return sum((amount for amount in amounts if amount is not None), Decimal(0))
