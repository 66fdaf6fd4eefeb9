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


def _weighted(name: str, **weights: float) -> Variation:
    return Variation(name=name, options={"fusion": "weighted", "weights": weights})


NO_PRIORS: Final = {"importance": 0.0, "confidence": 0.0}
BASELINE: Final = Variation(name="lexical", by_vector=False)
DEFAULT: Final = Variation(name="hybrid as by default")
VARIATIONS: Final = (
    BASELINE,
    Variation(name="vector", options={"weights": {"text": 0.0}}),
    DEFAULT,
    *(Variation(name=f"RRF, k = {k}", options={"fusion": "rrf", "rrf_k": k}) for k in (1, 5, 10, 20, 60)),
    Variation(name="RRF, k = 5, names", options={"fusion": "rrf", "rrf_k": 5, "weights": {"names": 1.0}}),
    _weighted("weighted, text .45, vector .45", recency=0.0),
    _weighted("weighted, text .30, vector .60", text=0.3, vector=0.6, recency=0.0),
    _weighted("weighted, with recency .10", recency=0.1),
    _weighted("weighted, without priors", recency=0.0, **NO_PRIORS),
    _weighted("weighted, with names .20", recency=0.0, names=0.2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question with its vector, whom it is asked about, and when."""

    text: str
    vector: Vector
    user_id: str
    at: datetime


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
                options,
                at=asked.at,
            )
            for asked in questions
        ]
    return [[hit.fact.source_id for hit in findings] for findings in found]
