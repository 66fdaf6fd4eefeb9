"""The vectors of questions that were asked before."""

import hashlib
from collections import OrderedDict
from typing import Final

from mnemolog.client.metrics import QUERY_VECTORS
from mnemolog.schemas.vector import Vector

MAX_VECTORS: Final = 1000
"""With 1536 dimensions they take 3 MB."""


class VectorCache:
    """The vectors of the questions that were asked last, each under its model; what is looked up counts as asked."""

    def __init__(self, max_vectors: int = MAX_VECTORS) -> None:
        self._max_vectors = max_vectors
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()

    def get(self, model: str, text: str) -> Vector | None:
        """The vector that was put for the text; counted as a hit or a miss."""
        vector = self._vectors.get(key := _key(model, text))
        QUERY_VECTORS.labels(outcome="miss" if vector is None else "hit").inc()
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, model: str, text: str, vector: Vector) -> None:
        self._vectors[_key(model, text)] = vector
        if len(self._vectors) > self._max_vectors:
            self._vectors.popitem(last=False)


def _key(model: str, text: str) -> bytes:
    """A digest: a text may be long, and may be one that no file should hold."""
    return hashlib.sha256(f"{model}\0{text}".encode("utf-8", "surrogatepass")).digest()
