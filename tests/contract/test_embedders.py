"""What every embedder promises, on each one there is."""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from mnemolog.streams.llm.factory import build_embedder, build_openai_chat_model
from mnemolog.streams.llm.minilm_embedder import MiniLmEmbedder
from mnemolog.streams.llm.openai_models import Endpoint, OpenAiEmbedder
from mnemolog.streams.llm.ports import Embedder, ProviderConfigurationError
from mnemolog.streams.settings import StreamsSettings
from tests.support.servers.openai_server import OpenAiServer

TEXTS = ["Alice lives in Berlin.", "", " ", "🎈👩‍👩‍👧", "我住在柏林", "word " * 20_000, "Bob has a dog called Rex."]
FLOAT16 = 2e-3  # how far rounding to float16 may move a length or a cosine


@pytest_asyncio.fixture(params=["openai", "minilm"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param == "minilm":
        minilm = MiniLmEmbedder()
        yield minilm
        await minilm.close()
        return
    with OpenAiServer() as server:
        remote = OpenAiEmbedder(Endpoint(base_url=server.base_url, api_key="k"), "test-embedding")
        yield remote
        await remote.close()


async def vectors(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    return [vector.data for vector in (await embedder.embed(texts)).vectors]


async def test_each_text_has_a_vector_of_the_model_and_of_length_one(embedder: Embedder) -> None:
    reply = await embedder.embed(TEXTS)
    assert {vector.model for vector in reply.vectors} == {embedder.model}
    assert len({vector.dimensions for vector in reply.vectors}) == 1
    lengths = [math.hypot(*vector.values) for vector in reply.vectors]
    assert lengths == pytest.approx([1.0] * len(TEXTS), abs=FLOAT16)
    assert reply.usage.input_tokens > 0
    nothing = await embedder.embed([])
    assert (nothing.vectors, nothing.usage.input_tokens) == ((), 0)


async def test_a_text_has_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    texts = TEXTS + [f"Person {index} moved to city {index} " + "and on " * index for index in range(0, 40, 4)]
    together = await vectors(embedder, texts)
    assert together == (await vectors(embedder, texts[::-1]))[::-1]
    assert together == [vector for text in texts for vector in await vectors(embedder, [text])]
    assert len(set(together)) >= len(texts) - 1  # nothing and white space may be the same


async def test_a_long_text_is_embedded_by_its_beginning(embedder: Embedder) -> None:
    start = "Alice lives in Berlin. " * 1000
    assert len(set(await vectors(embedder, [start + "The end.", start + "Another end."]))) == 1


async def test_like_texts_are_nearer_than_others(embedder: Embedder) -> None:
    reply = await embedder.embed(["Alice has a dog.", "Alice has a small dog.", "Interest rates rose sharply."])
    dog, small_dog, rates = (vector.values for vector in reply.vectors)
    assert sum(map(float.__mul__, dog, small_dog)) > sum(map(float.__mul__, dog, rates))


async def test_an_installation_without_the_extra_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mnemolog.streams.llm.minilm_embedder", raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ProviderConfigurationError, match=r"pip install 'mnemolog\[offline\]'"):
        build_embedder(StreamsSettings(embedding_provider="offline"))


def test_an_installation_without_openai_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("openai_models", "openai_client"):
        monkeypatch.delitem(sys.modules, f"mnemolog.streams.llm.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "openai", None)
    settings = StreamsSettings(provider="openai", base_url="http://localhost:1/v1")
    for build in (build_embedder, build_openai_chat_model):
        with pytest.raises(ProviderConfigurationError, match=r"pip install 'mnemolog\[openai\]'"):
            build(settings)
