"""Vectors that are kept in a file."""

from collections.abc import Sequence
from pathlib import Path

from mnemolog.streams.llm.ports import Embeddings
from tests.recall.embedding_cache import cached
from tests.support.builders.commits import pseudo_random_vector


class CountingEmbedder:
    """Gives each text a vector of its own and keeps the texts that it was asked for."""

    def __init__(self, model: str = "counting") -> None:
        self.model = model
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port
        self.asked += texts
        return Embeddings(vectors=tuple(pseudo_random_vector(text, model=self.model) for text in texts))

    async def close(self) -> None: ...


async def test_a_text_is_embedded_once_over_several_runs(tmp_path: Path) -> None:
    asked = []
    for _ in range(2):
        inner = CountingEmbedder()
        with cached(inner, tmp_path / "new" / "vectors.sqlite") as embedder:
            found = await embedder.embed(["a", "b", "a"])
        assert found.vectors == tuple(pseudo_random_vector(text, model="counting") for text in "aba")
        asked.append(inner.asked)
    assert asked == [["a", "b"], []]


async def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    for model in ("one", "other"):
        with cached(CountingEmbedder(model), tmp_path / "vectors.sqlite") as embedder:
            (vector,) = (await embedder.embed(["a"])).vectors
        assert vector.model == model
