"""One suite for the servers of the simulation and the real ones: what a run of the simulation proves rests on it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final
from unittest.mock import Mock

import psycopg
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import CommitFailedError, IllegalStateError  # type: ignore[import-untyped] # as above
from faust.types import TP

from mnemolog.projections.sql import queries
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.topics import EXTRACTED_FACTS, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
from tests.simulation.loop import SimulatedLoop, run_simulated
from tests.simulation.servers.broker import Broker
from tests.simulation.servers.faust_driver import SimulatedThread
from tests.simulation.servers.postgres import Postgres
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.polling import eventually
from tests.support.servers.kafka_client import PARTITIONS, publish

SQL: Final = queries("projector")
KEY: Final = b"owner"
VALUES: Final = (b"0", b"1", b"2")
FETCH_SECONDS: Final = 1.0
SESSION_MILLISECONDS: Final = 1500
"""So long a member of a group waits for one that has fallen behind: it cannot leave the group."""


Scenario = Callable[[Any], Awaitable[None]]
Run = Callable[[Scenario], Awaitable[None]]


class RealMember:
    """A member of a consumer group that has all partitions; records and offsets are those of one partition.

    It is aiokafka's consumer, of which Faust's thread is a thin cover.
    """

    def __init__(self, consumer: Any, place: TopicPartition) -> None:
        self._consumer = consumer
        self._place = place

    async def fetch(self) -> list[int]:
        found = await self._consumer.getmany(self._place, timeout_ms=round(FETCH_SECONDS * 1000), max_records=100)
        return [record.offset for records in found.values() for record in records]

    async def commit(self, offset: int) -> bool:
        try:
            await self._consumer.commit({self._place: offset})
        except CommitFailedError:
            return False
        return True

    async def seek_to_committed(self) -> int | None:
        offset: int | None = (await self._consumer.seek_to_committed())[self._place]
        return offset

    def seek_elsewhere(self) -> None:
        self._consumer.seek(TopicPartition(self._place.topic, PARTITIONS + 1), 0)

    def fall_behind(self) -> None:
        self._consumer._coordinator.generation -= 1


class SimulatedMember:
    """The thread of the simulated consumer."""

    def __init__(self, thread: SimulatedThread, place: TP) -> None:
        self._thread = thread
        self._place = place

    async def fetch(self) -> list[int]:
        found = await self._thread.getmany({self._place}, FETCH_SECONDS)
        more = await self._thread.getmany({self._place}, FETCH_SECONDS)
        return [record.offset for part in (found, more) for records in part.values() for record in records]

    async def commit(self, offset: int) -> bool:
        return await self._thread.commit({self._place: offset})

    async def seek_to_committed(self) -> int | None:
        return (await self._thread.seek_to_committed())[self._place]

    def seek_elsewhere(self) -> None:
        self._thread.seek(TP(self._place.topic, PARTITIONS + 1), 0)

    def fall_behind(self) -> None:
        self._thread.member.generation -= 1


Member = RealMember | SimulatedMember
MakeMember = Callable[[], AbstractAsyncContextManager[Member]]


@pytest.fixture
def real_group(bootstrap: str, prefix: str) -> Run:
    topic = topic_name(EXTRACTED_FACTS, prefix)

    async def run(scenario: Scenario) -> None:
        positions = await publish(bootstrap, topic, [(KEY, value) for value in VALUES])
        place = TopicPartition(topic, int(positions[0].split("/")[1]))

        @asynccontextmanager
        async def member() -> AsyncIterator[Member]:
            consumer = AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=f"{prefix}contract",
                session_timeout_ms=SESSION_MILLISECONDS,
                heartbeat_interval_ms=SESSION_MILLISECONDS // 5,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
            await consumer.start()
            try:
                await eventually(lambda: place in consumer.assignment())
                yield RealMember(consumer, place)
            finally:
                await consumer.stop()

        await scenario(member)

    return run


@pytest.fixture
def simulated_group() -> Run:
    async def main(loop: SimulatedLoop, scenario: Scenario) -> None:
        broker = Broker(loop, partitions=PARTITIONS, session=5.0, rebalance=10.0)
        sent = [broker.append("topic", KEY, value, (), "publisher") for value in VALUES]
        place = TP("topic", sent[0].partition)

        @asynccontextmanager
        async def member() -> AsyncIterator[Member]:
            thread = SimulatedThread(_consumer(), broker, "process/stage/1")
            await thread.start()
            await thread.subscribe(["topic"])
            while place not in thread.assignment():  # noqa: ASYNC110 -- simulated
                await asyncio.sleep(0.1)
            yield SimulatedMember(thread, place)
            await thread.stop()

        await scenario(member)

    return _in_a_simulation(main)


def _consumer() -> Mock:
    """As much of Faust's consumer and App as its thread asks for."""

    async def nothing(*_: object) -> None:
        return

    consumer = Mock(flow_active=True, on_partitions_revoked=nothing, on_partitions_assigned=nothing)
    consumer.app.conf.id = "contract"
    return consumer


