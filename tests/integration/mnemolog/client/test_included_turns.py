"""A search in facts, in turns, or in both, and what it may be told of each."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from mnemolog import AsyncMemoryClient, QueryError
from mnemolog.schemas.turn import Message, Turn
from mnemolog.settings import Settings
from tests.support.builders.commits import ALICE, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
TURNS: Final = "turns"


@pytest_asyncio.fixture
async def client(db: ProjectedDatabase) -> AsyncIterator[AsyncMemoryClient]:
    """One turn with a fact, and one without."""
    for number, text in enumerate(("I like tea.", "The tea was cold.")):
        message = Message(role="user", content=text)
        at = day(40 * number)
        await db.journal(
            Turn(turn_id=f"t{number}", scope=ALICE, messages=(message,), occurred_at=at), first_offset=number
        )
    await db.apply(commit("t0", added("Alice likes tea."), at=day(0)), commit("t1", at=day(40)))
    settings = Settings(postgres=db.url, provider="offline")
    async with AsyncMemoryClient(settings=settings, now=lambda: day(99)) as memory:
        yield memory


@pytest.mark.parametrize(
    ("asked", "facts", "turns"),
    [
        ({}, 1, 0),
        ({"include": "facts"}, 1, 0),
        ({"include": "turns"}, 0, 2),
        ({"include": ("facts", "turns")}, 1, 2),
        ({"include": ["turns", "facts"], "top_k": 1}, 1, 1),
        ({"include": ["turns", "facts"], "filters": {"categories": "none"}}, 0, 0),
        ({"include": ["turns", "facts"], "state": "superseded"}, 0, 2),
        ({"include": "turns", "turn_status": "no_facts"}, 0, 1),
        ({"include": "turns", "any": [{}, {"run_id": "r1"}]}, 0, 2),
        ({"include": "turns", "filters": {"source_id": "t1"}}, 0, 1),
    ],
)
async def test_facts_and_turns_are_lists_of_their_own(
    client: AsyncMemoryClient, asked: dict[str, Any], facts: int, turns: int
) -> None:
    found = await client.search("tea", user_id="alice", **asked)
    assert (len(found), len(found.turns)) == (facts, turns)
    assert found.mode == ("lexical" if asked.get("include") == "turns" else "hybrid")


async def test_the_time_that_a_question_names_counts_for_turns(client: AsyncMemoryClient) -> None:
    found = await client.search("tea in February", user_id="alice", include=TURNS, when="narrow")
    assert [one.turn_id for one in found.turns] == ["t1"]


async def test_a_search_that_finds_no_turn_says_so(client: AsyncMemoryClient) -> None:
    found = await client.search("bicycle", user_id="alice", include=TURNS)
    assert (len(found), found.turns) == (0, ())
    assert found.notice == "no turn of this scope that may be shown has a word of the question"


async def test_it_says_why_turns_were_left_out(client: AsyncMemoryClient) -> None:
    found = await client.search("tea", user_id="alice", include=TURNS, explain=True, top_k=1)
    assert found.left_out_turns == {"over_top_k": 1}


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"include": TURNS, "state": "active"}, "state is about facts, and only turns are searched"),
        ({"include": TURNS, "threshold": 0.5}, "threshold is about facts"),
        ({"include": TURNS, "neighbours": 2}, "neighbours is about facts"),
        ({"include": TURNS, "true_at": day(1), "rerank": True}, "true_at, rerank are about facts"),
        ({"include": TURNS, "filters": {"categories": "health"}}, "filters.categories is about facts"),
        ({"include": TURNS, "filters": {"OR": [{"NOT": {"key": "k"}}]}}, "filters.key is about facts"),
        ({"turn_status": "failed"}, "turn_status is about turns"),
        ({"include": "messages"}, "include.0"),
        ({"include": []}, "include"),
        ({"include": TURNS, "turn_status": "pending"}, "turn_status.0"),
    ],
)
async def test_what_does_not_apply_is_refused(client: AsyncMemoryClient, asked: dict[str, Any], complaint: str) -> None:
    with pytest.raises(QueryError) as refused:
        await client.search("tea", user_id="alice", **asked)
    assert complaint in str(refused.value)
