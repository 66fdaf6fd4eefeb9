"""The metrics of the client: they are in the registry of the application's process, which may serve them, or not.

The application exports them as its other metrics, with `prometheus_client.start_http_server` for example; the client
starts no server.
"""

from contextlib import AbstractContextManager
from typing import Final, Literal

from mnemolog.common.metric_catalogue import SECONDS_BUCKETS, MetricCatalogue

CATALOGUE: Final = MetricCatalogue()
QUERY_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_client_query_seconds",
    "time of a call of the client that reads, as the application waits for it: embedding of the query, waiting for a "
    "connection and Postgres included; outcome is ok or error",
    labels=("operation", "outcome"),
)
CONTEXT_TOKENS: Final = CATALOGUE.histogram(
    "mnemolog_client_context_tokens",
    "tokens of a context for a prompt, counted by the model's tokenizer or estimated; 0 for an empty one",
    unit="tokens",
    buckets=(0, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800),
)
CONTEXT_LEFT_OUT: Final = CATALOGUE.counter(
    "mnemolog_client_context_left_out",
    "facts that a context has left out: budget for want of room, doubtful where no doubtful ones were wanted",
    unit="facts",
    labels=("reason",),
)

SearchPhase = Literal["embed", "variants", "event", "sql", "turns", "rerank"]
SEARCH_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_client_search_seconds",
    "time of a part of a search: embed is the vector of the question, variants its other wordings from a model, event "
    "when an event was that the question names, sql the statement that finds facts, turns the one that finds turns, "
    "these three with the wait for a connection, rerank the order that a model gives",
    labels=("phase",),
    buckets=(0.001, 0.0025, *SECONDS_BUCKETS),
)
QUERY_VECTORS: Final = CATALOGUE.counter(
    "mnemolog_client_query_vectors",
    "vectors of questions that a search needed; outcome is hit where the same question was asked before, or miss",
    labels=("outcome",),
)
SEARCH_HITS: Final = CATALOGUE.counter(
    "mnemolog_client_search_hits",
    "hits of searches by what found them: words in common, a vector at the threshold or nearer, both, or other (names "
    "alone); the share of words and both is the lexical hit rate, that of vector and both the vector hit rate",
    labels=("found_by",),
)


def search_phase(phase: SearchPhase) -> AbstractContextManager[object]:
    """Measure a part of a search, also where it fails."""
    return SEARCH_SECONDS.labels(phase=phase).time()
