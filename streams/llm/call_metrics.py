"""Counts the calls of models: their time, their tokens and their money."""

from datetime import UTC, datetime
from time import perf_counter

from mnemolog.schemas.costs.prices import ModelUsage, PriceTable
from mnemolog.streams import metrics
from mnemolog.streams.llm.ports import Usage


def record_call(purpose: str, model: str, started: float, usage: Usage, *, turns: int = 1) -> float:
    """Count a call that asks about so many turns; gives its milliseconds."""
    seconds = perf_counter() - started
    if purpose == "extract":
        metrics.CALL_TURNS.observe(turns)
    metrics.MODEL_CALLS.labels(purpose=purpose, model=model).inc()
    metrics.MODEL_SECONDS.labels(purpose=purpose, model=model).observe(seconds)
    for direction, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
        metrics.MODEL_TOKENS.labels(purpose=purpose, model=model, direction=direction).inc(tokens)
    if usage.cached_tokens is not None:
        fresh = usage.input_tokens - usage.cached_tokens
        for result, tokens in (("cached", usage.cached_tokens), ("fresh", fresh)):
            metrics.PROMPT_TOKENS.labels(purpose=purpose, model=model, result=result).inc(tokens)
    return round(seconds * 1000, 3)


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
