"""The scopes of a search: those that a filter alone names, and what is said where nothing in them is found."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from mnemolog import AsyncMemoryClient, QueryError
from mnemolog.schemas.scope import Scope
from mnemolog.settings import Settings
from mnemolog.texts import NO_SELECTED
from tests.support.builders.commits import added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


@pytest_asyncio.fixture
async def client(db: ProjectedDatabase) -> AsyncIterator[AsyncMemoryClient]:
    stored = [
        (Scope(user_id="alice"), "Alice likes tea."),
        (Scope(user_id="alice", run_id="r1"), "Alice likes mint tea."),
        (Scope(user_id="bob"), "Bob likes tea."),
    ]
    await db.apply(*(commit(f"t{at}", added(text), scope=scope, at=day(1)) for at, (scope, text) in enumerate(stored)))
    settings = Settings(postgres=db.url, provider="offline")
    async with AsyncMemoryClient(settings=settings, now=lambda: day(9)) as memory:
        yield memory


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        ({"user_id": "alice"}, {"Alice likes tea."}),
        ({"OR": [{"user_id": "alice"}]}, {"Alice likes tea.", "Alice likes mint tea."}),
        ({"AND": [{"user_id": "alice"}, {"run_id": "r1"}]}, {"Alice likes mint tea."}),
        ({"AND": [{"user_id": "alice"}, {"agent_id": "bot"}]}, set()),
        ({"AND": [{"user_id": "*"}]}, {"Alice likes tea.", "Bob likes tea."}),
    ],
)
async def test_a_filter_alone_says_whose_facts_are_searched(
    client: AsyncMemoryClient, asked: dict[str, Any], texts: set[str]
) -> None:
    assert {hit.fact.text for hit in await client.search("tea", filters=asked)} == texts


async def test_a_filter_that_names_nobody_is_refused(client: AsyncMemoryClient) -> None:
    with pytest.raises(QueryError, match="does not say whose facts"):
        await client.search("tea", filters={"memory": {"contains": "tea"}})


@pytest.mark.parametrize(
    "asked",
    [
        {"state": "expired"},
        {"filters": {"categories": "health"}},
        {"believed_at": "2025-01-01"},
        {"true_at": "2025-01-01"},
        {"period": ("2020-01-01", "2020-02-01"), "only_period": True},
        {"any": [{"run_id": "r2"}, {"run_id": "r3"}]},
    ],
)
async def test_where_what_was_asked_for_has_no_hit_the_notice_says_so(
    client: AsyncMemoryClient, asked: dict[str, Any]
) -> None:
    found = await client.search("tea", user_id="alice", **asked)
    assert (found.hits, found.notice) == ((), NO_SELECTED)


@pytest.mark.parametrize("asked", [{}, {"explain": True}, {"neighbours": 2}, {"weights": {"neighbours": 0.5}}])
async def test_where_all_current_facts_have_no_hit_the_notice_tells_of_other_scopes(
    client: AsyncMemoryClient, asked: dict[str, Any]
) -> None:
    found = await client.search("quantum", user_id="alice", threshold=1.0, **asked)
    assert found.hits == ()
    assert found.notice == (
        "nothing known is near enough to this question; facts in scopes that also name a run: 1, "
        "search with run_id='**' (--run '**')"
    )
