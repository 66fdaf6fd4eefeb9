"""What was spent of a budget of the day, and the turns that wait for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, dict_row
from psycopg.sql import SQL, Composed

from mnemolog.projections.db.fetch import fetch_rows, fetch_value
from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.costs.prices import ModelUsage, PriceTable
from mnemolog.schemas.policy import EffectivePolicy, Level, LimitHit
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.stored import WaitingTurn
from mnemolog.schemas.turn import Turn

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


class WaitingTurns(Store):
    """Reads the turns that wait for a budget."""

    QUERIES: ClassVar[Mapping[str, SQL | Composed]] = queries("waiting")

    async def due_turns(
        self, partitions: Sequence[int], now: datetime, *, after: WaitingTurn | None, limit: int
    ) -> list[WaitingTurn]:
        """Turns that may have room now, since their day is over or a policy was set since, the oldest first.

        Of these partitions of the log, and as the journal has them; those that it does not have are left out.
        """
        start: dict[str, Any] = {"published_at": None, "owner": "", "source_id": ""}
        if after is not None:
            start = {
                "published_at": after.published_at,
                "owner": after.turn.scope.owner,
                "source_id": after.turn.turn_id,
            }
        asked = {"partitions": list(partitions), "now": now, "limit": limit, **start}
        return [
            WaitingTurn(
                turn=Turn.model_validate_json(row["body"]), attempt=row["attempt"], published_at=row["published_at"]
            )
            for row in await self._rows("due", asked, make=dict_row, operation="waiting_turns")
        ]


async def count_waiting(connection: AsyncConnection[TupleRow]) -> int:
    """How many turns of all tenants wait."""
    return int(await fetch_value(connection, queries("waiting")["count"], {}))
