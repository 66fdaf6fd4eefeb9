"""A worker hears what projectors of other processes have written, and goes on where it cannot."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from mnemolog.projections.database import open_pool
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.streams.runtime.read_your_writes import ProjectionNotices
from tests.support.builders.commits import added, commit
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'mnemolog-notices' AND datname = current_database()
"""


class Heard:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1

    async def is_heard(self, times: int) -> None:
        await eventually(lambda: self.times == times, timeout=10)


@asynccontextmanager
async def listening(notices: ProjectionNotices) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(notices.listen())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_each_batch_of_a_projector_is_heard_when_it_is_committed(database: str) -> None:
    """And none that is not committed."""
    heard = Heard()
    async with (
        open_pool(database, min_size=1, max_size=2, application_name="test-notices", autocommit=True) as pool,
        await psycopg.AsyncConnection.connect(database) as other,
        listening(ProjectionNotices(database, heard)),
    ):
        await heard.is_heard(1)  # it hears, and what came before went unheard
        projector, commits = Projector(pool), (commit("1", added("A.")), commit("2", added("B.")))
        records = [LogRecord(offset=offset, value=one.to_bytes()) for offset, one in enumerate(commits)]
        await other.execute("SELECT pg_notify('mnemolog_projected', '')")
        await other.rollback()
        await projector.apply({0: records[:1]})
        await heard.is_heard(2)
        await projector.apply({0: records[1:]})
        await heard.is_heard(3)


async def test_a_batch_whose_notice_postgres_refuses_is_written(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the server's queue of notices is full, which some listener of any database can cause."""
    monkeypatch.setattr("mnemolog.projections.write.projector.NOTICE_CHANNEL", "longer than the name of a channel " * 2)
    async with open_pool(database, min_size=1, max_size=2, application_name="test-notices", autocommit=True) as pool:
        records = [LogRecord(offset=0, value=commit("1", added("A.")).to_bytes())]
        assert (await Projector(pool).apply({0: records})).next_offsets == {0: 1}
        async with pool.connection() as connection:
            assert await (await connection.execute("SELECT reason FROM rejections")).fetchall() == []


async def test_who_listens_sets_no_timer_but_that_of_the_round(database: str) -> None:
    heard, loop = Heard(), asyncio.get_running_loop()
    async with listening(ProjectionNotices(database, heard)):
        await heard.is_heard(1)
        for _ in range(10):
            await asyncio.sleep(0)
        timers: list[asyncio.TimerHandle] = getattr(loop, "_scheduled")  # noqa: B009 -- mypy knows no such field
        soon = [timer for timer in timers if not timer.cancelled() and timer.when() < loop.time() + 60]
    assert not soon


async def test_a_lost_connection_ends_the_round_with_an_error(database: str) -> None:
    heard = Heard()
    async with (
        await psycopg.AsyncConnection.connect(database, autocommit=True) as other,
        listening(ProjectionNotices(database, heard)) as round_,
    ):
        await heard.is_heard(1)
        await other.execute(TERMINATE)
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(10):
                await round_


async def test_a_round_ends_and_the_next_one_hears(database: str) -> None:
    heard = Heard()
    notices = ProjectionNotices(database, heard, round_seconds=0.01)
    await notices.listen()
    await notices.listen()
    assert heard.times == 2


@pytest.mark.parametrize(
    ("statement", "error"),
    [("SELECT 1", "pooler"), ("LISTEN to nobody", "syntax error")],
    ids=["as behind a pooler of transactions, where another client has the connection next", "refused"],
)
async def test_a_listen_that_hears_nothing_is_said_once(
    database: str, monkeypatch: pytest.MonkeyPatch, statement: str, error: str
) -> None:
    heard: Any = Heard()
    notices = ProjectionNotices(database, heard, proof_seconds=0.05, round_seconds=0.01)
    monkeypatch.setattr("mnemolog.streams.runtime.read_your_writes._LISTEN", statement)
    with capture_logs() as logs:
        await notices.listen()
        await notices.listen()
    assert [line["event"] for line in logs] == ["projection_notices_unheard"]
    assert error in logs[0]["error"]
    assert heard.times == 0
