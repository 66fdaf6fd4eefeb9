"""What models answered is asked for once: a turn that is delivered again gets the same, at no further cost."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
import pytest_asyncio

from mnemolog.projections.database import open_pool
from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.ports import (
    ChatMessage,
    EmbeddingResult,
    Embeddings,
    Prompt,
    PromptRefusedError,
    Reply,
    RequestSource,
    TimedReply,
    Usage,
)
from mnemolog.streams.metrics import PROMPT_TOKENS

pytestmark = pytest.mark.postgres

SOURCE = RequestSource(owner="default/alice", source_id="t1", stage="extract")
EMBEDDED = replace(SOURCE, stage="embed")
REFUSED = "what the server refuses"


def question(content: str) -> Prompt:
    messages = (ChatMessage(role="user", content=content),)
    return Prompt(purpose="extract", version="extract-1", messages=messages, schema={})


def counted_prompt_tokens() -> list[float]:
    """The tokens of prompts for this model so far, from the server's cache and fresh."""
    labels = {"purpose": "extract", "model": "talker-1"}
    children = [PROMPT_TOKENS.labels(result=result, **labels) for result in ("cached", "fresh")]
    return [sample.value for child in children for sample in child._samples() if sample.name == "_total"]


class ChangingChatModel:
    """A chat model that never says the same thing twice."""

    model = "talker"

    def __init__(self, costly: int | None = None) -> None:
        self.calls = 0
        self.costly = costly  # the number of a reply that uses more tokens than can be stored

    async def complete(self, prompt: Prompt) -> Reply:  # noqa: ARG002 -- the port's signature
        self.calls += 1
        usage = Usage(input_tokens=2**40 if self.calls == self.costly else 7, output_tokens=3, cached_tokens=5)
        return Reply(text=f"answer {self.calls}", model="talker-1", usage=usage)

    async def close(self) -> None:
        return


class ChangingEmbedder:
    """An embedder that never gives the same vector twice."""

    model = "counter"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self._given = 0

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port's signature
        self.calls.append(list(texts))
        if REFUSED in texts:
            raise PromptRefusedError("http_400", "no")
        return Embeddings(vectors=tuple(self._vector() for _ in texts), usage=Usage(input_tokens=len(texts)))

    async def close(self) -> None:
        return

    def _vector(self) -> Vector:
        self._given += 1
        return Vector.from_values("counter", [1.0, self._given])


@pytest_asyncio.fixture
async def replies(database: str) -> AsyncIterator[ReplyStore]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-recording", autocommit=True) as pool:
        yield ReplyStore(pool)


@pytest_asyncio.fixture
async def cached_embedder(replies: ReplyStore) -> AsyncIterator[tuple[CachedEmbedder, ChangingEmbedder]]:
    counter = ChangingEmbedder()
    recorder = CachedEmbedder(counter, replies, max_texts=256, max_wait=0.05, max_concurrent=2)
    yield recorder, counter
    await recorder.close()


async def test_a_model_is_asked_once_for_each_source_question_and_attempt(replies: ReplyStore) -> None:
    talker, before = ChangingChatModel(), counted_prompt_tokens()
    asked = question("Who is Alice?")
    first = await CachedChatModel(talker, replies).for_source(SOURCE, asked)(asked, 0)
    restarted = CachedChatModel(talker, replies)
    assert await restarted.for_source(SOURCE, asked)(asked, 0) == first
    assert (first.text, first.model, first.usage.input_tokens, talker.calls) == ("answer 1", "talker-1", 7, 1)
    assert first.usage.cached_tokens == 5
    assert [now - then for now, then in zip(counted_prompt_tokens(), before, strict=True)] == [5, 2]
    other = question("Who is Bob?")
    others = [
        await restarted.for_source(SOURCE, asked)(asked, 1),
        await restarted.for_source(SOURCE, other)(other, 0),
        await restarted.for_source(replace(SOURCE, source_id="t2"), asked)(asked, 0),
        await restarted.for_source(replace(SOURCE, owner="default/bob"), asked)(asked, 0),
    ]
    assert [reply.text for reply in others] == ["answer 2", "answer 3", "answer 4", "answer 5"]


async def test_each_model_that_a_question_names_is_asked(replies: ReplyStore) -> None:
    talker = ChangingChatModel()
    recorder = CachedChatModel(talker, replies)
    for model in (None, "finer", "finer", None):
        asked = replace(question("Who is Alice?"), model=model)
        await recorder.for_source(SOURCE, asked)(asked, 0)
    assert talker.calls == 2


