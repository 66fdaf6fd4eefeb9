"""The dashboard's row about the parts of a search: what takes its time, and what finds its hits."""

from typing import Final

from scripts.panel_model import Panel, Row
from scripts.promql import quantile, rate, share_of_each

_HITS: Final = "mnemolog_client_search_hits_total"
_VECTORS: Final = "mnemolog_client_query_vectors_total"

SEARCH_PHASES: Final = Row(
    title="Parts of a search",
    panels=(
        Panel(
            title="Parts of a search, p95",
            description="The vector of the question, other wordings from a model, the statement, and the order that a "
            "model gives; of applications that export their registry to this Prometheus.",
            unit="s",
            queries={"{{phase}}": quantile(0.95, "mnemolog_client_search_seconds", "phase")},
        ),
        Panel(
            title="Hits by what found them",
            description="The share of hits with a word in common, with a vector near enough, or both. Words and both "
            "are the lexical hit rate, vector and both the vector hit rate.",
            unit="percentunit",
            queries={"{{found_by}}": share_of_each(rate(_HITS, "found_by"), rate(_HITS))},
        ),
        Panel(
            title="Vectors of questions",
            description="Hits need no embedder: the same question was asked before.",
            unit="cps",
            queries={"{{outcome}}": rate(_VECTORS, "outcome")},
        ),
    ),
)
