"""The searches that are compared, and what each finds for the questions of the dialogues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from mnemolog.projections.db.pools import Pool
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.search.search import search
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.minilm_embedder import MODEL_NAME
from mnemolog.streams.runtime.effective_settings import search_floor
from mnemolog.streams.text.asked_period import Period
from tests.recall.measures import DEEPEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One way to search, by its name in the table: with these options, and without the vector by words alone."""

    name: str
    by_vector: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def parsed(self) -> SearchOptions:
        """The options, with as many hits as are looked at. There is no threshold: every candidate may be a hit."""
        return SearchOptions.read({"top_k": DEEPEST, "threshold": 0.0, **self.options})


SIGNALS_OFF: Final = {"names": 0.0, "recency": 0.0, "times": 0.0, "neighbours": 0.0}
NO_PRIORS: Final = {"importance": 0.0, "confidence": 0.0}


def _weighted(name: str, **weights: float) -> Variation:
    return Variation(name=name, options={"fusion": "weighted", "weights": weights})


def _rrf(name: str, k: int, **weights: float) -> Variation:
    return Variation(name=name, options={"fusion": "rrf", "rrf_k": k, "weights": weights})


BASELINE: Final = Variation(name="lexical", by_vector=False, options={"weights": SIGNALS_OFF})
DEFAULT: Final = Variation(name="as by default")
VARIATIONS: Final = (
    BASELINE,
    _weighted("vector", text=0.0, **SIGNALS_OFF),
    *(_rrf(f"hybrid, RRF, k = {k}", k, **SIGNALS_OFF) for k in (1, 5, 10, 20, 60)),
    _rrf("hybrid, RRF, k = 10, with names and times", 10),
    _weighted("hybrid, weighted, text .45, vector .45", **SIGNALS_OFF),
    _weighted("hybrid, weighted, text .30, vector .60", text=0.3, vector=0.6, **SIGNALS_OFF),
    _weighted("text .45, vector .45, names .2", **SIGNALS_OFF | {"names": 0.2}),
    _weighted("text .45, vector .45, names .2, times .1", recency=0.0),
    _weighted("the same with neighbours .2", recency=0.0, neighbours=0.2),
    _weighted("the same with neighbours .3", recency=0.0, neighbours=0.3),
    DEFAULT,
    _weighted("as by default, with neighbours .3", neighbours=0.3),
    Variation(name="as by default, without a limit per matter", options={"per_matter": 100}),
    Variation(name="as by default, half life 30 days", options={"half_life_days": 30.0}),
    _weighted("as by default, without priors", **NO_PRIORS),
    Variation(name="as by default, above the threshold", options={"threshold": search_floor(MODEL_NAME)}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question with its vector, whom it is asked about, when, and the time that it names."""

    text: str
    vector: Vector
    user_id: str
    at: datetime
    period: Period | None


async def sources_found(pool: Pool, questions: Sequence[AskedQuestion], variation: Variation) -> list[list[str]]:
    """The turns that brought the hits of each question, best first."""
    options = variation.parsed()
    async with pool.connection() as connection:
        found = [
            await search(
                connection,
                ScopeFilter(tenant="default", user_id=asked.user_id),
                asked.text,
                asked.vector if variation.by_vector else None,
                options.model_copy(update={"period": asked.period}),
                at=asked.at,
            )
            for asked in questions
        ]
    return [[hit.fact.source_id for hit in findings] for findings in found]
