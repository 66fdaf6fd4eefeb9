"""A search that asks models: for the order of its hits, and for other wordings of its question."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from mnemolog import AsyncMemoryClient, QueryError
from mnemolog.settings import Settings
from tests.support.builders.commits import added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.servers.openai_server import OpenAiServer
from tests.support.servers.search_replies import SearchReplies

pytestmark = pytest.mark.postgres
QUESTION = "Where is home"
FACTS = [
    "Alice is an engineer.",
    "Alice sold her old home.",
    "Home is where Alice lives: Bern.",
    "Her address is in Bern.",
]


@pytest.fixture
def replies() -> SearchReplies:
    return SearchReplies({QUESTION: ["address"]})


@pytest.fixture
def server(replies: SearchReplies) -> Iterator[OpenAiServer]:
    with OpenAiServer(replies) as server:
        yield server


@pytest_asyncio.fixture
async def facts(db: ProjectedDatabase) -> ProjectedDatabase:
    await db.apply(*(commit(f"t{number}", added(text), at=day(number)) for number, text in enumerate(FACTS)))
    return db


@pytest.fixture
def settings(facts: ProjectedDatabase, server: OpenAiServer) -> Settings:
    return Settings(
        postgres=facts.url, provider="openai", base_url=server.base_url, chat_model="asked", search_model_timeout=60.0
    )


@pytest_asyncio.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncMemoryClient]:
    async with AsyncMemoryClient(settings=settings, now=lambda: day(9)) as memory:
        yield memory


def measured(phase: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_client_search_seconds_count", {"phase": phase}) or 0


def hits_found_by(name: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_client_search_hits_total", {"found_by": name}) or 0


async def found(client: AsyncMemoryClient, question: str = QUESTION, **options: Any) -> list[str]:
    result = await client.search(question, user_id="alice", **options)
    return [hit.fact.text for hit in result]


async def test_what_found_each_hit_is_counted(client: AsyncMemoryClient) -> None:
    """Whether the ranks of the signals are asked for or not."""
    for ranks in (False, True):
        before = {name: hits_found_by(name) for name in ("words", "both")}
        with_home = [text for text in await found(client, "home", ranks=ranks) if "home" in text.lower()]
        assert sum(hits_found_by(name) - before[name] for name in before) == len(with_home) == 2


async def test_a_model_orders_the_hits(client: AsyncMemoryClient) -> None:
    before = measured("rerank")
    question = "home where Alice is"
    fused = await found(client, question)
    ordered = await found(client, question, rerank=True)
    assert ordered[0] == FACTS[2]
    assert sorted(ordered) == sorted(fused)
    assert measured("rerank") == before + 1


async def test_a_hit_beyond_top_k_can_come_first(client: AsyncMemoryClient, replies: SearchReplies) -> None:
    fused = await found(client, top_k=20)
    replies.override = f'{{"numbers": [{len(fused)}]}}'
    assert await found(client, top_k=1) == fused[:1] != fused[-1:]
    assert await found(client, top_k=1, rerank=True) == fused[-1:]


async def test_what_the_order_of_a_model_leaves_out_is_told(client: AsyncMemoryClient) -> None:
    fused = [hit.fact.fact_id for hit in await client.search(QUESTION, user_id="alice", threshold=0.0)]
    for top_k in (1, 2, len(fused)):
        for rerank in (False, True):
            result = await client.search(
                QUESTION, user_id="alice", threshold=0.0, top_k=top_k, rerank=rerank, explain=True
            )
            over = result.left_out.get("over_top_k")
            assert (over.facts if over else 0) == len(fused) - top_k
            told = [hit.fact.fact_id for hit in result] + [*(over.first if over else ())]
            assert sorted(told) == sorted(fused)


async def test_other_wordings_find_what_the_question_has_no_word_of(client: AsyncMemoryClient) -> None:
    assert FACTS[3] not in (await found(client))[:2]
    assert FACTS[3] in (await found(client, variants=1))[:3]
    result = await client.search(QUESTION, user_id="alice", variants=1)
    (by_address,) = (hit for hit in result if hit.fact.text == FACTS[3])
    assert by_address.score.text_part > 0
    assert result.notice is None


@pytest.mark.parametrize("reply", ["", "no", '{"numbers": [99], "wordings": 1}'])
async def test_a_wrong_reply_leaves_the_search_as_it_is_and_says_so(
    client: AsyncMemoryClient, replies: SearchReplies, reply: str
) -> None:
    fused = await found(client)
    replies.override = reply
    result = await client.search(QUESTION, user_id="alice", rerank=True, variants=2)
    assert [hit.fact.text for hit in result] == fused
    assert result.notice is not None
    assert "not reranked: the reply of the model is not valid" in result.notice
    assert "without other wordings: the reply of the model is not valid" in result.notice


async def test_a_model_that_is_late_is_not_waited_for(settings: Settings, server: OpenAiServer) -> None:
    late = settings.model_copy(update={"search_model_timeout": 0.2})
    async with AsyncMemoryClient(settings=late, now=lambda: day(9)) as memory:
        fused = await found(memory)
        server.latency = 30.0
        result = await memory.search(QUESTION, user_id="alice", rerank=True)
        assert [hit.fact.text for hit in result] == fused
        assert result.notice == "not reranked: the model did not answer within 0.2 s"
        server.latency = 0.0


async def test_without_a_model_the_search_says_what_to_set(settings: Settings) -> None:
    offline = settings.model_copy(update={"provider": "offline"})
    async with AsyncMemoryClient(settings=offline, now=lambda: day(9)) as memory:
        for _ in range(2):
            result = await memory.search(QUESTION, user_id="alice", rerank=True)
            assert len(result) > 0
            assert "not reranked: no model is set that orders hits" in (result.notice or "")


async def test_nothing_found_is_nothing_to_order(client: AsyncMemoryClient, server: OpenAiServer) -> None:
    assert list(await client.search(QUESTION, user_id="nobody", rerank=True)) == []
    assert server.requests["chat"] == 0


@pytest.mark.parametrize("wrong", [{"variants": -1}, {"variants": 6}, {"variants": True}, {"rerank": "yes"}])
async def test_what_cannot_be_asked_is_refused(client: AsyncMemoryClient, wrong: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match=next(iter(wrong))):
        await found(client, **wrong)
