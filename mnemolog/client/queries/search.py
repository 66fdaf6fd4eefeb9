"""The method of the client that searches."""

from datetime import datetime
from typing import Unpack

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.base import ClientBase, checked
from mnemolog.client.inputs.arguments import ScopeArgs
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import scope_filter
from mnemolog.client.queries.search_result import SearchResult
from mnemolog.projections.queries import search as searches
from mnemolog.projections.queries.errors import QueryError, check_unicode
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.search import Hit, ScopeCount
from mnemolog.schemas.vector import Vector
from mnemolog.texts import no_hit_sentence


@measured
@checked(QueryError)
class SearchMixin(ClientBase):
    """Search in the tables. It needs no Kafka."""

    async def search(
        self, query: str, *, limit: int = 10, threshold: float | None = None, **scope: Unpack[ScopeArgs]
    ) -> SearchResult:
        """The facts nearest to `query` in meaning and words, best first, each with the reasons for its place.

        A fact that has no word in common with the query is a hit from the cosine similarity `threshold` on: that of
        the embedding model unless it is given, 0 for none. `notice` of the result says why there is no hit.
        Pending facts are found as well: `status` of the fact says so. The client needs the embedder that the stages
        have (`MNEMOLOG_EMBEDDING_PROVIDER` and `_MODEL`): vectors of another one find nothing by meaning. Without a
        vector the search goes by words; `mode` and `notice` of the result say so.
        """
        within = scope_filter(scope)
        check_unicode(query)
        searches.check_query(query, limit, threshold or 0)
        embedder = self._connections.query_embedder
        vector, notice = await embedder.embed(query)
        if threshold is None:
            threshold = embedder.floor_for(vector) if vector else 0
        hits, missed = await self._query(_search, within, query, vector, limit=limit, floor=threshold, at=self._now())
        notices = [*([notice] if notice else []), *([no_hit_sentence(missed)] if missed else [])]
        return SearchResult(hits=tuple(hits), mode="hybrid" if vector else "lexical", notice="; ".join(notices) or None)


async def _search(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    text: str,
    vector: Vector | None,
    *,
    limit: int,
    floor: float,
    at: datetime,
) -> tuple[list[Hit], ScopeCount | None]:
    """The hits; where there is none, how many facts there are."""
    hits = await searches.search(conn, scope, text, vector, limit=limit, floor=floor, at=at)
    return hits, None if hits else await searches.count_facts(conn, scope, at=at)
