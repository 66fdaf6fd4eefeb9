"""A search whose filter alone says whose facts it is about."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from mnemolog import AsyncMemoryClient, QueryError
from mnemolog.schemas.scope import Scope
from mnemolog.settings import Settings
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
