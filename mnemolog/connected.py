"""The ground of the client: its settings, and the servers it connects to at their first use."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import uuid_utils

from mnemolog.connection import check, located
from mnemolog.edge import Edge
from mnemolog.errors import NotConnectedError
from mnemolog.projections.scoping import ScopeFilter
from mnemolog.publishing import Publisher
from mnemolog.reading import Reader
from mnemolog.searching import QueryEmbedder
from mnemolog.settings import Settings, load_settings


class Connected:
    """Knows where Kafka and Postgres are, and lets go of them in the end."""

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
        self._edge = Edge()
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

    def _readable(self) -> Reader | None:
        """The tables, or None where nothing says where they are: publishing does without."""
        try:
            return self._reading()
        except NotConnectedError:
            return None
