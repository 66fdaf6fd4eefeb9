"""Connections that ended, forked processes and several event loops: a client goes on, or says what to do."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from mnemolog import AsyncMemoryClient, MemoryClient, MnemologError, Settings
from tests.support.builders.commits import added, commit
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
TEXTS = ["Alice likes tea."]


@pytest_asyncio.fixture
async def settings(db: ProjectedDatabase) -> AsyncIterator[Settings]:
    await db.apply(commit("1", added(TEXTS[0])))
    yield Settings(postgres=db.url)


async def texts(client: AsyncMemoryClient) -> list[str]:
    return [fact.text for fact in await client.facts(user_id="alice")]


async def test_connections_that_the_server_ended_are_replaced_unseen(db: ProjectedDatabase, settings: Settings) -> None:
    """Also while their ends are still on the way, and while queries run."""
    ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'mnemolog-client'"

    async def end_all() -> int:
        async with db.pool.connection() as connection:
            return int((await (await connection.execute(ended)).fetchone() or [0])[0])

    async with AsyncMemoryClient(settings=settings.model_copy(update={"postgres_pool_size": 27})) as client:
        assert await asyncio.gather(*(texts(client) for _ in range(200))) == [TEXTS] * 200
        assert await end_all() > 5
        assert await asyncio.gather(*(texts(client) for _ in range(100))) == [TEXTS] * 100
        _, *found = await asyncio.gather(end_all(), *(texts(client) for _ in range(100)))
        assert found == [TEXTS] * 100


FORKED = """
import os, sys
from mnemolog import MemoryClient
def texts():
    return [fact.text for fact in memory.facts(user_id="alice")]
memory = MemoryClient(postgres=sys.argv[1])
assert texts() == ["Alice likes tea."]
for _ in range(3):
    if (child := os.fork()) == 0:
        assert texts() == ["Alice likes tea."]
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert texts() == ["Alice likes tea."]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_client_goes_on_in_a_forked_process_and_in_its_parent(settings: Settings) -> None:
    run = [sys.executable, "-W", "error::ResourceWarning", "-c", FORKED, settings.postgres or ""]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_second_loop_is_refused_while_the_first_one_runs_and_connects_anew_afterwards(settings: Settings) -> None:
    client = AsyncMemoryClient(settings=settings)
    first = asyncio.new_event_loop()
    assert first.run_until_complete(texts(client)) == TEXTS
    with pytest.raises(MnemologError, match="in use in another event loop: make an AsyncMemoryClient in each loop"):
        asyncio.run(texts(client))
    first.close()
    assert asyncio.run(texts(client)) == TEXTS


def test_many_threads_share_a_blocking_client(settings: Settings) -> None:
    async def from_threads(client: MemoryClient) -> list[list[str]]:
        def read() -> list[str]:
            return [fact.text for fact in client.facts(user_id="alice")]

        return await asyncio.gather(*(asyncio.to_thread(read) for _ in range(30)))

    with MemoryClient(settings=settings) as client:
        assert asyncio.run(from_threads(client)) == [TEXTS] * 30
