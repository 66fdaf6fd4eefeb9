"""Prices of models by the names of models, and what tokens cost by them. An unknown price is unknown, and never 0."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Final

from pydantic import Field

from mnemolog.schemas.base import MAX_MODEL_NAME, Record
from mnemolog.schemas.provenance import Step

Money = Annotated[Decimal, Field(ge=0, max_digits=24)]
MoneyText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$", max_length=40)]
"""Money in an answer: JSON readers round numbers with a point."""
DEFAULT_CURRENCY: Final = "USD"
_PER: Final = 1_000_000
_PLACES: Final = Decimal("1e-9")
_WIDE: Final = Context(prec=60)


class ModelPrice(Record):
    """Money for a million tokens of the models whose name matches `model`, with `*` for any letters.

    Without `cached_input`, tokens that the server had in its cache cost as much as others; without `output` the price
    of a reply is unknown. It holds for turns that were published on the day `since` (UTC) or later.
    """

    model: Annotated[str, Field(min_length=1, max_length=MAX_MODEL_NAME)]
    input: Money
    cached_input: Money | None = None
    output: Money | None = None
    since: date | None = None


LOCAL_MODELS: Final = tuple(
    ModelPrice.model_construct(model=name, input=Decimal(0)) for name in ("rules-*", "all-MiniLM-L6-v2-int8")
)
"""Models that run in the worker itself: nobody is paid for their tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """The tokens that one model took on a day. `uncounted` are the calls whose tokens its server did not count."""

    model: str
    day: date
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What tokens cost, in `currency`, as decimal digits. `amount` is None where the share of a model is unknown.

    `known` is the part that is known, so it is the least that it can be. `unknown` are the models that have no price,
    or whose server counts no tokens.
    """

    amount: MoneyText | None = "0"
    known: MoneyText = "0"
    currency: str = DEFAULT_CURRENCY
    unknown: tuple[str, ...] = ()

    def share(self, part: int, whole: int) -> "Cost":
        """So much of it, where `amount` is known."""
        if self.amount is None:
            return self
        amount = money_text(Decimal(self.amount) * part / whole)
        return Cost(amount=amount, known=amount, currency=self.currency)

    def __str__(self) -> str:
        if self.amount is not None:
            return f"{self.amount} {self.currency}"
        names = ", ".join(self.unknown)
        least = f"at least {self.known} {self.currency}, " if self.known != "0" else ""
        return f"{least}unknown price of {names}"


NO_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class PriceTable:
    """The first price that matches a model and has begun is its price; models of the worker itself cost nothing."""

    prices: tuple[ModelPrice, ...] = ()
    currency: str = DEFAULT_CURRENCY

    def price_of(self, model: str, day: date) -> ModelPrice | None:
        """The price of a model for turns of a day; None where it has none."""
        matching = (one for one in (*self.prices, *LOCAL_MODELS) if fnmatchcase(model, one.model))
        return next((one for one in matching if one.since is None or one.since <= day), None)

    def cost(self, usages: Iterable[ModelUsage]) -> Cost:
        amounts = [(usage.model, self.amount(usage)) for usage in usages]
        known = money_text(sum((amount for _, amount in amounts if amount is not None), Decimal(0)))
        unknown = tuple(sorted({model for model, amount in amounts if amount is None}))
        return Cost(amount=None if unknown else known, known=known, currency=self.currency, unknown=unknown)

    def amount(self, usage: ModelUsage) -> Decimal | None:
        """The money for what one model took; None where that is unknown."""
        price = self.price_of(usage.model, usage.day)
        if price is None or (price.output is None and price.input and usage.output_tokens):
            return None
        if usage.uncounted and (price.input or price.output):
            return None
        cached = price.input if price.cached_input is None else price.cached_input
        fresh_tokens = usage.input_tokens - usage.cached_tokens
        parts = fresh_tokens * price.input + usage.cached_tokens * cached + usage.output_tokens * (price.output or 0)
        return Decimal(parts) / _PER


NO_PRICES: Final = PriceTable()
"""Knows the models of the worker itself alone."""


def usages_of(steps: Iterable[Step], day: date) -> Iterator[ModelUsage]:
    """What the steps of a turn took, where they asked a model."""
    for step in steps:
        asked = bool(step.llm_calls or step.embedding_calls)
        if step.model is not None and (asked or step.input_tokens or step.output_tokens):
            yield ModelUsage(
                model=step.model,
                day=day,
                input_tokens=step.input_tokens,
                cached_tokens=min(step.cached_tokens or 0, step.input_tokens),
                output_tokens=step.output_tokens,
                uncounted=int(asked and not step.input_tokens and not step.output_tokens),
            )


def money_text(amount: Decimal) -> MoneyText:
    """The digits of an amount, to a billionth: without an exponent, and without zeros at the end."""
    text = f"{amount.quantize(_PLACES, context=_WIDE):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
