"""Hybrid search: by vector, by words and by names, fused in one statement."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_long
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.hits import Findings, Hit, LeftOutHits, Score, SearchMode
from mnemolog.projections.search.options import FIELD_WEIGHTS, SearchOptions
from mnemolog.projections.search.question import MAX_QUERY_WORDS, storable_question
from mnemolog.projections.search.statement import scope_parameters, search_query
from mnemolog.schemas.vector import Vector

CANDIDATES_PER_HIT: Final = 8
MIN_CANDIDATES: Final = 400
"""Of those that the indexes of a large scope give by the vector: other signals change their order."""
"""How many facts each signal of an index brings, or top_k where that is more."""
MAX_SCOPES: Final = 20
DEFAULT_OPTIONS: Final = SearchOptions()


async def search(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter | Sequence[ScopeFilter],
    text: str,
    vector: Vector | None,
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    at: datetime,
) -> Findings:
    """The best facts for `text` that hold at `at`, or begin later, which is marked; best first.

    One that waits for a confirmation is found too, behind an active one of equal rank. `vector` is
    the embedding of `text`; facts embedded by another model are found by their words alone. A fact without a word in
    common is a hit from the similarity `threshold` on, at 0 or None whatever it is. Without a vector the search is
    lexical, which each score says. Any text is taken as plain words; of more than 10 000 characters the first ones
    count. Several scopes are those of one tenant, each exactly as it is named.
    Raises `QueryError` for a text without any character, or scopes that cannot be searched together.
    """
    scopes = checked_scopes(scope)
    parameters = {**scope_parameters(scopes), **_parameters(text, vector, options, at)}
    for indexed in _routes(scopes, options):
        query, of_filter = search_query(scopes, options, indexed=bool(indexed))
        if rows := await fetch_long(conn, query, {**parameters, **of_filter, "indexed": indexed}):
            return _findings(rows, "hybrid" if vector else "lexical")
    return Findings()


def checked_scopes(scope: ScopeFilter | Sequence[ScopeFilter]) -> tuple[ScopeFilter, ...]:
    """The scopes of one search, each once. Raises `QueryError` for too many, and for such as do not go together."""
    if isinstance(scope, ScopeFilter):
        return (scope,)
    scopes = tuple(dict.fromkeys(scope))
    if not 1 <= len(scopes) <= MAX_SCOPES:
        raise QueryError(f"a search has 1 to {MAX_SCOPES} scopes, not {len(scopes)}: name those that matter")
    if len({one.tenant for one in scopes}) > 1:
        raise QueryError("the scopes of one search belong to one tenant: search in each tenant by itself")
    if len(scopes) > 1 and not all(one.is_exact for one in scopes):
        raise QueryError("one of several scopes has a wildcard: name each id, or leave it out, instead of '*'")
    return scopes


def _routes(scopes: Sequence[ScopeFilter], options: SearchOptions) -> tuple[bool | None, ...]:
    """How the facts are found, in turn until a statement answers: by a scan or indexes; None is a scan in any case.

    A third one is for a scope that has lost its indexes between the first two.
    """
    return (False, True, False) if len(scopes) == 1 and scopes[0].is_exact and not options.narrows else (None,)


def _parameters(text: str, vector: Vector | None, options: SearchOptions, now: datetime) -> dict[str, Any]:
    believed_at, at = options.times(now)
    return {
        **{f"{name}_weight": weight for name, weight in options.shares.items()},
        "text": storable_question(text),
        "at": at,
        "believed_at": believed_at,
        "states": list(options.states) if options.states else None,
        "period_from": options.period[0] if options.period else None,
        "period_to": options.period[1] if options.period else None,
        "only_period": options.only_period,
        "vector": vector,
        "model": vector.model if vector else None,
        "dimensions": vector.dimensions if vector else None,
        "threshold": options.threshold or 0.0,
        "fusion": options.fusion,
        "rrf_k": options.rrf_k,
        "half_life_days": options.half_life_days,
        "candidates": max(MIN_CANDIDATES, CANDIDATES_PER_HIT * options.top_k),
        "max_words": MAX_QUERY_WORDS,
        "field_weights": list(FIELD_WEIGHTS),
        "top_k": options.top_k,
        "neighbours": options.neighbours,
        "ranked": 2 * options.top_k,
        "per_matter": options.per_matter,
    }


def _findings(rows: Sequence[Mapping[str, Any]], mode: SearchMode) -> Findings:
    """The first row is there even where nothing was found."""
    found = [row for row in rows if row["fact_id"] is not None]
    of_hits = [list(group) for _, group in groupby(found, key=itemgetter("hit_id"))]
    return Findings(
        hits=tuple(_hit(group, mode) for group in of_hits),
        below_threshold=rows[0]["below_threshold"],
        left_out={reason: LeftOutHits.from_json(one) for reason, one in (rows[0]["left_out"] or {}).items()},
    )


def _hit(rows: Sequence[Mapping[str, Any]], mode: SearchMode) -> Hit:
    """A hit and its neighbours, each with the score of the hit."""
    score = Score(mode=mode, **{name: rows[0][name] for name in _SCORE_COLUMNS})
    messages = next(row["messages"] for row in rows if row["step"] == 0)
    facts = {row["step"]: Fact(**{name: row[name] for name in row if name not in _OWN_COLUMNS}) for row in rows}
    return Hit(fact=facts.pop(0), score=score, neighbours=tuple(facts.values()), messages=messages)


_SCORE_COLUMNS: Final = (
    *("total", "vector_rank", "similarity", "vector_part", "text_rank", "text_score", "text_part"),
    *("names_part", "recency_part", "times_part", "neighbours_part", "prior"),
)
_OWN_COLUMNS: Final = frozenset({*_SCORE_COLUMNS, "below_threshold", "left_out", "hit_id", "step", "messages"})
