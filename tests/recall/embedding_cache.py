"""An embedder whose vectors are kept in a file, so that a second run asks no model."""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.ports import Embedder, Embeddings

MAX_KEPT: Final = 50_000
"""Vectors in the file; of 384 dimensions they take 60 MB."""
AT_ONCE: Final = 64
_SCHEMA: Final = "CREATE TABLE IF NOT EXISTS vectors (id BLOB PRIMARY KEY, dimensions INTEGER, data BLOB) WITHOUT ROWID"


class EmbeddingCache:
    """As `Embedder`, over another one; `misses` counts the texts that were embedded by it."""

    def __init__(self, embedder: Embedder, kept: sqlite3.Connection) -> None:
        self._embedder = embedder
        self._kept = kept
        self.misses = 0

    @property
    def model(self) -> str:
        return self._embedder.model

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:
        known = {text: found for text in dict.fromkeys(texts) if (found := self._get(text))}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            vectors = (await self._embedder.embed(some, divisible=divisible)).vectors
            known |= dict(zip(some, vectors, strict=True))
            self._put(zip(some, vectors, strict=True))
        self.misses += len(missing)
        return Embeddings(vectors=tuple(known[text] for text in texts))

    async def close(self) -> None:
        await self._embedder.close()

    def _get(self, text: str) -> Vector | None:
        row = self._kept.execute("SELECT dimensions, data FROM vectors WHERE id = ?", (self._id(text),)).fetchone()
        return None if row is None else Vector(model=self.model, dimensions=row[0], data=row[1])

    def _put(self, vectors: Iterator[tuple[str, Vector]]) -> None:
        rows = [(self._id(text), vector.dimensions, vector.data) for text, vector in vectors]
        with self._kept:
            (count,) = self._kept.execute("SELECT count(*) FROM vectors").fetchone()
            if count + len(rows) > MAX_KEPT:
                self._kept.execute("DELETE FROM vectors")
            self._kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def _id(self, text: str) -> bytes:
        return hashlib.sha256(f"{self.model}\0{text}".encode()).digest()


@contextmanager
def cached(embedder: Embedder, path: Path) -> Iterator[EmbeddingCache]:
    """The embedder with its vectors kept in the file `path`, which is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as kept:
        kept.execute(_SCHEMA)
        yield EmbeddingCache(embedder, kept)
