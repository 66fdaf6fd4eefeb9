"""Search in the turns themselves, by the words that people said in them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed

from mnemolog.projections.db.fetch import fetch_long
from mnemolog.projections.filters.condition import filter_condition
from mnemolog.projections.queries.fact_rows import scope_condition
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.search.question import MAX_QUERY_WORDS, storable_question
from mnemolog.projections.search.search import DEFAULT_OPTIONS, checked_scopes
from mnemolog.projections.search.statement import scope_parameters
from mnemolog.projections.search.turn_hits import SHOWN_STATUSES, TurnFindings, TurnHit, TurnScore, TurnStatus
from mnemolog.projections.sql import queries
from mnemolog.schemas.filters.model import EVERYTHING

_PARTS: Final = ("text_part", "names_part", "recency_part", "times_part", "neighbours_part")
_SCORE_COLUMNS: Final = ("total", "text_score", *_PARTS)
_OWN_COLUMNS: Final = frozenset({*_SCORE_COLUMNS, "left_out"})


async def search_turns(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter | Sequence[ScopeFilter],
    text: str,
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    at: datetime,
    statuses: Sequence[TurnStatus] = SHOWN_STATUSES,
) -> TurnFindings:
    """The best turns for the words of `text`, asked at `at`; best first.

    Of the options count `top_k`, `filters`, `period` and `only_period` (by when a turn occurred), `believed_at` (what
    had been received then), `half_life_days`, `explain` and the weights `text`, `names`, `recency`, `times` and
    `neighbours`. A turn is no hit without any word of the question in it or just beside it, nor if a command took back
    something of it since, nor if it ended in none of `statuses`. Raises `QueryError` as `search` does.
    """
    scopes = checked_scopes(scope)
    query, of_filter = turns_query(scopes, options)
    given = {**scope_parameters(scopes), **_parameters(text, options, at), "statuses": list(statuses), **of_filter}
    rows = await fetch_long(conn, query, given)
    return TurnFindings(
        turns=tuple(_hit(row) for row in rows if row["turn_id"] is not None), left_out=rows[0]["left_out"] or {}
    )


def turns_query(scopes: Sequence[ScopeFilter], options: SearchOptions) -> tuple[SQL | Composed, dict[str, Any]]:
    """The statement of a search in turns, and the parameters of its filter. Several scopes come as arrays."""
    is_filtered = options.filters != EVERYTHING
    query = _composed(
        wildcards=() if len(scopes) > 1 else tuple(scopes[0].wildcards.items()),
        is_filtered=is_filtered,
        is_explained=options.explain,
    )
    if not is_filtered:
        return query, {}
    condition, parameters = filter_condition(options.filters)
    return query.format(filter=condition), parameters


@cache
def _composed(*, wildcards: tuple[tuple[str, str], ...], is_filtered: bool, is_explained: bool) -> SQL:
    """One text for each kind of search, with `{filter}` left open where there is one; without wildcards for several."""
    parts, of_facts = queries("search_turns"), queries("search")
    scope = scope_condition(dict(wildcards)) if wildcards else of_facts["of_named_scope"]
    condition = parts["filtered"].format(filter=SQL("{filter}")) if is_filtered else SQL("true")
    live = parts["live"].format(scope=scope, filter=condition)
    query = parts["turns"].format(
        live=live if wildcards else of_facts["of_scopes"].format(live=live),
        scope=scope if wildcards else of_facts["of_any_scope"],
        left_out=parts["left_out" if is_explained else "nothing_left_out"],
        weight=parts["weight"],
    )
    return SQL(query.as_string())


def _parameters(text: str, options: SearchOptions, now: datetime) -> dict[str, Any]:
    known_at, _ = options.times(now)
    return {
        **{f"{name}_weight": weight for name, weight in options.shares.items()},
        "text": storable_question(text),
        "at": now,
        "believed_at": known_at,
        "period_from": options.period[0] if options.period else None,
        "period_to": options.period[1] if options.period else None,
        "only_period": options.only_period,
        "half_life_days": options.half_life_days,
        "max_words": MAX_QUERY_WORDS,
        "top_k": options.top_k,
    }


def _hit(row: Mapping[str, Any]) -> TurnHit:
    score = TurnScore(**{name: row[name] for name in _SCORE_COLUMNS})
    columns = {name: value for name, value in row.items() if name not in _OWN_COLUMNS}
    return TurnHit(**columns | {"fact_ids": tuple(row["fact_ids"])}, score=score)
