"""What a search does around its statement: the period, signals of a hit, vectors of questions, and slow models."""

import asyncio
import logging
import math
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

import pytest
from prometheus_client import REGISTRY

from mnemolog.client import search_models
from mnemolog.client.search import (
    RERANKED,
    FoundBy,
    SearchAids,
    found_by,
    mean_vector,
    search_options,
)
from mnemolog.client.search_models import KeptModel, SearchModels, VectorCache
from mnemolog.projections.search.search import Hit
from mnemolog.schemas.filters import EVERYTHING
from mnemolog.settings import Settings
from mnemolog.streams.llm.ports import Embeddings, PromptRefusedError, ProviderConfigurationError
from mnemolog.streams.llm.rerank import Reranker
from mnemolog.streams.settings import StreamsSettings
from tests.support.builders.commits import pseudo_random_vector, vector
from tests.support.builders.hits import a_hit

FIRST, LAST = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "given", [("2026-03-01", "2026-04-01"), [date(2026, 3, 1), LAST], [FIRST, "2026-04-01T00:00:00Z"]]
)
def test_days_and_times_are_taken_as_everywhere(given: list[str]) -> None:
    assert search_options({"period": given}).period == (FIRST, LAST)


def test_an_argument_of_facts_that_is_false_may_stand_in_a_search_of_turns() -> None:
    assert not SearchAids.read({"include": "turns", "rerank": False}, EVERYTHING).facts


def test_the_mean_of_vectors_has_length_one_and_is_the_first_where_they_cancel_each_other_out() -> None:
    assert mean_vector([vector(1, 2, 3)]) == vector(1, 2, 3)
    assert mean_vector([vector(1, 0), vector(0, 1)]).values == pytest.approx([math.sqrt(0.5)] * 2, abs=1e-3)
    mean = mean_vector([vector(1, 0), vector(1, 0.1), vector(1, -0.5)])
    assert math.hypot(*mean.values) == pytest.approx(1, abs=2e-3)
    assert mean_vector([vector(1, 0), vector(-1, 0)]) == vector(1, 0)


@pytest.mark.parametrize(
    ("text_score", "similarity", "expected"),
    [(1, 0.5, "both"), (1, 0.1, "words"), (1, None, "words"), (None, 0.5, "vector"), (None, 0.1, "other"),
     (None, None, "other")],
)  # fmt: skip
def test_a_vector_finds_from_the_threshold_on(
    text_score: int | None, similarity: float | None, expected: FoundBy
) -> None:
    assert found_by(a_hit(text_score=text_score, similarity=similarity).score, 0.5) == expected


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
    embedder = SearchModels(StreamsSettings())
    with caplog.at_level(logging.WARNING, logger="mnemolog"):
        answers = [await embedder.embed("home") for _ in range(3)]
    assert answers == [((), "a package is missing")] * 3
    assert len(tried) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "search_without_vectors reason='a package is missing'"
    ]


async def test_what_was_embedded_before_is_not_embedded_again(counting: CountingEmbedder) -> None:
    home, work, house, flat = (pseudo_random_vector(text) for text in ("home", "work", "house", "flat"))
    before = looked_up("hit"), looked_up("miss")
    embedder = SearchModels(StreamsSettings())
    answers = [await embedder.embed(text) for text in ("home", "home", "work", "home")]
    assert answers == [((home,), None), ((home,), None), ((work,), None), ((home,), None)]
    assert (looked_up("hit"), looked_up("miss")) == (before[0] + 2, before[1] + 2)
    assert await embedder.embed("home", "house", "flat", "house") == ((home, house, flat, house), None)
    assert counting.calls == [["home"], ["work"], ["house", "flat"]]


async def test_a_refusal_is_not_kept_and_the_vectors_that_are_known_serve(counting: CountingEmbedder) -> None:
    home, house = pseudo_random_vector("home"), pseudo_random_vector("house")
    embedder = SearchModels(StreamsSettings())
    counting.refusals = 1
    assert await embedder.embed("home") == ((), "http_400: no")
    assert await embedder.embed("home") == ((home,), None)
    counting.refusals = 1
    assert await embedder.embed("home", "house") == ((home,), "http_400: no")
    assert await embedder.embed("home", "house") == ((home, house), None)


def test_the_vector_that_was_asked_for_longest_ago_goes_first_and_each_model_has_its_own() -> None:
    cache = VectorCache(2)
    for text in ("one", "\ud800"):
        cache.put("m", text, pseudo_random_vector(text))
    assert cache.get("m", "one")
    assert cache.get("other", "one") is None
    cache.put("m", "three", pseudo_random_vector("three"))
    assert [cache.get("m", text) is not None for text in ("one", "\ud800", "three")] == [True, False, True]


class LastFirst(Reranker):
    def __init__(self) -> None: ...

    async def rerank(self, question: str, texts: Sequence[str]) -> tuple[int, ...]:  # noqa: ARG002 -- the port
        return tuple(reversed(range(len(texts))))

    async def close(self) -> None: ...


async def test_a_model_that_loads_longer_than_a_search_waits_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    may_load, loads = threading.Event(), []

    def build(_: object) -> LastFirst:
        loads.append(1)
        may_load.wait(10)
        return LastFirst()

    monkeypatch.setattr(search_models, "build_reranker", build)
    models = SearchModels(Settings(search_model_timeout=0.05))
    hits = tuple(a_hit(str(number)) for number in range(RERANKED + 2))
    for _ in range(3):
        kept, late = await models.rerank("question", hits)
        assert kept == hits
        assert late is not None
    may_load.set()
    ordered: tuple[Hit, ...] = hits
    notice: str | None = "not yet"
    async with asyncio.timeout(10):
        while notice is not None:
            ordered, notice = await models.rerank("question", hits)
    assert ordered == (*hits[RERANKED - 1 :: -1], *hits[RERANKED:])  # those beyond stay behind those that are ordered
    assert len(loads) == 1
    await models.close()


async def test_a_failure_that_may_pass_is_not_kept() -> None:
    made: Iterator[OSError | LastFirst] = iter([OSError("no space"), LastFirst()])

    def build() -> LastFirst:
        found = next(made)
        if isinstance(found, OSError):
            raise found
        return found

    kept = KeptModel(build)
    with pytest.raises(OSError, match="no space"):
        await kept.get()
    assert (await kept.get()) is (await kept.get())
    await kept.close()
