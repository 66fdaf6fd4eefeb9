"""What a client asks: how a turn ended, what is known, and how it came."""

from datetime import datetime
from uuid import UUID

from mnemolog.connected import Connected
from mnemolog.searching import SearchResult
from mnemolog.waiting import waited
from projections import diffing, queries
from projections import history as histories
from projections import search as searches
from projections.diffing import Diff
from projections.history import History
from projections.query_errors import check_unicode
from projections.results import Fact, Profile, WriteResult


class Asking(Connected):
    """Questions to the tables. Nothing here needs Kafka."""

    async def status(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> WriteResult:
        """How a turn ended and what it did, or that it is pending.

        Raises `UnknownTurnError` for one that is not in the tables (yet), `AmbiguousTurnError` where several users
        have a turn of this id: give `user_id`.
        """
        reader = self._reading()
        async with reader.connection() as connection:
            return await queries.turn_status(connection, tenant or self._settings.tenant, turn_id, user_id)

    async def wait(
        self,
        turn_id: str,
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - the caller reads in the error how far the turn is
        user_id: str | None = None,
        tenant: str | None = None,
    ) -> WriteResult:
        """Wait for the end of a turn, `timeout` seconds at the most.

        Raises `WaitTimeoutError` that says how far the turn is; it goes on without us.
        """
        return await waited(lambda: self.status(turn_id, user_id=user_id, tenant=tenant), turn_id, within=timeout)

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
        """The facts nearest to `query` in meaning and words, best first, each with the reasons for its place."""
        scope = self._scope(tenant, user_id, agent_id, app_id, run_id)
        check_unicode(query)
        embedded = await self._embedder.embed(query)
        async with self._reading().connection() as connection:
            hits = await searches.search(connection, scope, query, embedded.vector, limit=limit, at=self._now())
        mode: searches.Mode = "hybrid" if embedded.vector else "lexical"
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
        scope = self._scope(tenant, user_id, agent_id, app_id, run_id)
        async with self._reading().connection() as connection:
            return await queries.facts(connection, scope, all_versions=all_versions, at=self._now())

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
        scope = self._scope(tenant, user_id, agent_id, app_id, run_id)
        async with self._reading().connection() as connection:
            return await queries.profile(connection, scope, self._now())

    async def history(self, fact_id: UUID, *, tenant: str | None = None) -> History:
        """A fact's versions, and every event that made or touched them. Raises `UnknownFactError`."""
        async with self._reading().connection() as connection:
            return await histories.history(connection, tenant or self._settings.tenant, fact_id)

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
    ) -> Diff:
        """What changed in what is believed, from `since` up to `until` (now unless given)."""
        scope = self._scope(tenant, user_id, agent_id, app_id, run_id)
        async with self._reading().connection() as connection:
            return await diffing.diff(connection, scope, since, until or self._now())
