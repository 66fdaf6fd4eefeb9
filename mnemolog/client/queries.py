"""What a client asks: how a turn ended, what is known, and how it came."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from mnemolog.client.base import ClientBase
from mnemolog.client.query_embedder import SearchResult
from mnemolog.client.wait import wait_for_end
from mnemolog.projections.queries import diff, explain, facts, pending, turn_status
from mnemolog.projections.queries import history as histories
from mnemolog.projections.queries import search as searches
from mnemolog.projections.queries import why_not as why_nots
from mnemolog.projections.queries.diff import Axis, Diff
from mnemolog.projections.queries.errors import check_unicode
from mnemolog.projections.queries.explain import Explanation
from mnemolog.projections.queries.history import History
from mnemolog.projections.queries.pending import PendingFact, UnresolvedFact
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.results import Fact, Profile, WriteResult
from mnemolog.projections.queries.why_not import WhyNot
from mnemolog.texts import explanation_sentences, missing_sentence


class QueryMixin(ClientBase):
    """Questions to the tables. Nothing here needs Kafka."""

    async def status(
        self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None, verbose: bool = False
    ) -> WriteResult:
        """How a turn or a command ended and what it did, or that it is pending; `verbose` adds the trace.

        The trace tells what was retrieved, each decision with its reason, re-prompts and what was left out. Raises
        `UnknownTurnError` for one that is not in the tables (yet), `AmbiguousTurnError` where several users have a
        turn of this id: give `user_id`.
        """
        named = tenant or self._settings.tenant
        async with self._open_read_pool().connection() as connection:
            return await turn_status.turn_status(connection, named, turn_id, user_id, verbose=verbose)

    async def wait(
        self,
        turn_id: str,
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - the caller reads in the error how far the turn is
        user_id: str | None = None,
        tenant: str | None = None,
        verbose: bool = False,
        attempt: int = 1,
    ) -> WriteResult:
        """Wait for the end of a turn or a command, `timeout` seconds at the most.

        A turn that was refused for a limit and is published again has another end: wait for `attempt` 2, and so on.
        Raises `WaitTimeoutError` that says how far the turn is; it goes on without us.
        """
        return await wait_for_end(
            lambda: self.status(turn_id, user_id=user_id, tenant=tenant, verbose=verbose),
            turn_id,
            timeout_seconds=timeout,
            attempt=attempt,
        )

    async def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
        limit: int = 10,
    ) -> SearchResult:
        """The facts nearest to `query` in meaning and words, best first, each with the reasons for its place.

        One that waits for a confirmation is found as well: its status tells.
        """
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        check_unicode(query)
        embedded = await self._query_embedder.embed(query)
        async with self._open_read_pool().connection() as connection:
            hits = await searches.search(connection, scope, query, embedded.vector, limit=limit, at=self._now())
        mode: searches.SearchMode = "hybrid" if embedded.vector else "lexical"
        return SearchResult(hits=tuple(hits), mode=mode, notice=embedded.notice)

    async def facts(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
        all_versions: bool = False,
    ) -> list[Fact]:
        """The facts that hold now, in the order in which they were learned; or every version that ever was."""
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        async with self._open_read_pool().connection() as connection:
            return await facts.facts(connection, scope, all_versions=all_versions, at=self._now())

    async def facts_as_of(
        self,
        believed_at: datetime,
        true_at: datetime | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
    ) -> list[Fact]:
        """What was believed at `believed_at` to be so at `true_at` (the same unless given), each as it stood then."""
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        true_at = true_at or believed_at
        async with self._open_read_pool().connection() as connection:
            return await facts.facts_as_of(connection, scope, believed_at=believed_at, true_at=true_at)

    async def profile(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
    ) -> Profile:
        """What is known of exactly one scope, by section; empty where nothing is."""
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        async with self._open_read_pool().connection() as connection:
            return await facts.profile(connection, scope, self._now())

    async def history(self, fact_id: UUID, *, tenant: str | None = None) -> History:
        """A fact's versions, and every event that made or touched them. Raises `UnknownFactError`."""
        async with self._open_read_pool().connection() as connection:
            return await histories.history(connection, tenant or self._settings.tenant, fact_id)

    async def explain(self, fact_id: UUID, *, tenant: str | None = None) -> Explanation:
        """Why a fact is what it is: its turn and excerpt, how it was read and decided, and what happened to it since.

        `words` of the answer tells it in sentences. Raises `UnknownFactError`.
        """
        async with self._open_read_pool().connection() as connection:
            explanation, texts = await explain.explain(connection, tenant or self._settings.tenant, fact_id)
        return replace(explanation, words=explanation_sentences(explanation, texts))

    async def why_not(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> WhyNot:
        """Every statement of a turn that became no fact, and why. Raises as `status` does."""
        async with self._open_read_pool().connection() as connection:
            found = await why_nots.why_not(connection, tenant or self._settings.tenant, turn_id, user_id)
        return replace(found, missing=tuple(replace(one, because=missing_sentence(one)) for one in found.missing))

    async def pending(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
    ) -> list[PendingFact]:
        """Overwrites that wait for a confirmation, the oldest first: what would replace what, and why it was held."""
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        async with self._open_read_pool().connection() as connection:
            return await pending.pending(connection, scope, self._now())

    async def unresolved(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
    ) -> list[UnresolvedFact]:
        """Facts that were added beside others because nobody could decide their conflict, the oldest first."""
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        async with self._open_read_pool().connection() as connection:
            return await pending.unresolved(connection, scope, self._now())

    async def diff(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
        axis: Axis = "believed",
    ) -> Diff:
        """What changed from `since` up to `until` (now unless given), by kind.

        On the axis `believed` what was decided then; on the axis `true` what became or ceased to be true then, as it
        is known now. Either way the answer also compares what was believed at both ends.
        """
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        async with self._open_read_pool().connection() as connection:
            return await diff.diff(connection, scope, since, until or self._now(), axis=axis)

    async def quality(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        user_id: str | None = "*",
        agent_id: str | None = "*",
        app_id: str | None = "*",
        run_id: str | None = "*",
        tenant: str | None = None,
    ) -> DecisionQuality:
        """How often memory was overwritten, how often wrongly, and what waits; by default a tenant's last 30 days."""
        scope = self._scope_filter(tenant, user_id, agent_id, app_id, run_id)
        end = until or self._now()
        async with self._open_read_pool().connection() as connection:
            return await decision_quality(connection, scope, since or end - timedelta(days=30), end)
