"""A query without a vector is searched by words, with a notice; a missing package is looked for once."""

import logging
from collections.abc import Sequence

import pytest
from prometheus_client import REGISTRY

from mnemolog.client import search_models
from mnemolog.client.search_models import QueryEmbedder, VectorCache
from mnemolog.streams.llm.ports import Embeddings, PromptRefusedError, ProviderConfigurationError
from mnemolog.streams.settings import StreamsSettings
from tests.support.builders.commits import pseudo_random_vector


class CountingEmbedder:
    """Gives each text a vector of its own; refuses as often as it is told to."""

    model = "counting"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.refusals = 0

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port
        self.calls.append([*texts])
        if self.refusals:
            self.refusals -= 1
            raise PromptRefusedError("http_400", "no")
        return Embeddings(vectors=tuple(pseudo_random_vector(text) for text in texts))

    async def close(self) -> None: ...


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> CountingEmbedder:
    """The embedder that is configured."""
    embedder = CountingEmbedder()
    monkeypatch.setattr(search_models, "build_embedder", lambda _: embedder)
    return embedder


def looked_up(outcome: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_client_query_vectors_total", {"outcome": outcome}) or 0


async def test_a_wrong_configuration_is_told_each_time_and_tried_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[StreamsSettings] = []

    def build(settings: StreamsSettings) -> None:
        tried.append(settings)
        raise ProviderConfigurationError("a package is missing")

    monkeypatch.setattr(search_models, "build_embedder", build)
    embedder = QueryEmbedder(StreamsSettings())
    with caplog.at_level(logging.WARNING, logger="mnemolog"):
        answers = [await embedder.embed("home") for _ in range(3)]
    assert answers == [((), "a package is missing")] * 3
    assert len(tried) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "search_without_vectors reason='a package is missing'"
    ]


async def test_a_query_that_is_asked_again_needs_no_embedder(counting: CountingEmbedder) -> None:
    before = looked_up("hit"), looked_up("miss")
    embedder = QueryEmbedder(StreamsSettings())
    first = await embedder.embed("home")
    assert [await embedder.embed(text) for text in ("home", "work", "home")] == [
        first,
        ((pseudo_random_vector("work"),), None),
        first,
    ]
    assert counting.calls == [["home"], ["work"]]
    assert (looked_up("hit"), looked_up("miss")) == (before[0] + 2, before[1] + 2)


async def test_a_refusal_is_not_kept(counting: CountingEmbedder) -> None:
    counting.refusals = 1
    embedder = QueryEmbedder(StreamsSettings())
    assert await embedder.embed("home") == ((), "http_400: no")
    assert await embedder.embed("home") == ((pseudo_random_vector("home"),), None)


async def test_the_texts_of_a_query_are_one_call(counting: CountingEmbedder) -> None:
    embedder = QueryEmbedder(StreamsSettings())
    await embedder.embed("home")
    vectors, notice = await embedder.embed("home", "house", "flat", "house")
    assert vectors == tuple(map(pseudo_random_vector, ("home", "house", "flat", "house")))
    assert notice is None
    assert counting.calls == [["home"], ["house", "flat"]]


async def test_where_the_embedder_is_away_the_vectors_that_are_known_serve(counting: CountingEmbedder) -> None:
    embedder = QueryEmbedder(StreamsSettings())
    await embedder.embed("home")
    counting.refusals = 1
    assert await embedder.embed("home", "house") == ((pseudo_random_vector("home"),), "http_400: no")


def test_the_vector_that_was_asked_for_longest_ago_goes_first() -> None:
    cache = VectorCache(2)
    for text in ("one", "two"):
        cache.put("m", text, pseudo_random_vector(text))
    assert cache.get("m", "one")
    cache.put("m", "three", pseudo_random_vector("three"))
    assert [cache.get("m", text) is not None for text in ("one", "two", "three")] == [True, False, True]


def test_each_model_has_its_own_vectors() -> None:
    cache = VectorCache()
    cache.put("m", "home", pseudo_random_vector("home"))
    assert cache.get("other", "home") is None
    cache.put("m", "\ud800", pseudo_random_vector("lone surrogate"))
    assert cache.get("m", "\ud800")