def _in_a_simulation(main: Callable[[SimulatedLoop, Scenario], Any]) -> Run:
    async def run(scenario: Scenario) -> None:
        await asyncio.to_thread(run_simulated, 0, lambda loop: main(loop, scenario))

    return run


@pytest.fixture
async def prefix(bootstrap: str, topic_suffix: str) -> str:
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=f"{topic_suffix}-")
    return f"{topic_suffix}-"


@pytest.fixture(params=["simulated_group", pytest.param("real_group", marks=pytest.mark.kafka)])
def in_a_group(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


async def test_a_commit_of_an_older_generation_is_refused_and_changes_nothing(in_a_group: Run) -> None:
    async def scenario(member: MakeMember) -> None:
        async with member() as one:
            assert await one.commit(1)
            one.fall_behind()
            assert not await one.commit(2)
        async with member() as another:
            assert await another.seek_to_committed() == 1

    await in_a_group(scenario)


async def test_a_member_reads_and_seeks_only_where_its_group_has_committed(in_a_group: Run) -> None:
    async def scenario(member: MakeMember) -> None:
        async with member() as one:
            assert await one.fetch() == [0, 1, 2]
            assert await one.seek_to_committed() is None
            assert await one.fetch() == []
            await one.commit(1)
            assert await one.seek_to_committed() == 1
            assert await one.fetch() == [1, 2]
            with pytest.raises(IllegalStateError):  # that partition is not assigned
                one.seek_elsewhere()
        async with member() as another:
            assert await another.fetch() == [1, 2]

    await in_a_group(scenario)


@pytest.fixture
def real_database(request: pytest.FixtureRequest) -> Run:
    url: str = request.getfixturevalue("database")

    async def run(scenario: Scenario) -> None:
        async with ProjectedDatabase.open(url) as db:
            await scenario(Database(db.pool, terminate=_terminate))

    return run


async def _terminate(pool: Any, victim: Any) -> None:
    async with pool.connection() as other:
        await other.execute("SELECT pg_terminate_backend(%s)", [victim.info.backend_pid])


@pytest.fixture
def simulated_database() -> Run:
    async def terminate(server: Postgres, victim: Any) -> None:
        server.end(victim)

    async def main(loop: SimulatedLoop, scenario: Scenario) -> None:
        await scenario(Database(Postgres(loop), terminate=terminate))

    return _in_a_simulation(main)


@pytest.fixture(params=["simulated_database", pytest.param("real_database", marks=pytest.mark.postgres)])
def in_a_database(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


class Database:
    """A server, and the statements about the offset of partition 0 that the projector makes."""

    def __init__(self, pool: Any, *, terminate: Callable[[Any, Any], Awaitable[None]]) -> None:
        self.pool = pool
        self._terminate = terminate

    async def terminate(self, connection: Any) -> None:
        await self._terminate(self.pool, connection)

    async def lock(self, connection: Any) -> int:
        await connection.execute(SQL["open_partitions"], {"partitions": [0]})
        ((_, offset),) = await (await connection.execute(SQL["lock_partitions"], {"partitions": [0]})).fetchall()
        return int(offset)

    async def move(self, connection: Any, offset: int) -> None:
        await connection.execute(SQL["move_partitions"], {"partitions": [0], "next_offsets": [offset]})

    async def offset(self) -> int:
        async with self.pool.connection() as connection:
            rows: Sequence[tuple[int, int]] = await (await connection.execute(SQL["next_offsets"])).fetchall()
            return dict(rows).get(0, 0)


async def test_who_waits_for_a_locked_partition_sees_what_its_holder_committed(in_a_database: Run) -> None:
    async def scenario(db: Database) -> None:
        async def wait() -> int:
            async with db.pool.connection() as connection, connection.transaction():
                return await db.lock(connection)

        async with db.pool.connection() as connection:
            async with connection.transaction():
                await db.lock(connection)
                waiting = asyncio.create_task(wait())
                await db.move(connection, 5)
                assert await db.offset() == 0
                assert not waiting.done()
            assert await waiting == 5

    await in_a_database(scenario)


async def test_what_a_transaction_wrote_before_it_failed_never_happened(in_a_database: Run) -> None:
    async def scenario(db: Database) -> None:
        async def fail() -> None:
            async with db.pool.connection() as connection, connection.transaction():
                await db.lock(connection)
                await db.move(connection, 5)
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        assert await db.offset() == 0

    await in_a_database(scenario)


async def test_a_connection_that_broke_commits_nothing_and_holds_no_lock(in_a_database: Run) -> None:
    async def scenario(db: Database) -> None:
        async def be_cut_off() -> None:
            async with db.pool.connection() as connection, connection.transaction():
                await db.lock(connection)
                await db.move(connection, 5)
                await db.terminate(connection)

        with pytest.raises(psycopg.OperationalError):
            await be_cut_off()
        async with db.pool.connection() as connection, connection.transaction():
            assert await db.lock(connection) == 0

    await in_a_database(scenario)
