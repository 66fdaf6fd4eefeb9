"""One suite for both places that the log is read from: the broker's topic, and the tables' own copy of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import LogSource, TableLogSource, open_table_log
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.builders.commits import ALICE, BOB, added, commit, fact_id_at, replaced
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.servers.kafka_client import PARTITIONS, producer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

FIRST = commit("1", added("Lives in Bern."), scope=ALICE)
RECORDS = {
    0: [
        FIRST.to_bytes(),
        commit("2", replaced("Lives in Rome.", fact_id_at(FIRST)), scope=ALICE).to_bytes(),
        b"no commit",
        commit("1", added("A second end of one source."), scope=ALICE).to_bytes(),
        b"",
    ],
    2: [commit(f"b{number}", added(f"Fact {number}."), scope=BOB).to_bytes() for number in range(600)],
}


@asynccontextmanager
async def kafka_log(bootstrap: str, prefix: str, _: ProjectedDatabase) -> AsyncIterator[LogSource]:
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    async with producer(bootstrap) as client:
        for partition, values in RECORDS.items():
            for value in values:
                await client.send(f"{prefix}memory_events", key=b"k", value=value, partition=partition)
        await client.flush()
    log = KafkaLogReader(KafkaAddress(bootstrap), prefix=prefix)
    try:
        yield log
    finally:
        await log.close()


@asynccontextmanager
async def table_log(_bootstrap: str, _prefix: str, stored: ProjectedDatabase) -> AsyncIterator[LogSource]:
    yield TableLogSource(stored.pool)


@asynccontextmanager
async def threaded_table_log(_bootstrap: str, _prefix: str, stored: ProjectedDatabase) -> AsyncIterator[LogSource]:
    """As `rebuild --from table` reads it."""
    async with open_table_log(stored.url) as log:
        yield log


@pytest.fixture(params=[kafka_log, table_log, threaded_table_log])
async def log(
    request: pytest.FixtureRequest, bootstrap: str, database: str, topic_suffix: str
) -> AsyncIterator[LogSource]:
    """The records as either place holds them; `database` has them folded."""
    async with ProjectedDatabase.open(database) as stored:
        for partition, values in RECORDS.items():
            await stored.apply(*values, partition=partition)
        async with request.param(bootstrap, topic_suffix, stored) as source:
            yield source


async def test_every_record_is_there_in_order_and_a_rebuild_equals_the_tables(log: LogSource, database: str) -> None:
    assert set(RECORDS) <= set(await log.partitions())
    for partition, values in {**RECORDS, 1: []}.items():
        assert await log.end_offset(partition) == len(values)
        assert await read(log, partition, 0, len(values)) == list(enumerate(values))
    assert await read(log, 2, 7, 10) == list(enumerate(RECORDS[2]))[7:10]
    assert await read(log, 2, 599, 600) == [(599, RECORDS[2][599])]
    assert await read(log, 2, 5, 5) == []
    report = await rebuild(database, log)
    assert (report.equal, report.swapped, report.records) == (True, True, 605), report


async def read(log: LogSource, partition: int, start: int, stop: int) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value) async for record in log.read(partition, start, stop)]
