"""The searches that are compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mnemolog.client.search import Include
from mnemolog.projections.search.search import SearchOptions
from mnemolog.streams.llm.minilm_embedder import MODEL_NAME
from mnemolog.streams.stages.effective_settings import search_floor
from tests.recall.measures import DEEPEST
from tests.recall.stored import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One way to search, by its name in the table: with these options, and without the vector by words alone.

    A model may order the hits, or add other wordings of the question. Facts and turns that are both included take
    turns, beginning with the best fact. `kind` is what it is measured with, everything unless given.
    """

    name: str
    by_vector: bool = True
    include: tuple[Include, ...] = ("facts",)
    kind: Kind | None = None
    rerank: bool = False
    variants: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def parsed(self) -> SearchOptions:
        """The options, with as many hits as are looked at. There is no threshold: every candidate may be a hit."""
        return SearchOptions.read({"limit": DEEPEST, "threshold": 0.0, **self.options})


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
    _rrf("hybrid, RRF, k = 10, with names and times", 10, neighbours=0.0),
    _rrf("hybrid, RRF, k = 10, with names, times and neighbours .3", 10),
    _weighted("hybrid, weighted", **SIGNALS_OFF),
    _weighted("hybrid, weighted, text .30, vector .60", text=0.3, vector=0.6, **SIGNALS_OFF),
    _weighted("text .45, vector .45, names .2", **SIGNALS_OFF | {"names": 0.2}),
    _weighted("text .45, vector .45, names .2, times .1", recency=0.0, neighbours=0.0),
    _weighted("the same with neighbours .3", recency=0.0, neighbours=0.3),
    _weighted("the same with neighbours .6", recency=0.0),
    DEFAULT,
    _weighted("as by default, without neighbours", neighbours=0.0),
    _weighted("as by default, with neighbours .3", neighbours=0.3),
    Variation(name="as by default, without a limit per matter", options={"per_matter": 100}),
    Variation(name="as by default, half life 30 days", options={"half_life_days": 30.0}),
    _weighted("as by default, without priors", **NO_PRIORS),
    Variation(name="as by default, above the threshold", options={"threshold": search_floor(MODEL_NAME)}),
    Variation(name="facts as by default, and turns", include=("facts", "turns"), kind="facts"),
    Variation(name="turns alone", include=("turns",), kind="facts"),
    Variation(name="turns themselves, by words", include=("turns",), kind="turns", options={"weights": SIGNALS_OFF}),
    Variation(name="turns themselves, as by default", include=("turns",), kind="turns"),
)
RERANKED: Final = Variation(name="as by default, ordered by a model", rerank=True)
WITH_WORDINGS: Final = Variation(name="as by default, with 3 other wordings", variants=3)
