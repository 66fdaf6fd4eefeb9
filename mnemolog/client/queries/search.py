"""The method of the client that searches."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Unpack

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.base import ClientBase, checked
from mnemolog.client.inputs.included import Included
from mnemolog.client.inputs.search_aids import SearchAids
from mnemolog.client.inputs.search_arguments import SearchArgs, search_options, search_scopes
from mnemolog.client.metrics import measured, search_phase
from mnemolog.client.queries.asked_periods import time_of_event, with_asked_period
from mnemolog.client.queries.hit_counts import count_hits
from mnemolog.client.queries.search_models import RERANKED
from mnemolog.client.queries.search_result import SearchResult, with_cut
from mnemolog.client.queries.wordings import joined_words, mean_vector
from mnemolog.projections.queries.errors import QueryError, check_unicode
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search import search as searches
from mnemolog.projections.search.hits import Findings
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.search.question import storable_question
from mnemolog.projections.search.scope_counts import count_facts
from mnemolog.projections.search.turn_hits import TurnFindings
from mnemolog.projections.search.turn_search import search_turns
from mnemolog.schemas.vector import Vector
from mnemolog.texts import NO_SELECTED, NO_TURN, no_hit_sentence


@measured
@checked(QueryError)
class SearchMixin(ClientBase):
    """Search in the tables. It needs no Kafka."""

    async def search(self, query: str, **arguments: Unpack[SearchArgs]) -> SearchResult:
        """The facts nearest to `query` in meaning and words, best first, each with the reasons for its place.

        `SearchArgs` says what may be asked besides: the scope, `top_k`, `threshold`, `filters`, `state`, times, several
        scopes at once, how signals are fused, and whether turns are included, which are `turns` of the result. `notice`
        of it says why there is no hit.
        Pending facts are found as well: `status` of the fact says so. The client needs the embedder that the stages
        have (`MNEMOLOG_EMBEDDING_PROVIDER` and `_MODEL`): vectors of another one find nothing by meaning. Without a
        vector the search goes by words; `mode` and `notice` of the result say so.
        """
        asked, aids = search_options(arguments), SearchAids.read(arguments)
        within, included = search_scopes(arguments, asked.filters), Included.read(arguments, asked.filters)
        check_unicode(query)
        question = storable_question(query)
        models = self._connections.search_models
        wordings, no_wordings = await models.wordings(query, aids.variants)
        words = joined_words(query, wordings)
        vector, no_vector = await self._embed(query, wordings) if included.facts else (None, None)
        event_time = partial(self._event_time, within, asked)
        asked, no_time = await with_asked_period(query, asked, aids.when, self._now(), event_time)
        turns = TurnFindings()
        if included.turns:
            with search_phase("turns"):
                statuses = included.turn_status
                turns = await self._query(search_turns, within, words, asked, at=self._now(), statuses=statuses)
        if asked.threshold is None and vector is not None:
            asked = asked.model_copy(update={"threshold": self._connections.query_embedder.floor_for(vector)})
        top_k = asked.top_k
        if aids.rerank:
            asked = asked.model_copy(update={"top_k": max(top_k, RERANKED)})
        found, no_hit = Findings(), None
        if included.facts:
            with search_phase("sql"):
                found, no_hit = await self._query(_search, within, words, vector, asked, at=self._now())
        hits, no_order = await models.rerank(question, found.hits) if aids.rerank else (found.hits, None)
        count_hits(hits[:top_k], asked.threshold or 0.0)
        no_turn = NO_TURN if included.turns and not turns.turns else None
        notices = (no_wordings, no_vector, no_time, no_order, no_hit, no_turn)
        return SearchResult(
            hits=hits[:top_k],
            mode="hybrid" if vector else "lexical",
            notice="; ".join(filter(None, notices)) or None,
            threshold=asked.threshold or 0.0,
            below_threshold=found.below_threshold,
            explained=asked.explain,
            left_out=with_cut(found.left_out, hits[top_k:]) if asked.explain else {},
            turns=turns.turns,
            left_out_turns=turns.left_out,
        )

    async def _embed(self, query: str, wordings: Sequence[str]) -> tuple[Vector | None, str | None]:
        """The vector of the question and its other wordings; of those that are known where the embedder is away."""
        with search_phase("embed"):
            vectors, fault = await self._connections.query_embedder.embed(query, *wordings)
        if not vectors:
            return None, f"full-text search only: {fault}"
        return mean_vector(vectors), f"without the vectors of some wordings: {fault}" if fault else None

    async def _event_time(self, within: Sequence[ScopeFilter], asked: SearchOptions, words: str) -> datetime | None:
        """When the event was that a question names, by the fact that has most of its words."""
        options = asked.model_copy(update={"top_k": 1})
        with search_phase("event"):
            return time_of_event(await self._query(searches.search, within, words, None, options, at=self._now()))


async def _search(
    conn: AsyncConnection[TupleRow],
    within: Sequence[ScopeFilter],
    text: str,
    vector: Vector | None,
    options: SearchOptions,
    *,
    at: datetime,
) -> tuple[Findings, str | None]:
    """What is found, or why nothing is: of all that one scope has now, its facts are counted for that."""
    found = await searches.search(conn, within, text, vector, options, at=at)
    if found.hits:
        return found, None
    if len(within) > 1 or options.selects:
        return found, NO_SELECTED
    return found, no_hit_sentence(await count_facts(conn, within[0], at=at))
