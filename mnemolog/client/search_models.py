"""Models that a search uses: the embedder of its question, and the models that reorder its hits or reword it."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from mnemolog.client.metrics import QUERY_VECTORS, SearchPhase, search_phase
from mnemolog.client.search import RERANKED
from mnemolog.common.logs import get_logger
from mnemolog.projections.search.search import Hit
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.factory import build_embedder, build_reranker, build_variants
from mnemolog.streams.llm.ports import Embedder, ProviderConfigurationError, ProviderError
from mnemolog.streams.llm.rerank import QuestionVariants, Reranker
from mnemolog.streams.settings import StreamsSettings

M = TypeVar("M", bound=Embedder | Reranker | QuestionVariants)
R = TypeVar("R")
MAX_VECTORS: Final = 1000
"""Vectors of questions that are kept: with 1536 dimensions they take 3 MB."""
MAX_EMBEDDED: Final = 8000
"""Characters of a question that are embedded: models read fewer, and an embedder takes seconds for a megabyte."""
EMBEDDING_TIMEOUT_SECONDS: Final = 5.0
"""Seconds that a query waits for its vector; then it searches by words."""

log = get_logger(__name__)


class KeptModel(Generic[M]):
    """A model that is made at its first use, in a thread, and kept.

    A wrong configuration is raised at every use and not tried again; after another failure the next use tries again.
    """

    def __init__(self, build: Callable[[], M]) -> None:
        self._build = build
        self._made: asyncio.Task[M] | None = None

    async def get(self) -> M:
        """The model. A caller that stops waiting does not stop the loading: later callers get the model."""
        made = self._made
        if made is not None and made.done():
            error = asyncio.CancelledError() if made.cancelled() else made.exception()
            if error is not None and not isinstance(error, ProviderConfigurationError):
                made = None
        if made is None:
            made = self._made = asyncio.create_task(asyncio.to_thread(self._build))
        return await asyncio.shield(made)

    async def close(self) -> None:
        """Close the model, if it was made."""
        if self._made is None:
            return
        (model,) = await asyncio.gather(self._made, return_exceptions=True)
        if not isinstance(model, BaseException):
            await model.close()


class VectorCache:
    """The vectors of the questions that were asked last, each under its model; a lookup counts as asking."""

    def __init__(self, max_vectors: int = MAX_VECTORS) -> None:
        self._max_vectors = max_vectors
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()

    def get(self, model: str, text: str) -> Vector | None:
        """The vector that was put for the text; counted as a hit or a miss."""
        vector = self._vectors.get(key := _key(model, text))
        QUERY_VECTORS.labels(outcome="miss" if vector is None else "hit").inc()
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, model: str, text: str, vector: Vector) -> None:
        self._vectors[_key(model, text)] = vector
        if len(self._vectors) > self._max_vectors:
            self._vectors.popitem(last=False)


def _key(model: str, text: str) -> bytes:
    """A digest: a text may be long, and may be one that no file should hold."""
    return hashlib.sha256(f"{model}\0{text}".encode("utf-8", "surrogatepass")).digest()


class SearchModels:
    """Asks an embedder, a reranker and a model for wordings, each made at its first use and kept, as the last vectors.

    A model that is missing, away, late or wrong raises nothing: the search goes on without it, and a notice says why.
    """

    def __init__(self, settings: StreamsSettings, embedder: Callable[[], Embedder] | None = None) -> None:
        self._settings = settings
        self._embedder: KeptModel[Embedder] = KeptModel(embedder or (lambda: build_embedder(settings)))
        self._embedding_timeout = EMBEDDING_TIMEOUT_SECONDS
        self._vectors = VectorCache()
        self._warned = False
        self._reranker = KeptModel(lambda: build_reranker(settings))
        self._variants = KeptModel(lambda: build_variants(settings))
        self._timeout_seconds = settings.search_model_timeout

    async def embed(self, *texts: str) -> tuple[tuple[Vector, ...], str | None]:
        """The vectors of a query's texts, in one call; those that are known, and a notice, where the others fail.

        They are of the configured embedder; one that is missing or away raises nothing.
        """
        known: dict[str, Vector] = {}
        texts = tuple(text.strip()[:MAX_EMBEDDED] for text in texts)
        try:
            embedder = await self._embedder.get()  # its time is not counted against the query
            found = {text: self._vectors.get(embedder.model, text) for text in dict.fromkeys(texts)}
            known = {text: vector for text, vector in found.items() if vector is not None}
            missing = [text for text in found if text not in known]
            async with asyncio.timeout(self._embedding_timeout):
                embedded = (await embedder.embed(missing)).vectors if missing else ()
        except TimeoutError:
            reason = f"the embedder did not answer within {self._embedding_timeout:g} s"
        except ProviderError as error:
            reason = str(error)
        else:
            for text, vector in zip(missing, embedded, strict=True):
                self._vectors.put(embedder.model, text, vector)
                known[text] = vector
            return tuple(known[text] for text in texts), None
        if not self._warned:
            log.warning("search_without_vectors", reason=reason)
            self._warned = True
        return tuple(known[text] for text in texts if text in known), reason

    def floor_for(self, vector: Vector) -> float:
        """The similarity from which a search shows facts that have no word in common with the query."""
        from mnemolog.streams.stages.effective_settings import search_floor  # noqa: PLC0415 - only a search loads it

        return search_floor(vector.model, self._settings.search_threshold)

    async def rerank(self, question: str, hits: tuple[Hit, ...]) -> tuple[tuple[Hit, ...], str | None]:
        """The first hits in the order of the model, the others behind them; or as they are with a notice."""
        if not hits:
            return hits, None
        texts = [hit.fact.text for hit in hits[:RERANKED]]
        found, reason = await self._ask("rerank", self._reranker, lambda model: model.rerank(question, texts))
        if found is None:
            return hits, f"not reranked: {reason}"
        return (*(hits[index] for index in found), *hits[RERANKED:]), None

    async def wordings(self, question: str, count: int) -> tuple[tuple[str, ...], str | None]:
        """At most `count` other wordings of the question, or none with a notice."""
        if not count:
            return (), None
        found, reason = await self._ask("variants", self._variants, lambda model: model.variants(question, count))
        return (found, None) if found is not None else ((), f"without other wordings: {reason}")

    async def close(self) -> None:
        await self._embedder.close()
        await self._reranker.close()
        await self._variants.close()

    async def _ask(
        self, phase: SearchPhase, kept: KeptModel[M], call: Callable[[M], Awaitable[R]]
    ) -> tuple[R | None, str]:
        try:
            with search_phase(phase):
                async with asyncio.timeout(self._timeout_seconds):
                    return await call(await kept.get()), ""
        except TimeoutError:
            reason = f"the model did not answer within {self._timeout_seconds:g} s"
        except ProviderError as error:
            reason = str(error)
        log.warning("search_without_model", phase=phase, reason=reason)
        return None, reason
