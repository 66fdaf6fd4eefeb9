"""The models that a search may ask, when they are slow to come or wrong."""

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from mnemolog.client import search_models
from mnemolog.client.search_models import RERANKED, KeptModel, SearchModels
from mnemolog.projections.search.search import Hit
from mnemolog.settings import Settings
from mnemolog.streams.llm.rerank import Reranker
from tests.support.builders.hits import a_hit


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
