"""The ports to models that a search may ask."""

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Orders texts by how well each answers a question."""

    @property
    def model(self) -> str: ...

    async def rerank(self, question: str, texts: Sequence[str]) -> tuple[int, ...]:
        """The indices of the texts, each once, the best first; the order of equals stays.

        Raises `ProviderError`. It may wait as long as its server does: the caller sets the limit.
        """

    async def close(self) -> None: ...


class QuestionVariants(Protocol):
    """Says a question in other words."""

    @property
    def model(self) -> str: ...

    async def variants(self, question: str, count: int) -> tuple[str, ...]:
        """At most `count` other wordings, none of them the question. Raises `ProviderError`; may wait as a reranker."""

    async def close(self) -> None: ...
