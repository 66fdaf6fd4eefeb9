"""The ground of the client: its settings, and the servers it connects to at their first use."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import uuid_utils

from mnemolog.client.discovery import check_addresses, with_discovered_servers
from mnemolog.client.limit_check import LimitPrecheck
from mnemolog.client.producer import RecordProducer
from mnemolog.client.query_embedder import QueryEmbedder
from mnemolog.client.read_pool import ReadPool
from mnemolog.errors import NotConnectedError
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.settings import Settings, load_settings


class ClientBase:
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
        self._connect_lock = asyncio.Lock()
        self._producer: RecordProducer | None = None
        self._read_pool: ReadPool | None = None
        self._limit_precheck = LimitPrecheck()
        self._query_embedder = QueryEmbedder(self._settings)

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
        if self._producer is not None:
            await self._producer.close()
        if self._read_pool is not None:
            await self._read_pool.close()
        await self._query_embedder.close()
        self._producer = self._read_pool = None

    def _scope_filter(
        self, tenant: str | None, user_id: str | None, agent_id: str | None, app_id: str | None, run_id: str | None
    ) -> ScopeFilter:
        return ScopeFilter(
            tenant=tenant or self._settings.tenant, user_id=user_id, agent_id=agent_id, app_id=app_id, run_id=run_id
        )

    def _with_discovered_servers(self, address: str | None) -> Settings:
        """The settings, with the servers of a running `up` only where the one that is needed is not set."""
        if address is None:
            return with_discovered_servers(self._settings)
        check_addresses(self._settings)
        return self._settings

    async def _connect_producer(self) -> RecordProducer:
        async with self._connect_lock:
            if self._producer is not None and self._producer.needs_reconnect:
                await self._producer.close()
                self._producer = None
            if self._producer is None:
                settings = self._with_discovered_servers(self._settings.kafka)
                self._producer = await RecordProducer.connect(
                    settings.kafka or "",
                    prefix=settings.topic_prefix,
                    compression=settings.compression,
                    timeout_seconds=self._publish_timeout,
                    command_token=settings.command_token,
                )
            return self._producer

    def _open_read_pool(self) -> ReadPool:
        if self._read_pool is None:
            settings = self._with_discovered_servers(self._settings.postgres)
            self._read_pool = ReadPool(
                settings.postgres or "",
                size=settings.postgres_pool_size,
                statement_timeout=settings.postgres_statement_timeout,
            )
        return self._read_pool

    def _read_pool_if_configured(self) -> ReadPool | None:
        """The tables, or None where nothing says where they are: publishing does without."""
        try:
            return self._open_read_pool()
        except NotConnectedError:
            return None
