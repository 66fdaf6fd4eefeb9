"""What applications import: publish turns, wait for their end, ask what is known."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self
from uuid import UUID

import uuid_utils

from mnemolog.connection import check, located
from mnemolog.errors import PartlyPublishedError
from mnemolog.publishing import Letter, Publisher, each
from mnemolog.reading import Reader
from mnemolog.searching import QueryEmbedder, SearchResult
from mnemolog.settings import Settings, load_settings
from mnemolog.turns import Draft, Messages, checked, compose
from mnemolog.waiting import waited
from projections import diffing, queries
from projections import history as histories
from projections import search as searches
from projections.diffing import Diff
from projections.history import History
from projections.query_errors import check_unicode
from projections.results import Fact, Profile, WriteResult
from projections.scoping import ScopeFilter
from schemas.turn import Overrides, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A turn that the broker has. It will reach exactly one end; `wait` and `status` tell which."""

    turn_id: str
    status: Literal["PENDING"] = "PENDING"


class MemoryClient:
    """Memory for an application.

    `kafka` (host:port) is needed to publish, `postgres` (URL) to ask; each is connected to at its first use. What is
    not given is read from the `MNEMOLOG_` variables, and else from a running `mnemolog up` in this folder.
    `publish_timeout` is the seconds an acknowledgement may take. Use it in `async with`, or call `close`.

    Every method can raise `ServerUnavailableError`; those that ask raise `QueryError` for a question that is wrong.
    A query names its scope exactly: an id that is not given finds what was stored without it, "*" finds any.
    """

    def __init__(
        self,
        *,
        kafka: str | None = None,
        postgres: str | None = None,
        tenant: str | None = None,
        settings: Settings | None = None,
        publish_timeout: float = 30.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: str(uuid_utils.uuid7()),
    ) -> None:
        given = {"kafka": kafka, "postgres": postgres, "tenant": tenant}
        given = {name: value for name, value in given.items() if value is not None}
        self._settings = settings.model_copy(update=given) if settings else load_settings(**given)
        self._publish_timeout = publish_timeout
        self._now = now
        self._new_id = new_id
        self._connecting = asyncio.Lock()
        self._publisher: Publisher | None = None
        self._reader: Reader | None = None
        self._embedder = QueryEmbedder(self._settings)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(settings=settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what is under way and disconnect."""
        if self._publisher is not None:
            await self._publisher.close()
        if self._reader is not None:
            await self._reader.close()
        await self._embedder.close()
        self._publisher = self._reader = None

    async def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
        infer: bool = True,
        occurred_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        turn_id: str | None = None,
        speaker: str | None = None,
        valid_until: datetime | None = None,
        recalled: Sequence[str] = (),
        overrides: Overrides | Mapping[str, float] | None = None,
    ) -> Accepted:
        """Publish one turn; returns once the broker has it for good.

        `messages` is a text of the user or a list of `{role, content, name}`. `infer=False` stores the user's messages
        as they are, without a model. `occurred_at` (with a zone) is now unless given. `recalled` is memory that was in
        the prompt: context, never evidence. Raises `InvalidTurnError` before anything is sent, and `PublishError` when
        no acknowledgement came in time: publish again with the same `turn_id`, a second copy does nothing.
        An own `turn_id` must be new for the user over all agents, apps and runs: the first turn of an id counts.
        """
        draft = Draft(
            messages=messages,
            turn_id=turn_id or self._new_id(),
            occurred_at=occurred_at or self._now(),
            tenant=tenant or self._settings.tenant,
            user_id=user_id,
            agent_id=agent_id,
            app_id=app_id,
            run_id=run_id,
            infer=infer,
            metadata=metadata or {},
            valid_until=valid_until,
            speaker=speaker,
            recalled=recalled,
            overrides=overrides,
        )
        turn = compose(draft, max_bytes=self._settings.max_turn_bytes)
        publisher = await self._publishing()
        await publisher.publish(Letter.of(turn))
        return Accepted(turn_id=turn.turn_id)

    async def add_many(self, turns: Iterable[Turn]) -> list[Accepted]:
        """Publish turns in their order, many at a time; returns once the broker has all of them.

        Raises `InvalidTurnError` at the first that is none, before anything is sent, and `PartlyPublishedError`
        that names those which were not acknowledged.
        """
        limit = self._settings.max_turn_bytes
        letters = [Letter.of(checked(turn, max_bytes=limit)) for turn in turns]
        publisher = await self._publishing()
        receipts = [receipt async for receipt in publisher.publish_all(each(letters))]
        failed = {receipt.name: str(receipt.error) for receipt in receipts if receipt.error}
        if failed:
            raise PartlyPublishedError([receipt.name for receipt in receipts if not receipt.error], failed)
        return [Accepted(turn_id=receipt.name) for receipt in receipts]

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

    def _scope(
        self, tenant: str | None, user_id: str | None, agent_id: str | None, app_id: str | None, run_id: str | None
    ) -> ScopeFilter:
        return ScopeFilter(
            tenant=tenant or self._settings.tenant, user_id=user_id, agent_id=agent_id, app_id=app_id, run_id=run_id
        )

    def _located(self, address: str | None) -> Settings:
        """The settings, with the servers of a running `up` only where the one that is needed is not set."""
        if address is None:
            return located(self._settings)
        check(self._settings)
        return self._settings

    async def _publishing(self) -> Publisher:
        async with self._connecting:
            if self._publisher is not None and self._publisher.worn_out:
                await self._publisher.close()
                self._publisher = None
            if self._publisher is None:
                settings = self._located(self._settings.kafka)
                self._publisher = await Publisher.connect(
                    settings.kafka or "",
                    prefix=settings.topic_prefix,
                    compression=settings.compression,
                    within=self._publish_timeout,
                )
            return self._publisher

    def _reading(self) -> Reader:
        if self._reader is None:
            settings = self._located(self._settings.postgres)
            self._reader = Reader(
                settings.postgres or "",
                size=settings.postgres_pool_size,
                statement_timeout=settings.postgres_statement_timeout,
            )
        return self._reader
