"""What models took and what that costs, by model, over whole days."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.fact_rows import ANY_OR_NONE, read_query
from mnemolog.schemas.costs.prices import NO_COST, Cost, ModelUsage, PriceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """The tokens that a model took, and the money for them; `cached_tokens` are a part of `input_tokens`."""

    model: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """Of the turns and commands published on the days from `first` to `last` (UTC), both included.

    `turns` are those that have ended, each once; `per_thousand_turns` is None where there is none, or where a price is
    unknown.
    """

    first: date | None = None
    last: date | None = None
    turns: int = 0
    total: Cost = NO_COST
    models: tuple[ModelCost, ...] = ()
    per_thousand_turns: Cost | None = field(init=False)

    def __post_init__(self) -> None:
        is_known = self.turns and self.total.amount is not None
        object.__setattr__(self, "per_thousand_turns", self.total.share(1000, self.turns) if is_known else None)


async def cost_figures(
    conn: AsyncConnection[TupleRow], ids: Mapping[str, str], since: datetime, until: datetime, prices: PriceTable
) -> CostFigures:
    """The figures of the scopes of `ids` for the days that an interval touches."""
    first = since.astimezone(UTC).date()
    last = max(first, (until.astimezone(UTC) - timedelta(microseconds=1)).date())
    asked = {**ids, "first": first, "last": last}
    is_whole_tenant = all(value == ANY_OR_NONE for name, value in ids.items() if name != "tenant")
    rows = {"rows": "of_tenants" if is_whole_tenant else "of_scopes"}
    usages = await fetch_rows(conn, ModelUsage, read_query("costs", "usage", scope=ids, row="u", parts=rows), asked)
    by_model: dict[str, list[ModelUsage]] = {}
    for usage in usages:
        by_model.setdefault(usage.model, []).append(usage)
    ((turns,),) = await (await conn.execute(read_query("costs", "turns", scope=ids, row="c"), asked)).fetchall()
    return CostFigures(
        first=first,
        last=last,
        turns=turns,
        total=prices.cost(usages),
        models=tuple(_model_cost(model, of_model, prices) for model, of_model in by_model.items()),
    )


def _model_cost(model: str, usages: list[ModelUsage], prices: PriceTable) -> ModelCost:
    return ModelCost(
        model=model,
        input_tokens=sum(usage.input_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost=prices.cost(usages),
    )
