"""Hybrid search: by vector and by words, fused by rank, in one statement."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.fact_rows import ANY_OR_NONE, read_query
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
    floor: float = 0,
    at: datetime,
) -> list[Hit]:
    """The best facts for `text` that hold at `at`, or begin later, which is marked; best first.

    One that waits for a confirmation is found too, behind an active one of equal rank. `vector` is
    the embedding of `text`; facts embedded by another model are found by their words alone. A fact without a word in
    common is a hit from the similarity `floor` on, at 0 whatever it is. Without a vector the search is
    lexical, which each score says. Any text is taken as plain words; of more than 10 000 characters the first ones
    count. Raises `QueryError` for a text without any character, a limit outside 1..100 or a floor outside 0..1.
    """
    check_query(text, limit, floor)
    parameters = {
        **scope.parameters,
        "text": _storable_query(text),
        "at": at,
        "vector": vector,
        "model": vector.model if vector else None,
        "dimensions": vector.dimensions if vector else None,
        "floor": floor,
        "k": RRF_K,
        "candidates": max(CANDIDATES_PER_RANKING, limit),
        "max_lexemes": MAX_QUERY_LEXEMES,
        "limit": limit,
    }
    # The third one is for a scope that has lost its indexes between the first two.
    for indexed in (False, True, False) if scope.is_exact else (False,):
        query = search_query(scope, indexed=indexed)
        if rows := await fetch_rows(conn, dict, query, {**parameters, "indexed": indexed}):
            break
    return [_hit(row, "hybrid" if vector else "lexical") for row in rows]


def search_query(scope: ScopeFilter, *, indexed: bool = False) -> SQL:
    """The query of `search`: one gives hits of scopes that have indexes of their own, the other of all others."""
    live = {"live": "from_indexes" if indexed else "scanned"}
    return read_query("search", "hybrid", scope=scope.parameters, at="%(at)s", parts=live)


def _hit(row: dict[str, Any], mode: SearchMode) -> Hit:
    score = Score(mode=mode, **{name: row.pop(name) for name in _SCORE_COLUMNS})
    return Hit(fact=Fact(**row), score=score)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCount:
    """How many facts a scope holds, and how many stand beside it: in scopes that name its ids and one more.

    `ids` are the ids that those beside it name.
    """

    within: int
    beside: int
    ids: tuple[str, ...]


async def count_facts(conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, at: datetime) -> ScopeCount:
    """Count the facts that hold at `at` in `scope`, and those that it misses because it leaves out an id."""
    left_out = [name for name, value in scope.parameters.items() if not value]
    wider = {**scope.parameters, **dict.fromkeys(left_out, ANY_OR_NONE)}
    rows = await fetch_rows(conn, dict, read_query("search", "count_by_ids", scope=wider), {**wider, "at": at})
    found = [([name for name in left_out if name in row["ids"]], row["facts"]) for row in rows]
    return ScopeCount(
        within=sum(facts for ids, facts in found if not ids),
        beside=sum(facts for ids, facts in found if ids),
        ids=tuple(name for name in left_out if any(name in ids for ids, _ in found)),
    )


def check_query(text: str, limit: int, floor: float = 0) -> None:
    """Raise `QueryError` for a text without any character, a limit outside 1..100 or a floor outside 0..1."""
    if not 1 <= limit <= MAX_LIMIT:
        raise QueryError(f"limit is {limit}: choose 1 to {MAX_LIMIT}")
    if not 0 <= floor <= 1:
        raise QueryError(f"threshold is {floor}: choose 0 (no threshold) to 1, a cosine similarity")
    _storable_query(text)


def _storable_query(text: str) -> str:
    """What Postgres can hold of `text`: no U+0000, no unpaired surrogate, a bounded length."""
    asked = text[:MAX_QUERY_CHARACTERS]
    if len(text) > MAX_QUERY_CHARACTERS and not text[MAX_QUERY_CHARACTERS].isspace():
        asked = re.sub(r"(?<=\s)\S+\Z", "", asked)  # half a word would be another word
    shown = asked.replace("\x00", " ").encode("utf-8", "replace").decode().strip()
    if not shown:
        raise QueryError("the text to search for is empty: say in a few words what to look for, or list the facts")
    return shown


_SCORE_COLUMNS: Final = ("total", "vector_rank", "similarity", "vector_part", "text_rank", "text_score", "text_part")
