"""A model that a client loads once and keeps."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from mnemolog.streams.llm.errors import ProviderConfigurationError
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.rerank.ports import QuestionVariants, Reranker

M = TypeVar("M", bound=Embedder | Reranker | QuestionVariants)


class KeptModel(Generic[M]):
    """A model that is made at its first use, in a thread, and kept; one that is configured wrongly is not tried again.

    Another failure to make it is raised to those who wait, and the next use tries again.
    """

    def __init__(self, build: Callable[[], M]) -> None:
        self._build = build
        self._made: asyncio.Task[M] | None = None

    async def get(self) -> M:
        """The model; whoever waits no longer leaves it to those who come later."""
        if self._made is None or self._may_be_tried_again(self._made):
            self._made = asyncio.create_task(asyncio.to_thread(self._build))
        return await asyncio.shield(self._made)

    async def close(self) -> None:
        """Close the model, if it was made."""
        if self._made is None:
            return
        (model,) = await asyncio.gather(self._made, return_exceptions=True)
        if not isinstance(model, BaseException):
            await model.close()

    @staticmethod
    def _may_be_tried_again(made: asyncio.Task[M]) -> bool:
        if not made.done():
            return False
        error = None if made.cancelled() else made.exception()
        return made.cancelled() or not (error is None or isinstance(error, ProviderConfigurationError))
