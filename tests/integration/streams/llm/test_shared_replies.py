"""Replies of many turns in one transaction: together if possible, alone if one of them cannot be stored."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from mnemolog.projections.database import open_pool
from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.schemas.stored import ReplyNotStorableError
from mnemolog.streams.llm.cached_models import CachedChatModel
from mnemolog.streams.llm.ports import ChatMessage, Prompt, Reply, RequestSource, TimedReply, Usage

pytestmark = pytest.mark.postgres

BEYOND_INTEGER = 2**40
QUESTION = Prompt(
    purpose="extract",
    version="extract-1",
    messages=(ChatMessage(role="user", content="Who is Alice?"),),
    schema={},
)


class NumberingModel:
    """A chat model that numbers its replies; the one of number `costly` uses more tokens than can be stored."""

    model = "counter"

    def __init__(self, costly: int = -1) -> None:
        self.calls = 0
        self.costly = costly

    async def complete(self, prompt: Prompt) -> Reply:  # noqa: ARG002 -- the port's signature
        number = self.calls
        self.calls += 1
        usage = Usage(input_tokens=BEYOND_INTEGER if number == self.costly else 1)
        return Reply(text=f"reply {number}", model=self.model, usage=usage)

    async def close(self) -> None:
        return


@pytest_asyncio.fixture
async def replies(database: str) -> AsyncIterator[ReplyStore]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-shared", autocommit=True) as pool:
        yield ReplyStore(pool)


async def ask(model: CachedChatModel, source_id: str, attempt: int = 0) -> TimedReply:
    source = RequestSource(owner="default/alice", source_id=source_id, stage="extract")
    return await model.for_source(source, QUESTION)(QUESTION, attempt)


async def test_each_turn_gets_its_own_replies(replies: ReplyStore) -> None:
    counter = NumberingModel()
    model = CachedChatModel(counter, replies)
    many = await asyncio.gather(*(ask(model, f"t{number}") for number in range(600)))
    assert len({reply.text for reply in many}) == counter.calls == 600
    assert (await ask(model, "t3", attempt=1)).text == "reply 600"
    assert await asyncio.gather(*(ask(model, f"t{number}") for number in range(600))) == many
    assert counter.calls == 601
    await model.close()


async def test_a_reply_that_cannot_be_stored_spoils_no_other(replies: ReplyStore) -> None:
    model = CachedChatModel(NumberingModel(costly=4), replies)
    kept = await asyncio.gather(*(ask(model, f"t{number}") for number in range(9)), return_exceptions=True)
    assert [type(one) for one in kept].count(TimedReply) == 8
    (failure,) = [one for one in kept if isinstance(one, BaseException)]
    assert isinstance(failure, ReplyNotStorableError)
    await model.close()


async def test_a_reply_whose_key_is_too_large_for_the_index_spoils_no_other(replies: ReplyStore) -> None:
    model = CachedChatModel(NumberingModel(), replies)
    sources = [*map(str, range(8)), secrets.token_hex(5000)]
    kept = await asyncio.gather(*(ask(model, source) for source in sources), return_exceptions=True)
    assert [type(one) for one in kept] == [TimedReply] * 8 + [ReplyNotStorableError]
    await model.close()


async def test_the_name_of_a_turns_own_model_may_be_of_any_length(replies: ReplyStore) -> None:
    counter = NumberingModel()
    model = CachedChatModel(counter, replies)
    question = replace(QUESTION, model=secrets.token_hex(50_000))
    source = RequestSource(owner="default/alice", source_id="t1", stage="extract")
    first = await model.for_source(source, question)(question, 0)
    assert await model.for_source(source, question)(question, 0) == first
    assert counter.calls == 1
    await model.close()


async def test_the_first_reply_stays(replies: ReplyStore) -> None:
    counter = NumberingModel()
    model = CachedChatModel(counter, replies)
    first, second = await asyncio.gather(ask(model, "t1"), ask(model, "t1"))
    assert first == second
    assert counter.calls == 2
    await model.close()
