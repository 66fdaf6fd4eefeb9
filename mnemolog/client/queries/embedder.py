"""The vector of a search query, or the reason why there is none: then the search goes by words alone."""

import asyncio
from typing import Final

from mnemolog.client.queries.kept_model import KeptModel
from mnemolog.client.queries.vector_cache import VectorCache
from mnemolog.projections.logs import get_logger
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.errors import ProviderError
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.settings import StreamsSettings

log = get_logger(__name__)
EMBEDDING_TIMEOUT_SECONDS: Final = 5.0
"""Seconds that a query waits for its vector; then it searches by words."""


MAX_EMBEDDED: Final = 8000
"""Characters of a question that are embedded: models read fewer, and an embedder takes seconds for a megabyte."""


class QueryEmbedder:
    """Embeds queries with the configured embedder, made at the first query and kept. The last vectors are kept too."""

    def __init__(self, settings: StreamsSettings, *, timeout_seconds: float = EMBEDDING_TIMEOUT_SECONDS) -> None:
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._embedder: KeptModel[Embedder] = KeptModel(lambda: _build_embedder(settings))
        self._warned = False
        self._vectors = VectorCache()

    async def embed(self, *texts: str) -> tuple[tuple[Vector, ...], str | None]:
        """The vectors of a query's texts, in one call; those that are known, and a notice, where the others fail.

        An embedder that is missing or away raises nothing.
        """
        known: dict[str, Vector] = {}
        texts = tuple(text.strip()[:MAX_EMBEDDED] for text in texts)
        try:
            embedder = await self._embedder.get()  # its time is not counted against the query
            found = {text: self._vectors.get(embedder.model, text) for text in dict.fromkeys(texts)}
            known = {text: vector for text, vector in found.items() if vector is not None}
            missing = [text for text in found if text not in known]
            async with asyncio.timeout(self._timeout_seconds):
                embedded = (await embedder.embed(missing)).vectors if missing else ()
        except TimeoutError:
            reason = f"the embedder did not answer within {self._timeout_seconds:g} s"
        except ProviderError as error:
            reason = str(error)
        else:
            for text, vector in zip(missing, embedded, strict=True):
                self._vectors.put(embedder.model, text, vector)
                known[text] = vector
            return tuple(known[text] for text in texts), None
        return tuple(known[text] for text in texts if text in known), self._without_vector(reason)

    def floor_for(self, vector: Vector) -> float:
        """The similarity from which a search shows facts that have no word in common with the query."""
        from mnemolog.streams.runtime.effective_settings import search_floor  # noqa: PLC0415 - only a search loads it

        return search_floor(vector.model, self._settings.search_threshold)

    async def close(self) -> None:
        await self._embedder.close()

    def _without_vector(self, reason: str) -> str:
        if not self._warned:
            log.warning("search_without_vectors", reason=reason)
            self._warned = True
        return reason


def _build_embedder(settings: StreamsSettings) -> Embedder:
    from mnemolog.streams.llm.factory import build_embedder  # noqa: PLC0415 - only a search loads it

    return build_embedder(settings)
