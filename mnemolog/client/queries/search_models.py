"""The models that a search may ask: for other wordings of its question, and for the order of its hits."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from mnemolog.client.metrics import SearchPhase, search_phase
from mnemolog.client.queries.kept_model import KeptModel
from mnemolog.projections.logs import get_logger
from mnemolog.projections.search.hits import Hit
from mnemolog.streams.llm.errors import ProviderError
from mnemolog.streams.rerank.ports import QuestionVariants, Reranker
from mnemolog.streams.settings import StreamsSettings

log = get_logger(__name__)
RERANKED: Final = 50
"""Hits that a reranker orders at the most."""
R = TypeVar("R")


class SearchModels:
    """Asks a reranker and a model for wordings, each made at its first use and kept.

    A model that is missing, away, late or wrong raises nothing: the search goes on without it, and a notice says why.
    """

    def __init__(self, settings: StreamsSettings) -> None:
        self._reranker = KeptModel(lambda: _build_reranker(settings))
        self._variants = KeptModel(lambda: _build_variants(settings))
        self._timeout_seconds = settings.search_model_timeout

    async def rerank(self, question: str, hits: tuple[Hit, ...]) -> tuple[tuple[Hit, ...], str | None]:
        """The first hits in the order of the model, the others behind them; or as they are with a notice."""
        if not hits:
            return hits, None
        texts = [hit.fact.text for hit in hits[:RERANKED]]

        async def order() -> tuple[int, ...]:
            return await (await self._reranker.get()).rerank(question, texts)

        found, reason = await self._ask("rerank", order)
        if found is None:
            return hits, f"not reranked: {reason}"
        return (*(hits[index] for index in found), *hits[RERANKED:]), None

    async def wordings(self, question: str, count: int) -> tuple[tuple[str, ...], str | None]:
        """At most `count` other wordings of the question, or none with a notice."""
        if not count:
            return (), None

        async def variants() -> tuple[str, ...]:
            return await (await self._variants.get()).variants(question, count)

        found, reason = await self._ask("variants", variants)
        return (found, None) if found is not None else ((), f"without other wordings: {reason}")

    async def close(self) -> None:
        await self._reranker.close()
        await self._variants.close()

    async def _ask(self, phase: SearchPhase, call: Callable[[], Awaitable[R]]) -> tuple[R | None, str]:
        try:
            with search_phase(phase):
                async with asyncio.timeout(self._timeout_seconds):
                    return await call(), ""
        except TimeoutError:
            reason = f"the model did not answer within {self._timeout_seconds:g} s"
        except ProviderError as error:
            reason = str(error)
        log.warning("search_without_model", phase=phase, reason=reason)
        return None, reason


def _build_reranker(settings: StreamsSettings) -> Reranker:
    from mnemolog.streams.rerank.factory import build_reranker  # noqa: PLC0415 - only a search that asks loads it

    return build_reranker(settings)


def _build_variants(settings: StreamsSettings) -> QuestionVariants:
    from mnemolog.streams.rerank.factory import build_variants  # noqa: PLC0415 - only a search that asks loads it

    return build_variants(settings)
