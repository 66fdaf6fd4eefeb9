"""The metrics of money: calls with a price, and calls without one."""

from decimal import Decimal

from prometheus_client import REGISTRY

from mnemolog.schemas.costs import ModelPrice, PriceTable
from mnemolog.streams.llm.calls import count_cost
from mnemolog.streams.llm.ports import Usage

PRICES = PriceTable((ModelPrice(model="priced-*", input=Decimal(2), cached_input=Decimal(1), output=Decimal(8)),))


def counted(name: str, model: str) -> float:
    return REGISTRY.get_sample_value(f"mnemolog_{name}_total", {"purpose": "extract", "model": model}) or 0.0


def test_money_of_a_call_is_counted() -> None:
    count_cost(PRICES, "extract", "priced-1", Usage(input_tokens=100_000, output_tokens=10_000, cached_tokens=50_000))
    assert counted("model_cost", "priced-1") == 0.23
    assert counted("model_unpriced_calls", "priced-1") == 0


def test_a_call_without_a_price_or_without_tokens_is_counted_as_unknown() -> None:
    count_cost(PRICES, "extract", "other", Usage(input_tokens=5))
    count_cost(PRICES, "extract", "priced-2", Usage())
    assert [counted("model_unpriced_calls", model) for model in ("other", "priced-2")] == [1, 1]
    assert [counted("model_cost", model) for model in ("other", "priced-2")] == [0, 0]