async def test_the_name_of_a_turns_own_model_may_be_of_any_length(replies: ReplyStore) -> None:
    talker = ChangingChatModel()
    model = CachedChatModel(talker, replies)
    asked = replace(question("Who is Alice?"), model=secrets.token_hex(50_000))
    first = await model.for_source(SOURCE, asked)(asked, 0)
    assert await model.for_source(SOURCE, asked)(asked, 0) == first
    assert talker.calls == 1


@pytest.mark.parametrize("fault", ["more tokens than can be stored", "a key that is too large for the index"])
async def test_a_reply_that_cannot_be_stored_spoils_no_other(replies: ReplyStore, fault: str) -> None:
    is_costly = fault == "more tokens than can be stored"
    talker, asked = ChangingChatModel(costly=5 if is_costly else None), question("Who is Alice?")
    model = CachedChatModel(talker, replies)
    sources = [*map(str, range(8)), "8" if is_costly else secrets.token_hex(5000)]
    asking = (model.for_source(replace(SOURCE, source_id=one), asked)(asked, 0) for one in sources)
    kept = await asyncio.gather(*asking, return_exceptions=True)
    assert sorted(type(one).__name__ for one in kept) == ["ReplyNotStorableError", *["TimedReply"] * 8]


async def test_each_of_many_turns_gets_its_own_reply(replies: ReplyStore) -> None:
    talker, asked = ChangingChatModel(), question("Who is Alice?")
    model = CachedChatModel(talker, replies)

    async def ask_all() -> list[TimedReply]:
        sources = [replace(SOURCE, source_id=f"t{number}") for number in range(300)]
        return await asyncio.gather(*(model.for_source(source, asked)(asked, 0) for source in sources))

    many = await ask_all()
    assert len({reply.text for reply in many}) == talker.calls == 300
    assert await ask_all() == many
    assert talker.calls == 300


async def test_texts_are_embedded_once_a_source(cached_embedder: tuple[CachedEmbedder, ChangingEmbedder]) -> None:
    recorder, counter = cached_embedder
    first = await recorder.embed(EMBEDDED, ("tea", "coffee"))
    assert await recorder.embed(EMBEDDED, ("tea", "coffee")) == first
    assert counter.calls == [["tea", "coffee"]]
    await recorder.embed(EMBEDDED, ("tea",))
    await recorder.embed(replace(EMBEDDED, source_id="t2"), ("tea", "coffee"))
    assert len(counter.calls) == 3


async def test_a_refused_text_spoils_no_other_turn(cached_embedder: tuple[CachedEmbedder, ChangingEmbedder]) -> None:
    recorder, counter = cached_embedder
    sources = [replace(EMBEDDED, source_id=f"t{number}") for number in range(3)]
    texts = [("tea",), (REFUSED,), ("coffee", "cake")]
    waits = [recorder.embed(source, mine) for source, mine in zip(sources, texts, strict=True)]
    tea, refused, cake = await asyncio.gather(*waits, return_exceptions=True)
    assert isinstance(refused, PromptRefusedError)
    assert isinstance(tea, EmbeddingResult)
    assert isinstance(cake, EmbeddingResult)
    assert (len(tea.vectors), len(cake.vectors)) == (1, 2)
    assert counter.calls[0] == ["tea", REFUSED, "coffee", "cake"]


async def test_another_attempt_of_a_source_gets_for_nothing_what_the_first_one_paid_for(
    replies: ReplyStore, cached_embedder: tuple[CachedEmbedder, ChangingEmbedder]
) -> None:
    """A delivery after a restart is the same attempt."""
    first, again = (replace(SOURCE, position=f"turns/0/{offset}") for offset in (1, 2))
    asked, other, talker = question("Who is Alice?"), question("Who is Bob?"), ChangingChatModel()
    model = CachedChatModel(talker, replies)
    paid = await model.for_source(first, asked)(asked, 0)
    assert await model.for_source(first, asked)(asked, 0) == paid
    assert await model.for_source(again, asked)(asked, 0) == replace(paid, is_paid=True)
    assert [reply.text for reply in await model.unused_replies(first, None)] == [paid.text]
    assert [await model.unused_replies(*found) for found in ((first, asked), (again, None))] == [[], []]
    assert [reply.text for reply in await model.unused_replies(first, other)] == [paid.text]
    embedder, _ = cached_embedder
    vectors = await embedder.embed(replace(first, stage="embed"), ("tea",))
    assert await embedder.embed(replace(first, stage="embed"), ("tea",)) == vectors
    expected = replace(vectors, calls=0, tokens=0, is_paid=True)
    assert await embedder.embed(replace(again, stage="embed"), ("tea",)) == expected
