"""An embedder of which only equal texts are alike, and those that a test says."""

from collections.abc import Mapping, Sequence

from mnemolog.schemas.facts import content_hash
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.ports import Embeddings
from tests.support.builders.commits import MODEL, vector


class UnlikeEmbedder:
    """Its vectors are alike for equal texts only: what is compared is compared by its key.

    And for each of `near` and the text that it is near to.
    """

    model = MODEL

    def __init__(self, near: Mapping[str, str] | None = None) -> None:
        self._near = near or {}
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port's signature
        self.texts += texts
        return Embeddings(vectors=tuple(map(self._vector, texts)))

    def _vector(self, text: str) -> Vector:
        weights = {_axis(text): 1.0}
        if text in self._near:
            weights = {_axis(text): 0.3, _axis(self._near[text]): 1.0}
        return vector(*(weights.get(place, 0.0) for place in range(500)))

    async def close(self) -> None:
        return None


def _axis(text: str) -> int:
    return int(content_hash(text), 16) % 500
