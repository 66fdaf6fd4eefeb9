"""The methods of the client that read facts: search, history, pending facts, quality."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Unpack, cast
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.base import ClientBase, checked
from mnemolog.client.inputs.arguments import WHOLE_TENANT, ScopeArgs, scope_ids
from mnemolog.client.inputs.checks import When
from mnemolog.client.inputs.fact_ids import FactId, whole_id
from mnemolog.client.metrics import measured
from mnemolog.client.query_embedder import SearchResult
from mnemolog.projections.filters.model import parse_filter
from mnemolog.projections.queries import diff, explain, facts, pending
from mnemolog.projections.queries import history as histories
from mnemolog.projections.queries import search as searches
from mnemolog.projections.queries import why_not as why_nots
from mnemolog.projections.queries.audit import FailedTurn, failed_turns, received_turn
from mnemolog.projections.queries.diff import Axis, Diff
from mnemolog.projections.queries.errors import QueryError, check_unicode
from mnemolog.projections.queries.explain import Explanation
from mnemolog.projections.queries.fact_rows import ANY_OR_NONE
from mnemolog.projections.queries.history import History
from mnemolog.projections.queries.ids import resolve_fact_id, short_ids
from mnemolog.projections.queries.pending import PendingFact, UnresolvedFact
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.results import Fact, Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.search import Hit, ScopeCount
from mnemolog.projections.queries.why_not import WhyNot
from mnemolog.schemas.turn import Turn
from mnemolog.schemas.vector import Vector
from mnemolog.texts import explanation_sentences, missing_sentence, no_hit_sentence


@measured
@checked(QueryError)
class QueryMixin(ClientBase):
    """Queries of the tables. None needs Kafka."""

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

    async def get(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Fact:
        """One fact, whatever its status. `fact_id` may be the beginning of the id, if only one fact has it.

        Raises `UnknownFactError`, also for a fact that is not of the ids that are named, and `AmbiguousIdError`.
        """
        return await self._query(facts.fact, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    async def facts(
        self,
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The current facts, in the order in which they were learned; or all versions.

        `filters` narrows them further, for example `{"OR": [{"categories": "health"}, {"importance": {"gte": 0.8}}]}`;
        one that asks about `state` looks among all versions.
        """
        within, wanted = scope_filter(scope), parse_filter({} if filters is None else filters)
        return await self._query(facts.facts, within, wanted, all_versions=all_versions, at=self._now())

    async def facts_as_of(
        self, believed_at: When, true_at: When | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[Fact]:
        """What was known at `believed_at` to be true at `true_at` (the same unless given), each fact as it was then."""
        return await self._query(
            facts.facts_as_of,
            scope_filter(scope),
            believed_at=_time(believed_at),
            true_at=_time(true_at or believed_at),
        )

    async def profile(self, **scope: Unpack[ScopeArgs]) -> Profile:
        """What is known of exactly one scope, by section; empty where nothing is."""
        return await self._query(facts.profile, scope_filter(scope), self._now())

    async def history(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> History:
        """A fact's versions, and every event that made or touched them. Takes ids and raises as `get` does."""
        return await self._query(histories.history, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    async def explain(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Explanation:
        """Where a fact comes from: its turn and excerpt, how it was extracted and decided, what happened to it since.

        `words` of the result says it in sentences. Takes ids and raises as `get` does.
        """
        known = await self._fact_id(fact_id, scope)
        explanation, texts = await self._query(explain.explain, scope.get("tenant") or "", known)
        return replace(explanation, words=explanation_sentences(explanation, texts))

    async def why_not(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> WhyNot:
        """The statements of a turn that were not stored as facts, and why. Raises as `status` does."""
        found = await self._query(why_nots.why_not, tenant or "", turn_id, user_id)
        return replace(found, missing=tuple(replace(one, because=missing_sentence(one)) for one in found.missing))

    async def pending(self, **scope: Unpack[ScopeArgs]) -> list[PendingFact]:
        """Changes that wait for a confirmation, the oldest first: what would replace what, and which guard holds it."""
        return await self._query(pending.pending, scope_filter(scope), self._now())

    async def unresolved(self, **scope: Unpack[ScopeArgs]) -> list[UnresolvedFact]:
        """Facts that were added beside others because their conflict could not be decided, the oldest first."""
        return await self._query(pending.unresolved, scope_filter(scope), self._now())

    async def diff(
        self, since: When, until: When | None = None, *, axis: Axis = "believed", **scope: Unpack[ScopeArgs]
    ) -> Diff:
        """What changed from `since` up to `until` (now unless given), by kind.

        On the axis `believed` what was decided then; on the axis `true` what became or ceased to be true then, as it
        is known now. Either way the result also compares what was known at both ends.
        """
        return await self._query(diff.diff, scope_filter(scope), _time(since), _time(until or self._now()), axis=axis)

    async def quality(
        self, since: When | None = None, until: When | None = None, **scope: Unpack[ScopeArgs]
    ) -> DecisionQuality:
        """How often memory was overwritten, how often wrongly, and what is pending.

        Of the last 30 days unless told otherwise, and of the whole tenant: an id that is not given is "**" here.
        """
        end = _time(until or self._now())
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(decision_quality, scope_filter(wide), _time(since or end - timedelta(days=30)), end)

    async def failed_turns(self, *, limit: int = 100, **scope: Unpack[ScopeArgs]) -> list[FailedTurn]:
        """The newest turns that ended failed or rejected, of the whole tenant: an id that is not given is "**" here."""
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(failed_turns, scope_filter(wide), limit=limit)

    async def received_turn(
        self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> Turn | None:
        """A turn as it was first received; None where it is not known (yet), or what came was no valid turn."""
        return await self._query(received_turn, tenant or "", turn_id, user_id)

    async def short_ids(self, whole_ids: Collection[UUID]) -> dict[UUID, str]:
        """For each id of a fact or event the beginning, of eight characters or more, that stands for no other now."""
        given: object = whole_ids
        if not (isinstance(given, Collection) and all(isinstance(one, UUID) for one in given)):
            raise QueryError("whole_ids must be a list of UUIDs: those of the facts or events to be shown")
        return await self._query(short_ids, whole_ids)

    async def _fact_id(self, given: FactId, scope: ScopeArgs) -> UUID:
        """The whole id, of a fact of the scope where ids are named: the tables are asked only where they are needed."""
        within = wide_filter(scope)
        if not within.named and (whole := whole_id(given)):
            return whole
        return await self._query(resolve_fact_id, within, given)


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


def scope_filter(scope: ScopeArgs) -> ScopeFilter:
    return ScopeFilter(**scope_ids(scope))


def wide_filter(ids: Mapping[str, object]) -> ScopeFilter:
    """What may be meant: ids that are not named may be any."""
    return ScopeFilter(**{name: value or ANY_OR_NONE for name, value in scope_ids(ids).items()})


def _time(given: When) -> datetime:
    """A time that was checked and converted at the call."""
    return cast("datetime", given)
