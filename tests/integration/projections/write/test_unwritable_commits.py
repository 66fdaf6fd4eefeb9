"""A commit that cannot be written is found by halving its batch; it blocks no other, or stops loudly by its name."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
import pytest
import pytest_asyncio

import mnemolog.projections.write.projector
from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.errors import CommitTimeoutError
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.commit import Commit
from tests.support.builders.commits import added, commit, day

pytestmark = pytest.mark.postgres


@pytest_asyncio.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, min_size=1, max_size=2, application_name="test-unwritable", autocommit=True) as pool:
        yield pool


def log_of(*commits: Commit) -> list[LogRecord]:
    return [LogRecord(offset=offset, value=one.to_bytes()) for offset, one in enumerate(commits)]


async def rows(pool: Pool, query: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as connection:
        return await (await connection.execute(query.encode())).fetchall()


async def test_a_batch_with_a_commit_that_the_tables_cannot_hold_is_halved(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    in_transaction = mnemolog.projections.write.projector._project_in_transaction

    async def counted(connection: Any, readings: Sequence[Any], write_rows: Any) -> Any:
        batches.append(len(readings))
        return await in_transaction(connection, readings, write_rows)

    monkeypatch.setattr("mnemolog.projections.write.projector._project_in_transaction", counted)
    commits = [commit(f"t{number}", added(f"Fact {number}."), at=day(1)) for number in range(64)]
    commits[41] = commit("t41", based_on=2**70)
    applied = await Projector(pool).apply({0: log_of(*commits)})
    assert applied.next_offsets == {0: 64}
    assert len(batches) == 1 + 2 * 6
    assert await rows(pool, "SELECT count(*) FROM facts") == [(63,)]
    assert await rows(pool, "SELECT log_offset, reason FROM rejections") == [(41, "not_storable")]


async def test_a_commit_that_exceeds_the_statement_timeout_stops_loudly_by_its_name(database: str, pool: Pool) -> None:
    """What stands before it is written, it is not skipped, and it is written once Postgres is quick enough."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as admin:
        await admin.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN IF NEW.source_id = 't5' THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END $$"
        )
        await admin.execute(
            "CREATE TRIGGER slow BEFORE INSERT ON mnemolog.commits FOR EACH ROW EXECUTE FUNCTION slow()"
        )
        log = log_of(*(commit(f"t{number}", added(f"Fact {number}."), at=day(1)) for number in range(8)))
        async with open_pool(
            database, min_size=1, max_size=1, application_name="hasty", autocommit=True, statement_timeout=0.5
        ) as hasty:
            with pytest.raises(CommitTimeoutError, match=r"commit of t5 \(partition 0, offset 5"):
                await Projector(hasty).apply({0: log})
        assert await rows(pool, "SELECT count(*) FROM commits") == [(5,)]
        assert await rows(pool, "SELECT count(*) FROM rejections") == [(0,)]
        await admin.execute("DROP FUNCTION slow CASCADE")
    assert (await Projector(pool).apply({0: log})).next_offsets == {0: 8}
