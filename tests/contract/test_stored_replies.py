"""One suite for the replies of the simulation and those in Postgres: of each question and attempt the first stays."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

import pytest
import pytest_asyncio

from mnemolog.projections.database import open_pool
from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.schemas.stored import StoredReply
from tests.simulation.servers.models import StoredReplies

FIRST: Final = StoredReply(
    owner="t/alice",
    source_id="s1",
    stage="resolve",
    version="resolve-1/model/question",
    attempt=0,
    reply="first",
    model="model",
    input_tokens=1,
    output_tokens=1,
    milliseconds=1.0,
)
SECOND: Final = replace(FIRST, attempt=1, reply="second")
TO_ANOTHER_QUESTION: Final = replace(FIRST, version="resolve-1/model/another", reply="another")

Store = StoredReplies | ReplyStore


@pytest.fixture
def simulated_replies() -> StoredReplies:
    return StoredReplies()


@pytest_asyncio.fixture
async def real_replies(database: str) -> AsyncIterator[ReplyStore]:
    async with open_pool(database, min_size=1, max_size=1, application_name="test-replies") as pool:
        yield ReplyStore(pool)


@pytest.fixture(params=["simulated_replies", pytest.param("real_replies", marks=pytest.mark.postgres)])
def replies(request: pytest.FixtureRequest) -> Store:
    store: Store = request.getfixturevalue(request.param)
    return store


async def test_each_question_has_its_own_replies_the_first_attempt_first(replies: Store) -> None:
    await replies.put_many([SECOND])
    await replies.put_many([FIRST, TO_ANOTHER_QUESTION])
    found = await replies.get_many([FIRST.key, TO_ANOTHER_QUESTION.key])
    assert [one.reply for one in found[FIRST.key]] == ["first", "second"]
    assert [one.reply for one in found[TO_ANOTHER_QUESTION.key]] == ["another"]


async def test_of_two_replies_to_one_attempt_the_first_stays(replies: Store) -> None:
    await replies.put_many([FIRST])
    (kept,) = await replies.put_many([replace(FIRST, reply="later")])
    assert kept.reply == "first"


async def test_the_replies_of_a_source_are_forgotten_and_no_others(replies: Store) -> None:
    of_another = replace(FIRST, source_id="s2")
    await replies.put_many([FIRST, SECOND, of_another])
    await replies.forget(FIRST.owner, FIRST.source_id)
    assert list(await replies.get_many([FIRST.key, of_another.key])) == [of_another.key]
