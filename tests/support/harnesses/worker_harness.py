"""A worker in the test's own process: stages over real servers, what is published to them and what comes out."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from mnemolog.schemas.command import Command
from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.settings import Settings
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.runtime.worker import ALL_STAGES, WorkerReport, run_worker
from mnemolog.streams.settings import StreamsSettings
from tests.support.polling import eventually
from tests.support.servers.kafka_client import PARTITIONS, publish, read_all
from tests.support.servers.openai_server import OpenAiServer

READY_SECONDS = 60
OUTCOME_SECONDS = 60
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def worker_settings(bootstrap: str, database: str, prefix: str, **more: Any) -> StreamsSettings:
    """Settings of a worker that a test starts: on a free port, with the offline provider."""
    given: dict[str, Any] = {
        "kafka": bootstrap,
        "postgres": database,
        "topic_prefix": prefix,
        "partitions": PARTITIONS,
        "session_timeout": 6.0,
        "drain_grace": 10.0,
        "metrics_port": 0,
    }
    return StreamsSettings(**(given | more))


def with_chat_server(settings: StreamsSettings, server: OpenAiServer) -> StreamsSettings:
    """The same with a language model behind HTTP; vectors stay those of the offline model."""
    update = {"provider": "openai", "embedding_provider": "offline", "base_url": server.base_url}
    return settings.model_copy(update=update)


@asynccontextmanager
async def running_worker(
    settings: StreamsSettings, stages: Sequence[Stage] = ALL_STAGES, failing: Mapping[str, str] | None = None
) -> AsyncIterator[WorkerReport]:
    """A worker that takes part in its groups; drained and stopped afterwards."""
    assert settings.kafka is not None
    await ensure_topics(settings.kafka_address, partitions=settings.partitions, prefix=settings.topic_prefix)
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    worker = asyncio.create_task(run_worker(settings, stages, stop, on_ready=ready.set_result, failing=failing))
    try:
        await asyncio.wait({ready, worker}, timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if worker.done():
            worker.result()
        assert ready.done(), f"not ready within {READY_SECONDS} s"
        yield ready.result()
    finally:
        stop.set()
        await worker


def user_turn(turn_id: str, *contents: str, user: str = "mira", **fields: Any) -> Turn:
    """A turn of `user`, with `contents` as its messages."""
    return Turn(
        turn_id=turn_id,
        scope=fields.pop("scope", Scope(user_id=user)),
        messages=tuple(Message(role="user", content=content) for content in contents),
        occurred_at=fields.pop("occurred_at", MONDAY),
        speaker=fields.pop("speaker", user.capitalize()),
        **fields,
    )


async def publish_records(settings: StreamsSettings, *records: Turn | Command) -> None:
    assert settings.kafka is not None
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    await publish(settings.kafka, topic, [(record.scope.key, record.to_bytes()) for record in records])


async def query_rows(database: str, query: str, *parameters: Any) -> list[dict[str, Any]]:
    """What `query` finds, as an SQL user would see it."""
    async with await psycopg.AsyncConnection.connect(database, row_factory=dict_row) as connection:
        return await (await connection.execute(query, parameters)).fetchall()


async def wait_for_outcomes(database: str, count: int, seconds: float = OUTCOME_SECONDS) -> dict[str, str]:
    """Wait until `count` sources have their end; the outcome of each by source id."""

    async def outcomes() -> dict[str, str]:
        found = await query_rows(database, "SELECT source_id, outcome FROM commits")
        return {row["source_id"]: row["outcome"] for row in found} if len(found) >= count else {}

    poll: Callable[[], dict[str, str] | Awaitable[dict[str, str]]] = outcomes
    return await eventually(poll, timeout=seconds)


@dataclass(frozen=True, slots=True)
class TenantHarness:
    """A worker that several tests share, as one of them uses it: with a tenant of its own."""

    settings: StreamsSettings
    tenant: str

    @property
    def kafka(self) -> str:
        return self.settings.kafka or ""

    def topic(self, name: str) -> str:
        return f"{self.settings.topic_prefix}{name}"

    def scope(self, user_id: str | None = "mira", **dimensions: str) -> Scope:
        return Scope(tenant=self.tenant, user_id=user_id, **dimensions)

    def turn(self, turn_id: str, *contents: str, user: str = "mira", **fields: Any) -> Turn:
        """As `user_turn`, in a scope of the tenant."""
        return user_turn(turn_id, *contents, user=user, **{"scope": self.scope(user), **fields})

    async def publish(self, *records: Turn | Command) -> None:
        await publish_records(self.settings, *records)

    async def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """What `query` finds; its first parameter is the tenant."""
        return await query_rows(self.settings.postgres or "", query, self.tenant, *parameters)

    async def statuses(self) -> dict[str, str]:
        """The status of each fact by its text."""
        return {
            row["text"]: row["status"] for row in await self.rows("SELECT text, status FROM facts WHERE tenant = %s")
        }

    async def outcomes(self, count: int) -> dict[str, str]:
        """Wait until `count` sources of the tenant have their end and their row in the journal; outcomes by id."""
        query = """SELECT source_id, outcome, source_kind = 'command' OR EXISTS (
                     SELECT 1 FROM turns WHERE (turns.owner, turns.source_id) = (commits.owner, commits.source_id)
                   ) AS journalled
                   FROM commits WHERE tenant = %s"""

        async def found() -> dict[str, str]:
            rows = await self.rows(query)
            complete = len(rows) >= count and all(row["journalled"] for row in rows)
            return {row["source_id"]: row["outcome"] for row in rows} if complete else {}

        poll: Callable[[], dict[str, str] | Awaitable[dict[str, str]]] = found
        return await eventually(poll, timeout=OUTCOME_SECONDS)

    async def log(self) -> list[KafkaRecord]:
        """The tenant's records in memory_events."""
        records = await read_all(self.kafka, self.topic("memory_events"))
        return [record for record in records if (record.key or b"").startswith(f"{self.tenant}/".encode())]


def client_settings(tenant: TenantHarness) -> Settings:
    """Of a client of this tenant."""
    return Settings.model_validate(tenant.settings.model_dump() | {"tenant": tenant.tenant})
