"""An embedder of which only equal texts are alike."""

from collections.abc import Sequence

from mnemolog.schemas.facts import content_hash
from mnemolog.streams.llm.ports import Embeddings
from tests.support.builders.commits import MODEL, vector


class UnlikeEmbedder:
    """Its vectors are alike for equal texts only: what is compared is compared by its key."""

    model = MODEL

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port's signature
        axes = (int(content_hash(text), 16) % 500 for text in texts)
        return Embeddings(vectors=tuple(vector(*(float(place == axis) for place in range(500))) for axis in axes))

    async def close(self) -> None:
        return None
