"""Money for tokens: which price counts, and that what is not known is never 0."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from mnemolog.schemas.costs import NO_PRICES, Cost, ModelPrice, ModelUsage, PriceTable, usages_of
from mnemolog.schemas.provenance import Step

DAY = date(2026, 3, 1)


def price(model: str, **fields: Any) -> ModelPrice:
    return ModelPrice.model_validate({"model": model, **fields})


def usage(model: str = "m1", day: date = DAY, **tokens: int) -> ModelUsage:
    return ModelUsage(model=model, day=day, **tokens)


def test_tokens_cost_what_the_table_says_without_rounding_errors() -> None:
    table = PriceTable((price("m1", input="0.4", cached_input="0.1", output="1.6"),))
    used = usage(input_tokens=1_000, cached_tokens=600, output_tokens=50)
    assert table.cost([used]) == Cost(amount="0.0003", known="0.0003")
    assert table.cost([used] * 3).amount == "0.0009"
    assert table.cost([usage(input_tokens=1)]).amount == "0.0000004"
    assert str(table.cost([])) == "0 USD"


def test_cached_tokens_cost_as_much_as_others_where_they_have_no_price_of_their_own() -> None:
    table = PriceTable((price("m1", input=1, output=1),))
    assert table.cost([usage(input_tokens=1_000_000, cached_tokens=900_000)]).amount == "1"


def test_a_model_without_a_price_is_unknown_and_the_rest_is_the_least() -> None:
    table = PriceTable((price("m1", input=1, output=2),), "EUR")
    both = table.cost([usage(input_tokens=1_000_000), usage("m2", input_tokens=1)])
    assert both == Cost(amount=None, known="1", currency="EUR", unknown=("m2",))
    assert str(both) == "at least 1 EUR, unknown price of m2"
    assert str(table.cost([usage("m2", output_tokens=1)])) == "unknown price of m2"


@pytest.mark.parametrize(
    ("used", "table"),
    [
        (usage(output_tokens=1), PriceTable((price("m1", input=1),))),
        (usage(uncounted=1), PriceTable((price("m1", input=1, output=1),))),
        (usage(uncounted=1), NO_PRICES),
    ],
    ids=["a reply without a price", "a server that counts no tokens", "no table"],
)
def test_what_cannot_be_computed_is_unknown(used: ModelUsage, table: PriceTable) -> None:
    assert table.cost([used]).amount is None


def test_the_first_price_that_matches_and_has_begun_counts() -> None:
    newer = ModelPrice(model="gpt-*-mini*", input=Decimal(2), since=date(2026, 3, 1))
    table = PriceTable((newer, price("gpt-*", input=1), price("*", input=9)))
    asked = {
        ("gpt-4.1-mini-2025", date(2026, 3, 1)): 2,
        ("gpt-4.1-mini-2025", date(2026, 2, 28)): 1,
        ("gpt-4.1", date(2026, 3, 1)): 1,
        ("Gpt-4.1", date(2026, 3, 1)): 9,
    }
    for (model, day), expected in asked.items():
        found = table.price_of(model, day)
        assert found is not None
        assert found.input == expected


def test_models_of_the_worker_itself_cost_nothing() -> None:
    took = [usage("rules-2", uncounted=1), usage("all-MiniLM-L6-v2-int8", input_tokens=20)]
    assert NO_PRICES.cost(took) == Cost(amount="0")


def test_steps_that_asked_no_model_took_nothing() -> None:
    steps = [
        Step(stage="match", milliseconds=1),
        Step(stage="resolve", milliseconds=1, model="m1"),
        Step(stage="extract", milliseconds=1, model="m1", llm_calls=1),
        Step(stage="extract", milliseconds=1, model="m1", llm_calls=1, input_tokens=5, cached_tokens=7),
    ]
    assert list(usages_of(steps, DAY)) == [usage(uncounted=1), usage(input_tokens=5, cached_tokens=5)]


@pytest.mark.parametrize("fields", [{"input": "-1"}, {"input": "nan"}, {"input": "1", "model": ""}, {}])
def test_a_price_that_means_nothing_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        ModelPrice.model_validate({"model": "m1", **fields})


def test_shares_are_averages() -> None:
    assert Cost(amount="1", known="1").share(1000, 3) == Cost(amount="333.333333333", known="333.333333333")
