"""Several servers for the models: who is asked, when the first one is asked again, and what is shown of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from mnemolog.streams.llm import openai_models
from mnemolog.streams.llm.ask import Answer, step_of
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.calls import RetrySettings
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.openai_models import Endpoint, OpenAiChatModel, OpenAiEmbedder, endpoint_of
from mnemolog.streams.llm.ports import PromptRefusedError, RequestSource
from mnemolog.streams.settings import Fallback, StreamsSettings
from tests.simulation.servers.models import StoredReplies
from tests.support.builders.prompts import extraction, user
from tests.support.polling import eventually
from tests.support.servers.openai_server import OpenAiServer, hash_embeddings

PROMPT = extraction_prompt(extraction(user("I live in Berlin.")))
PACE = RetrySettings(initial_delay=0.005, max_delay=0.02, failures_to_pause=4)
SOURCE = RequestSource(owner="default/ana", source_id="t1", stage="extract", position="turns/0/1")
AWAY = 0.3


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[OpenAiServer, OpenAiServer]]:
    monkeypatch.setattr(openai_models, "AWAY_SECONDS", AWAY)
    with OpenAiServer() as first, OpenAiServer() as second:
        first.keep_bodies = second.keep_bodies = True
        yield first, second


def endpoint(first: OpenAiServer, *others: OpenAiServer, timeout: float = 5.0, **problems: str) -> Endpoint:
    one = Endpoint(base_url=first.base_url, api_key="k", timeout=timeout, retry=PACE, problems=problems)
    fallbacks = tuple(
        replace(one, name=f"other{number or ''}", base_url=other.base_url, chat_model="small")
        for number, other in enumerate(others)
    )
    return replace(one, fallbacks=fallbacks)


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        *(({"mode": "status", "status": status}, f"http_{status}") for status in (401, 402, 403, 404, 429, 503)),
        ({"mode": "cut"}, "connection"),
        ({"mode": "html"}, "not_json"),
    ],
    ids=str,
)
async def test_the_next_server_is_asked_for_a_while(
    servers: tuple[OpenAiServer, OpenAiServer], failure: dict[str, Any], why: str
) -> None:
    first, second = servers
    asked = endpoint(first, second)
    chat = OpenAiChatModel(asked, "large")
    first.fail(**failure, times=None)
    replies = [await chat.complete(PROMPT) for _ in range(3)]
    assert {(reply.endpoint, reply.model) for reply in replies} == {("other", "small")}
    assert (first.requests["chat"], second.requests["chat"]) == (1, 3)
    assert why in asked.problems["chat large (fallback)"]
    assert asked.problems["chat large (fallback)"].startswith("other answers")
    first.failures.clear()
    await asyncio.sleep(AWAY)
    assert (await chat.complete(PROMPT)).endpoint is None
    assert not asked.problems
    await chat.close()


async def test_a_server_that_is_not_there_is_passed_over(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    asked = replace(endpoint(*servers), base_url="http://127.0.0.1:9/v1")
    chat = OpenAiChatModel(asked, "large")
    assert (await chat.complete(PROMPT)).endpoint == "other"
    await chat.close()


async def test_a_server_says_how_long_it_is_away(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    first, second = servers
    chat = OpenAiChatModel(endpoint(first, second), "large")
    first.fail(mode="status", status=429, retry_after="30")
    await chat.complete(PROMPT)
    await asyncio.sleep(AWAY)
    assert (await chat.complete(PROMPT)).endpoint == "other"
    await chat.close()


async def test_a_server_that_hangs_costs_one_timeout(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    first, second = servers
    chat = OpenAiChatModel(endpoint(first, second, timeout=0.2), "large")
    first.fail(mode="hang", times=None)
    for _ in range(3):
        assert (await chat.complete(PROMPT)).endpoint == "other"
    assert first.requests["chat"] == 1
    await chat.close()


POISON = extraction_prompt(extraction(user("I drink poison.")))


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_a_server_refuses_another_may_take_and_the_first_is_asked_next(
    servers: tuple[OpenAiServer, OpenAiServer], status: int
) -> None:
    first, second = servers
    asked = endpoint(first, second)
    chat = OpenAiChatModel(asked, "large")
    first.fail(mode="status", status=status, times=None, containing="poison")
    assert (await chat.complete(POISON)).endpoint == "other"
    assert f"http_{status}" in asked.problems["chat large (fallback)"]
    assert (await chat.complete(PROMPT)).endpoint is None
    assert not asked.problems
    second.fail(mode="status", status=status, times=None, containing="poison")
    with pytest.raises(PromptRefusedError, match=f"http_{status}"):
        await chat.complete(POISON)
    assert not asked.problems
    await chat.close()


async def test_what_a_model_refuses_to_say_goes_to_no_other(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    first, second = servers
    chat = OpenAiChatModel(endpoint(first, second), "large")
    first.fail(mode="refusal", times=None, containing="poison")
    with pytest.raises(PromptRefusedError, match="model_refusal"):
        await chat.complete(POISON)
    assert not second.requests["chat"]
    await chat.close()


async def test_what_is_shown_is_why_calls_fail_now(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    first, second = servers
    asked = endpoint(first, second)
    chat = OpenAiChatModel(asked, "large")
    first.fail(mode="status", status=429, times=None)
    await chat.complete(PROMPT)
    assert [*asked.problems] == ["chat large (fallback)"]
    second.fail(mode="status", status=429, times=None)
    waiting = asyncio.create_task(chat.complete(PROMPT))
    await eventually(lambda: [*asked.problems] == ["extract large"])
    assert "quota" in asked.problems["extract large"]
    for server in servers:
        server.failures.clear()
        server.fail(mode="cut", times=None)
    await eventually(lambda: "no server answers" in asked.problems["extract large"])
    for server in servers:
        server.failures.clear()
    await asyncio.wait_for(waiting, 10)
    assert "extract large" not in asked.problems
    await chat.close()


async def test_where_all_fail_the_first_one_is_named(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    first, second = servers
    asked = endpoint(first, second)
    chat = OpenAiChatModel(asked, "large")
    first.fail(mode="status", status=401, times=None)
    second.fail(mode="status", status=503, times=None)
    waiting = asyncio.create_task(chat.complete(PROMPT))
    await eventually(lambda: chat.paused)
    assert "correct MNEMOLOG_API_KEY" in asked.problems["extract large"]
    second.failures.clear()
    assert (await asyncio.wait_for(waiting, 10)).endpoint == "other"
    await chat.close()


async def test_the_provenance_names_the_server_that_answered_also_for_a_second_delivery(
    servers: tuple[OpenAiServer, OpenAiServer],
) -> None:
    first, second = servers
    first.fail(mode="status", status=401, times=None)
    chat = CachedChatModel(OpenAiChatModel(endpoint(first, second), "large"), StoredReplies())
    for _ in range(2):
        reply = await chat.for_source(SOURCE, PROMPT)(PROMPT, 0)
        step = step_of("extract", "extract-1", Answer(value=1, dropped=(), replies=(reply,)))
        assert (step.model, step.notes) == ("small", ("answered by the fallback other",))
    assert second.requests["chat"] == 1
    await chat.close()


async def test_a_fallback_embeds_what_the_first_server_embeds_alike(
    servers: tuple[OpenAiServer, OpenAiServer],
) -> None:
    first, second = servers
    embedder = OpenAiEmbedder(endpoint(first, second), "e")
    alone = (await embedder.embed(["a cat"])).vectors
    first.fail(mode="status", status=503, times=None)
    cached = CachedEmbedder(embedder, StoredReplies(), max_texts=8, max_wait=0, max_concurrent=1)
    result = await cached.embed(replace(SOURCE, stage="embed"), ("a cat",))
    assert (result.vectors, result.endpoint, result.model) == (alone, "other", "e")
    await cached.close()


def turned(texts: Sequence[str], dimensions: int) -> list[list[float]]:
    """Another model of the same size."""
    return [row[::-1] for row in hash_embeddings(texts, dimensions)]


@pytest.mark.parametrize("knows_the_first", [True, False])
async def test_two_embedding_models_are_never_mixed(*, knows_the_first: bool) -> None:
    with OpenAiServer() as first, OpenAiServer(embed=turned if knows_the_first else None) as second:
        asked = endpoint(first, second)
        embedder = OpenAiEmbedder(asked, "e")
        if knows_the_first:
            await embedder.embed(["a cat"])
        first.fail(mode="status", status=401, times=None)
        waiting = asyncio.create_task(embedder.embed(["a dog"]))
        await eventually(lambda: "embed e" in asked.problems)
        assert "MNEMOLOG_API_KEY" in asked.problems["embed e"]
        assert not waiting.done()
        first.failures.clear()
        assert (await asyncio.wait_for(waiting, 10)).endpoint is None
        await embedder.close()


def test_fallbacks_are_a_list_of_servers_without_secrets_in_their_names() -> None:
    given = [{"base_url": "http://10.0.0.2:8000/v1", "api_key": "sk-1", "embeds": True}, {"base_url": "https://x.org"}]
    settings = StreamsSettings.model_validate({"fallbacks": given, "api_key": SecretStr("k")})
    chat, embed = (endpoint_of(settings, embeds=embeds) for embeds in (False, True))
    assert [(one.name, one.api_key) for one in chat.fallbacks] == [("10.0.0.2:8000", "sk-1"), ("x.org", None)]
    assert [one.name for one in embed.fallbacks] == ["10.0.0.2:8000"]
    assert "sk-1" not in repr(settings) + repr(chat) + settings.model_dump_json()
    with pytest.raises(ValidationError, match="set MNEMOLOG_API_KEY"):
        Fallback(base_url="http://me:secret@x.org")
