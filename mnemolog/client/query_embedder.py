"""A query becomes a vector where the embedder answers in time; otherwise its words alone search, and it is said so."""

import asyncio
from dataclasses import dataclass
from typing import Final

from mnemolog.projections.queries.search import Hit, SearchMode
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.errors import ProviderError
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.settings import StreamsSettings

EMBEDDING_TIMEOUT_SECONDS: Final = 5.0
"""How long a query waits for its vector before its words must do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, best first. `mode` is lexical where the query could not be embedded; `notice` says why."""

    hits: tuple[Hit, ...]
    mode: SearchMode
    notice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedQuery:
    """The vector of a query, or why there is none."""

    vector: Vector | None = None
    notice: str | None = None


class QueryEmbedder:
    """Embeds queries with the configured embedder, which is made at the first query and kept."""

    def __init__(self, settings: StreamsSettings, *, timeout_seconds: float = EMBEDDING_TIMEOUT_SECONDS) -> None:
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._embedder: Embedder | None = None
        self._build_lock = asyncio.Lock()

    async def embed(self, text: str) -> EmbeddedQuery:
        """Embed one query; never raises for an embedder that is missing, away or unwilling."""
        try:
            embedder = await self._get_embedder()
            async with asyncio.timeout(self._timeout_seconds):
                embeddings = await embedder.embed([text])
        except TimeoutError:
            return EmbeddedQuery(
                notice=f"by words only: no vector within {self._timeout_seconds:g} s, is the model reachable?"
            )
        except ProviderError as error:
            return EmbeddedQuery(notice=f"by words only: {error}")
        return EmbeddedQuery(vector=embeddings.vectors[0])

    async def close(self) -> None:
        if self._embedder is not None:
            await self._embedder.close()

    async def _get_embedder(self) -> Embedder:
        """The embedder; a model is loaded once, in a thread, and its time is not counted against the query."""
        async with self._build_lock:
            if self._embedder is None:
                self._embedder = await asyncio.to_thread(_build_embedder, self._settings)
        return self._embedder


def _build_embedder(settings: StreamsSettings) -> Embedder:
    # Only here: who does not search does not wait for the libraries.
    from mnemolog.streams.llm.factory import build_embedder  # noqa: PLC0415

    return build_embedder(settings)
