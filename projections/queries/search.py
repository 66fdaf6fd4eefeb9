"""Hybrid search: by vector and by words, fused by rank, in one statement."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.vector import Vector

RRF_K: Final = 10
"""The constant of reciprocal rank fusion. On real dialogues 5 to 10 finds more than the customary 60."""
CANDIDATES_PER_RANKING: Final = 50
MAX_LIMIT: Final = 2 * CANDIDATES_PER_RANKING
MAX_QUERY_CHARACTERS: Final = 10_000
MAX_QUERY_LEXEMES: Final = 256

SearchMode = Literal["hybrid", "lexical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Why a hit has its rank: `total` = `vector_part` + `text_part`, each 1 / (K + rank), 0 without a rank.

    `similarity` is the cosine, -1..1; `text_score` is Postgres' ts_rank of the words in common.
    """

    mode: SearchMode
    total: float
    vector_rank: int | None
    similarity: float | None
    vector_part: float
    text_rank: int | None
    text_score: float | None
    text_part: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A fact that was found, with its score."""

    fact: Fact
    score: Score

    def __repr__(self) -> str:
        near = "" if self.score.similarity is None else f", similarity={self.score.similarity:.2f}"
        return f"Hit({self.fact.text!r}, status={self.fact.status!r}{near}, fact_id='{self.fact.fact_id}')"


async def search(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    text: str,
    vector: Vector | None,
    *,
    limit: int = 10,
    at: datetime,
) -> list[Hit]:
    """The best facts for `text` that hold at `at`, best first.

    One that waits for a confirmation is found too, behind an active one of equal rank. `vector` is
    the embedding of `text`; facts embedded by another model are found by their words alone. Without it the search is
    lexical, which each score says. Any text is taken as plain words; of more than 10 000 characters the first ones
    count. Raises `QueryError` for a text without any character or a limit outside 1..100.
    """
    check_query(text, limit)
    parameters = {
        **scope.parameters,
        "text": _storable_query(text),
        "at": at,
        "vector": f"[{','.join(map(str, vector.values))}]" if vector else None,
        "model": vector.model if vector else None,
        "dimensions": vector.dimensions if vector else None,
        "k": RRF_K,
        "candidates": max(CANDIDATES_PER_RANKING, limit),
        "max_lexemes": MAX_QUERY_LEXEMES,
        "limit": limit,
    }
    mode: SearchMode = "hybrid" if vector else "lexical"
    hits: list[Hit] = []
    for row in await fetch_rows(conn, dict, read_query("search", "hybrid"), parameters):
        score = Score(mode=mode, **{name: row.pop(name) for name in _SCORE_COLUMNS})
        hits.append(Hit(fact=Fact(**row), score=score))
    return hits


def check_query(text: str, limit: int) -> None:
    """Raise `QueryError` for a text without any character or a limit outside 1..100."""
    if not 1 <= limit <= MAX_LIMIT:
        raise QueryError(f"limit is {limit}: choose 1 to {MAX_LIMIT}")
    _storable_query(text)


def _storable_query(text: str) -> str:
    """What Postgres can hold of `text`: no U+0000, no unpaired surrogate, a bounded length."""
    shown = text[:MAX_QUERY_CHARACTERS].replace("\x00", " ").encode("utf-8", "replace").decode().strip()
    if not shown:
        raise QueryError("the text to search for is empty: say in a few words what to look for, or list the facts")
    return shown


_SCORE_COLUMNS: Final = ("total", "vector_rank", "similarity", "vector_part", "text_rank", "text_score", "text_part")
