"""A dry run says what a real store then does, and leaves no trace: no row, no record, no recorded reply."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from psycopg import AsyncConnection, sql
from psycopg.errors import ReadOnlySqlTransaction

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.queries.results import Result
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.policy import Limits, Policy
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings
from mnemolog.streams.kafka.topics import TOPICS, topic_name
from mnemolog.streams.runtime.dry_run import DryRun
from mnemolog.streams.settings import StreamsSettings
from tests.support.builders.commits import added, commit, policy_set
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.worker_harness import MONDAY, TenantHarness

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


@pytest_asyncio.fixture(loop_scope="package")
async def client(settings: StreamsSettings) -> AsyncIterator[AsyncMemoryClient]:
    async with AsyncMemoryClient(settings=Settings.model_validate(settings.model_dump())) as client:
        yield client


async def table_digests(database: str) -> dict[str, Any]:
    """The number of rows and a digest of each table."""
    async with await AsyncConnection.connect(database) as connection:
        tables = await connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE 'mnemolog%' ORDER BY 1, 2"
        )
        counted: dict[str, Any] = {}
        for schema, table in await tables.fetchall():
            query = sql.SQL("SELECT count(*), md5(string_agg(t::text, '' ORDER BY t::text)) FROM {} AS t")
            found = await connection.execute(query.format(sql.Identifier(schema, table)))
            counted[f"{schema}.{table}"] = await found.fetchone()
        return counted


async def log_end_offsets(settings: StreamsSettings) -> dict[TopicPartition, int]:
    """Where every topic ends."""
    topics = [topic_name(topic, settings.topic_prefix) for topic in TOPICS]
    async with AIOKafkaConsumer(bootstrap_servers=settings.kafka) as consumer:
        partitions = [TopicPartition(topic, number) for topic in topics for number in range(settings.partitions)]
        found: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
        return found


def add_arguments(what: Turn) -> dict[str, Any]:
    """A turn as arguments of the client."""
    return {
        "messages": what.messages,
        "user_id": what.scope.user_id,
        "turn_id": what.turn_id,
        "occurred_at": what.occurred_at,
        "speaker": what.speaker,
        "infer": what.infer,
    }


def without_times(result: Result) -> Result:
    """What two runs have in common: all but where they lie, how long they took, and who shared an embedding call."""
    stages = tuple(replace(stage, milliseconds=0, embedding_calls=0) for stage in result.stages)
    return replace(result, position=None, milliseconds={}, duration_ms=None, embedding_calls=0, stages=stages)


@pytest.mark.parametrize(
    ("content", "infer"),
    [
        ("I moved from Berlin to Munich. I have a dog. I live in Munich.", True),
        ("Never mind.", True),
        ("I live in Berlin.", False),
    ],
    ids=["replaces, adds and repeats", "says nothing", "raw"],
)
async def test_tells_what_a_real_store_then_does_and_changes_nothing(
    tenant: TenantHarness, content: str, *, infer: bool
) -> None:
    database = tenant.settings.postgres or ""
    own = Settings.model_validate(tenant.settings.model_dump() | {"tenant": tenant.tenant})
    second = tenant.turn("t2", content, occurred_at=MONDAY + timedelta(days=1), infer=infer)
    await tenant.publish(tenant.turn("t1", "I live in Berlin."))
    await tenant.outcomes(1)
    async with AsyncMemoryClient(settings=own) as client:
        rows, log = await table_digests(database), await log_end_offsets(tenant.settings)
        expected = await client.dry_run(**add_arguments(second))
        assert (await table_digests(database), await log_end_offsets(tenant.settings)) == (rows, log)
        await tenant.publish(second)
        await tenant.outcomes(2)
        done = await client.status("t2", verbose=True)
    assert without_times(expected) == without_times(done)
    assert expected.trace is not None


async def test_a_limit_is_foreseen_and_not_used_up(database: str, client: AsyncMemoryClient) -> None:
    async with ProjectedDatabase.open(database) as stored:
        tenant = policy_set(Policy(limits=Limits(active_facts=2)), level="tenant")
        await stored.apply(commit("p", tenant, scope=tenant_scope("default")), commit("1", added("A.")))
        rows = await table_digests(database)
        for _ in range(3):
            fits = await client.dry_run("I live in Bern.", user_id="mira")
            assert (fits.status, fits.limit) == ("stored", None)
        over = await client.dry_run("I live in Bern. I have a dog.", user_id="mira")
        assert over.limit is not None
        assert (over.status, over.limit.name, over.limit.limit) == ("rejected", "active_facts", 2)
        assert await table_digests(database) == rows


async def test_its_connections_can_write_nothing(settings: StreamsSettings) -> None:
    stages = DryRun(settings)
    await stages.open()
    try:
        async with stages._pool.connection() as connection:
            with pytest.raises(ReadOnlySqlTransaction):
                await connection.execute("DELETE FROM facts")
    finally:
        await stages.close()
