"""A search whose question names a time."""

import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from mnemolog import AsyncMemoryClient, QueryError
from mnemolog.client.search_arguments import WhenAsked
from mnemolog.settings import Settings
from tests.support.builders.commits import added, commit
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
NOW = datetime(2026, 6, 17, 12, tzinfo=UTC)
TRIPS = {
    "Alice made a trip to Oslo.": datetime(2024, 5, 1, tzinfo=UTC),
    "Alice made a trip to Rome.": datetime(2025, 7, 9, tzinfo=UTC),
    "Alice moved to Bern.": datetime(2025, 10, 1, tzinfo=UTC),
    "Alice made a trip to Cork.": datetime(2026, 2, 3, tzinfo=UTC),
}


@pytest_asyncio.fixture
async def client(db: ProjectedDatabase) -> AsyncIterator[AsyncMemoryClient]:
    await db.apply(*(commit(f"t{at:%Y%m%d}", added(text), at=at) for text, at in TRIPS.items()))
    # Nothing embeds: the order is that of words, periods and recency.
    settings = Settings(postgres=db.url, provider="openai", base_url="http://127.0.0.1:1/v1")
    async with AsyncMemoryClient(settings=settings, now=lambda: NOW) as memory:
        memory._connections.query_embedder._timeout_seconds = 0.05
        yield memory


async def places(client: AsyncMemoryClient, question: str, when: WhenAsked = "boost") -> list[str]:
    result = await client.search(question, user_id="alice", when=when)
    return [hit.fact.text.split()[-1].rstrip(".") for hit in result]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Which trip was last summer?", "Rome"),
        ("Which trip was in May 2024?", "Oslo"),
        ("Which trip was in February?", "Cork"),
        ("Which trip was in 2024?", "Oslo"),
    ],
)
async def test_what_happened_then_comes_first(client: AsyncMemoryClient, question: str, first: str) -> None:
    found = await places(client, question)
    assert found[0] == first
    assert {"Oslo", "Rome", "Cork"} <= set(found)
    assert await places(client, question, "narrow") == [first]


async def test_the_time_of_an_event_is_looked_up(client: AsyncMemoryClient) -> None:
    assert set(await places(client, "Which trip was before Alice moved to Bern?", "narrow")) == {"Oslo", "Rome"}
    assert set(await places(client, "Which trip was after Alice moved to Bern?", "narrow")) == {"Cork", "Bern"}


async def test_each_part_of_a_search_is_measured_once(client: AsyncMemoryClient) -> None:
    def measured(phase: str) -> float:
        return REGISTRY.get_sample_value("mnemolog_client_search_seconds_count", {"phase": phase}) or 0

    before = {phase: measured(phase) for phase in ("event", "sql")}
    await places(client, "Which trip was before Alice moved to Bern?")
    assert {phase: measured(phase) - count for phase, count in before.items()} == {"event": 1, "sql": 1}


async def test_an_event_that_nothing_tells_of_narrows_nothing_and_that_is_said(client: AsyncMemoryClient) -> None:
    result = await client.search("Which trip was before Alice painted the cellar?", user_id="alice", when="narrow")
    assert len(result) == len(TRIPS)
    assert "the question names no time to narrow the search to" in (result.notice or "")


async def test_a_time_can_be_ignored_and_a_given_period_goes_first(client: AsyncMemoryClient) -> None:
    question = "Which trip was in May 2024?"
    assert (await places(client, question, "ignore"))[0] == "Cork"
    period = (TRIPS["Alice made a trip to Rome."], NOW)
    result = await client.search(question, user_id="alice", period=period, only_period=True)
    assert {hit.fact.text.split()[-1] for hit in result} == {"Rome.", "Cork."}


async def test_without_the_package_that_reads_times_only_narrowing_is_refused(
    client: AsyncMemoryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mnemolog.streams.text.times", None)
    assert await places(client, "Which trip was in May 2024?")
    with pytest.raises(QueryError, match=r"pip install 'mnemolog\[offline\]'"):
        await places(client, "Which trip was in May 2024?", "narrow")


async def test_what_is_no_way_to_use_a_time_is_refused(client: AsyncMemoryClient) -> None:
    with pytest.raises(QueryError, match="when"):
        await client.search("x", user_id="alice", when="soon")  # type: ignore[arg-type]  # as a caller may
