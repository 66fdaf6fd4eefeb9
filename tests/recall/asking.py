"""What each way to search finds for the questions of the dialogues."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, zip_longest

from mnemolog.client.search import joined_words, mean_vector
from mnemolog.client.search_models import RERANKED, SearchModels
from mnemolog.projections.database import Pool
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.projections.search.turn_search import search_turns
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.text.times import asked_period
from tests.recall.diversity import diversified
from tests.recall.measures import DEEPEST
from tests.recall.variations import Variation


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question, whom it is asked about, and when."""

    text: str
    user_id: str
    at: datetime


class Asker:
    """Searches in tables that hold the dialogues."""

    def __init__(self, pool: Pool, embedder: Embedder, models: SearchModels) -> None:
        self._pool = pool
        self._embedder = embedder
        self._models = models

    async def sources_found(self, questions: Sequence[AskedQuestion], variation: Variation) -> list[list[str]]:
        """The turns that brought the hits of each question, best first."""
        return [await self._sources(asked, variation) for asked in questions]

    async def _sources(self, asked: AskedQuestion, variation: Variation) -> list[str]:
        wordings, fault = await self._models.wordings(asked.text, variation.variants)
        _refuse(fault)
        words = joined_words(asked.text, wordings)
        options = variation.parsed().model_copy(update={"period": asked_period(asked.text, asked.at)})
        facts = await self._facts(asked, words, options, variation, wordings) if "facts" in variation.include else []
        turns = await self._turns(asked, words, options) if "turns" in variation.include else []
        return list(_in_turn(facts, turns))[:DEEPEST]

    async def _facts(
        self,
        asked: AskedQuestion,
        words: str,
        options: SearchOptions,
        variation: Variation,
        wordings: Sequence[str],
    ) -> list[str]:
        vector = await self._vector(asked.text, *wordings) if variation.by_vector else None
        if variation.rerank or variation.diversity:
            options = options.model_copy(update={"top_k": RERANKED})
        async with self._pool.connection() as connection:
            found = await search(connection, _scope(asked), words, vector, options, at=asked.at)
        hits = found.hits
        if variation.rerank:
            hits, fault = await self._models.rerank(asked.text, hits)
            _refuse(fault)
        if variation.diversity and hits:
            vectors = (await self._embedder.embed([hit.fact.text for hit in hits])).vectors
            scores = [hit.score.total for hit in hits]
            hits = tuple(diversified(hits, scores, vectors, variation.diversity, DEEPEST))
        return [hit.fact.source_id for hit in hits]

    async def _turns(self, asked: AskedQuestion, words: str, options: SearchOptions) -> list[str]:
        async with self._pool.connection() as connection:
            found = await search_turns(connection, _scope(asked), words, options, at=asked.at)
        return [hit.turn_id for hit in found.turns]

    async def _vector(self, *texts: str) -> Vector:
        return mean_vector((await self._embedder.embed(texts)).vectors)


def _scope(asked: AskedQuestion) -> ScopeFilter:
    return ScopeFilter(tenant="default", user_id=asked.user_id)


def _in_turn(facts: Sequence[str], turns: Sequence[str]) -> Iterator[str]:
    """The best fact, the best turn, the second fact and so on."""
    return (one for one in chain.from_iterable(zip_longest(facts, turns)) if one is not None)


def _refuse(fault: str | None) -> None:
    """A search goes on without its model; figures of it may not."""
    if fault is not None:
        raise RuntimeError(fault)
