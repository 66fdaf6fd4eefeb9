"""The whole pipeline in a test's own process: all stages over real servers, and what comes out of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from mnemolog.schemas.command import Command
from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.runtime.wiring import ALL_STAGES
from mnemolog.streams.runtime.worker import WorkerReport, run_worker
from mnemolog.streams.settings import StreamsSettings
from tests.support.polling import eventually
from tests.support.servers.kafka_client import PARTITIONS, publish

READY_SECONDS = 60
OUTCOME_SECONDS = 60
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def worker_settings(bootstrap: str, database: str, prefix: str, **more: Any) -> StreamsSettings:
    """Settings of a worker that a test starts and kills: quick to notice, on a free port."""
    given: dict[str, Any] = {
        "kafka": bootstrap,
        "postgres": database,
        "topic_prefix": prefix,
        "partitions": PARTITIONS,
        "session_timeout": 2.0,
        "heartbeat_interval": 0.3,
        "drain_grace": 10.0,
        "metrics_port": 0,
    }
    return StreamsSettings(**(given | more))


@asynccontextmanager
async def running_worker(
    settings: StreamsSettings, stages: Sequence[Stage] = ALL_STAGES
) -> AsyncIterator[WorkerReport]:
    """A worker that takes part in its groups; drained and stopped afterwards."""
    assert settings.kafka is not None
    await ensure_topics(settings.kafka, partitions=settings.partitions, prefix=settings.topic_prefix)
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    worker = asyncio.create_task(run_worker(settings, stages, stop, on_ready=ready.set_result))
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
    """What `user` said; `scope`, `occurred_at` and the rest as given."""
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
