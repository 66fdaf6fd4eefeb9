"""Counts what calls of models cost, for the metrics."""

from datetime import UTC, datetime

from mnemolog.schemas.costs.prices import ModelUsage, PriceTable
from mnemolog.streams import metrics
from mnemolog.streams.llm.ports import Usage


def count_cost(prices: PriceTable, purpose: str, model: str, usage: Usage) -> None:
    """Count one call: its money, or that this is unknown."""
    took = ModelUsage(
        model=model,
        day=datetime.now(UTC).date(),
        input_tokens=usage.input_tokens,
        cached_tokens=min(usage.cached_tokens or 0, usage.input_tokens),
        output_tokens=usage.output_tokens,
        uncounted=int(not usage.input_tokens and not usage.output_tokens),
    )
    amount = prices.cost([took]).amount
    if amount is None:
        metrics.UNPRICED_CALLS.labels(purpose=purpose, model=model).inc()
    else:
        metrics.MODEL_COST.labels(purpose=purpose, model=model).inc(float(amount))
