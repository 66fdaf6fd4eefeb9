"""The offline embedder: MiniLM on this machine's processor, no server and no key."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.errors import ProviderConfigurationError
from mnemolog.streams.llm.ports import Embeddings, Usage

if TYPE_CHECKING:
    from mnemolog.streams.llm.minilm_network import MiniLmNetwork

MODEL_NAME: Final = "all-MiniLM-L6-v2-int8"
_BATCH: Final = 32  # larger ones are no faster on two cores and hold the thread for longer


class MiniLmEmbedder:
    """Embeds texts of up to 256 tokens; of a longer one the beginning. English only: other languages land anywhere.

    The same text gives the same vector, alone or in company. Work is done in one thread of its own,
    a call at a time, so that the event loop goes on; `threads` share one batch.
    Raises `ProviderConfigurationError` where the extra `offline` is not installed.
    """

    model: str = MODEL_NAME

    def __init__(self, *, threads: int = 2) -> None:
        self._network = _load(threads)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="minilm")

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """As `Embedder`."""
        if not texts:
            return Embeddings(vectors=())
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, tuple(texts))

    async def close(self) -> None:
        """Calls that wait are cancelled, the one that runs is waited for."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    def _embed(self, texts: tuple[str, ...]) -> Embeddings:
        tokens = self._network.tokenize(texts)
        vectors: dict[int, Vector] = {}
        for batch in _by_length([len(ids) for ids in tokens]):
            rows = self._network.embed_tokens([tokens[index] for index in batch])
            vectors |= {
                index: Vector.from_values(MODEL_NAME, row.tolist()) for index, row in zip(batch, rows, strict=True)
            }
        return Embeddings(
            vectors=tuple(vectors[index] for index in range(len(texts))),
            usage=Usage(input_tokens=sum(map(len, tokens))),
        )


def _by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices in batches of similar length: short texts are not padded to a long one's length."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for start in range(0, len(order), _BATCH):
        yield order[start : start + _BATCH]


def _load(threads: int) -> "MiniLmNetwork":
    try:
        # Only here: its packages are an extra.
        from mnemolog.streams.llm.minilm_network import MiniLmNetwork  # noqa: PLC0415

        return MiniLmNetwork(threads)
    except ImportError as error:
        raise ProviderConfigurationError(
            f"the offline embedder lacks a package ({error}): pip install 'mnemolog[offline]'"
        ) from error
