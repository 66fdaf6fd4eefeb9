"""The options of a search, and their defaults: the one place where these are changed."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, ValidationError, model_validator

from mnemolog.projections.queries.errors import QueryError
from mnemolog.schemas.base import Record, Timestamp
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.facts import OPEN_STATUSES, FactStatus
from mnemolog.schemas.filters.model import EVERYTHING, Filter, parse_filter

Fusion = Literal["rrf", "weighted"]
FUSIONS: Final = get_args(Fusion)
DEFAULT_TOP_K: Final = 20
MAX_TOP_K: Final = 100
DEFAULT_RRF_K: Final = 10
"""The constant of reciprocal rank fusion. On real dialogues 5 to 10 finds more than the customary 60."""
DEFAULT_PER_MATTER: Final = 3
MAX_STATES: Final = 7
MAX_NEIGHBOURS: Final = 10

Weight = Annotated[StrictFloat, Field(ge=0, le=1)]


class Weights(Record):
    """How much each signal counts, 0 to 1: 0 switches it off.

    `vector`, `text`, `names`, `recency` and `times` are summed; the fusion `weighted` divides them by
    their sum, so that a score is a number of 0 to about 1. `neighbours` is what a word of the question counts that a
    fact does not have, but what was said just before or after it, as a share of a word of its own. `importance` and
    `confidence` multiply the sum: with .05 the greatest importance counts 2.5 % more than the middle one, and the least
    2.5 % less.
    """

    vector: Weight
    text: Weight
    names: Weight
    recency: Weight
    times: Weight
    neighbours: Weight = 0.0
    importance: Weight = 0.05
    confidence: Weight = 0.05


DEFAULT_WEIGHTS: Final[Mapping[Fusion, Weights]] = MappingProxyType(
    {
        "rrf": Weights(vector=1.0, text=1.0, names=0.2, recency=0.0, times=0.2, neighbours=0.3),
        "weighted": Weights(vector=0.45, text=0.45, names=0.2, recency=0.1, times=0.1, neighbours=0.6),
    }
)
"""Measured on real dialogues (docs/decisions, record 12)."""
FIELD_WEIGHTS: Final = (1.0, 1.0, 1.0, 0.5)
"""What a word counts in the text of a fact, its search text, its key and value, and its excerpt.

The last one is measured (docs/decisions, record 12); nothing measured tells the others apart.
"""
_ADDED: Final = ("vector", "text", "names", "recency", "times")
DEFAULT_FUSION: Final[Fusion] = "weighted"
DEFAULT_HALF_LIFE_DAYS: Final = 365.0


def _as_states(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class SearchOptions(Record):
    """What a search may be told besides its question and its scope. It refuses what it does not know.

    `threshold` is the cosine from which a fact without a word in common is a hit: None for that of the embedding
    model. `filters` are conditions on facts. `state` names the statuses that are found; without it they are active
    and pending ones. `believed_at` and `true_at` ask for what was known then, and true then. `period` is a time
    that the question names, from its first instant up to, but not at, its last: what happened in it counts more,
    and with `only_period` nothing else is found. `ranks` asks for the rank of each hit by each signal, which the
    fusion `rrf` has anyway, and `explain` for them and for what was left out and why. `neighbours` is how many
    facts before and after each hit are given with it, of what was said within an hour in its scope. Of facts with
    one subject and key those beyond the best `per_matter` come after all others. `half_life_days` is the age at
    which the recency of a fact is a half.
    """

    top_k: Annotated[StrictInt, Field(ge=1, le=MAX_TOP_K)] = DEFAULT_TOP_K
    threshold: Annotated[StrictFloat, Field(ge=0, le=1)] | None = None
    filters: Annotated[Filter, BeforeValidator(parse_filter)] = EVERYTHING
    state: Annotated[
        tuple[FactStatus, ...] | None, Field(min_length=1, max_length=MAX_STATES), BeforeValidator(_as_states)
    ] = None
    believed_at: Timestamp | None = None
    true_at: Timestamp | None = None
    period: tuple[Timestamp, Timestamp] | None = None
    only_period: StrictBool = False
    fusion: Fusion = DEFAULT_FUSION
    neighbours: Annotated[StrictInt, Field(ge=0, le=MAX_NEIGHBOURS)] = 0
    per_matter: Annotated[StrictInt, Field(ge=1, le=MAX_TOP_K)] = DEFAULT_PER_MATTER
    explain: StrictBool = False
    ranks: StrictBool = False
    rrf_k: Annotated[StrictInt, Field(ge=1, le=1000)] = DEFAULT_RRF_K
    half_life_days: Annotated[StrictFloat, Field(ge=0.001, le=36_500)] = DEFAULT_HALF_LIFE_DAYS
    weights: Weights = DEFAULT_WEIGHTS[DEFAULT_FUSION]

    @model_validator(mode="before")
    @classmethod
    def _complete_weights(cls, given: Any) -> Any:
        """What is not said of the weights is as the fusion has it."""
        if not isinstance(given, Mapping):
            return given
        fusion, weights = given.get("fusion", DEFAULT_FUSION), given.get("weights") or {}
        if fusion not in FUSIONS or not isinstance(weights, Mapping):
            return given
        return {**given, "weights": {**DEFAULT_WEIGHTS[fusion].model_dump(), **weights}}

    @model_validator(mode="after")
    def _period_is_one(self) -> Self:
        if self.only_period and self.period is None:
            raise ValueError("only_period needs a period: from when, and up to when")
        if self.period and self.period[0] >= self.period[1]:
            raise ValueError("period must end after it begins")
        return self

    @property
    def is_ranked(self) -> bool:
        """Whether facts are ranked by each signal alone."""
        return self.ranks or self.explain or self.fusion == "rrf"

    @property
    def travels(self) -> bool:
        """Whether it asks for another time than now."""
        return self.believed_at is not None or self.true_at is not None

    @property
    def states(self) -> tuple[FactStatus, ...] | None:
        """The statuses that count; None where the time or the filter alone decides."""
        if self.state is not None:
            return self.state
        return None if self.travels or self.filters.asks_about_state else tuple(sorted(OPEN_STATUSES))

    @property
    def shares(self) -> dict[str, float]:
        """The weights as the statement takes them: those that `weighted` adds up as parts of 1."""
        weights = self.weights.model_dump()
        whole = sum(weights[name] for name in _ADDED) if self.fusion == "weighted" else 1.0
        return {name: weight / (whole or 1.0) if name in _ADDED else weight for name, weight in weights.items()}

    @property
    def selects(self) -> bool:
        """Whether it asks for other facts than all that are current."""
        return self.travels or self.only_period or self.state is not None or self.filters != EVERYTHING

    @property
    def narrows(self) -> bool:
        """Whether it asks about more than the best facts that the indexes of a large scope hold."""
        return self.selects or self.explain or self.neighbours > 0

    def times(self, now: datetime) -> tuple[datetime | None, datetime]:
        """When it was known (None for now) and when it was true. The one that is not given is the other one, or now."""
        if not self.travels:
            return None, now
        believed_at = self.believed_at or now
        return believed_at, self.true_at or believed_at

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Options from what a caller wrote. Raises `QueryError` that names the place of each fault."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise QueryError(describe_faults(error)) from error
