"""Replies of models that are kept in a folder."""

from collections.abc import Sequence
from pathlib import Path

from mnemolog.streams.llm.ports import Embeddings, Usage
from tests.quality.model_sources import RecordedEmbedder
from tests.support.builders.commits import pseudo_random_vector


class CountingEmbedder:
    """Gives each text a vector of its own and keeps the texts that it was asked for."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port
        self.asked += texts
        vectors = tuple(pseudo_random_vector(text, model=self.model) for text in texts)
        return Embeddings(vectors=vectors, usage=Usage(input_tokens=3 * len(texts)))

    async def close(self) -> None: ...


async def test_a_text_is_embedded_once_over_several_runs_of_a_model(tmp_path: Path) -> None:
    asked = []
    for model in ("one", "one", "other"):
        live = CountingEmbedder(model)
        found = await RecordedEmbedder(tmp_path, model, live).embed(["a", "b", "a"])
        assert found.vectors == tuple(pseudo_random_vector(text, model=model) for text in "aba")
        assert found.usage.input_tokens == 9
        asked.append(live.asked)
    assert asked == [["a", "b"], [], ["a", "b"]]
