"""Search in the turns themselves, by the words that people said in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed

from mnemolog.projections.database import fetch_long
from mnemolog.projections.filter_condition import filter_condition
from mnemolog.projections.queries.scope_filter import ScopeFilter, scope_condition
from mnemolog.projections.search import search
from mnemolog.projections.sql import queries
from mnemolog.schemas.filters import EVERYTHING

TurnStatus = Literal["stored", "nothing_stored", "failed", "rejected"]
"""How a turn ended. One that is on its way is never found."""
SHOWN_STATUSES: Final[tuple[TurnStatus, ...]] = ("stored", "nothing_stored", "failed")
LeftOutTurns = Literal["not_shown", "outside_period", "over_limit"]
"""`not_shown` are turns that would be hits, but have no end yet or another one, or something of them was taken back
since: behind the last hit nobody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnScore:
    """Why a turn has its place: `total` is the sum of the parts, which are those of a fact without a vector.

    `text_score`, 0..1, is the share of the question's words that people said in the turn, where a word weighs the
    more, the fewer turns have it; `neighbours_part` is for words that were said just before or after it alone.
    """

    total: float
    text_score: float
    text_part: float
    names_part: float
    recency_part: float
    times_part: float
    neighbours_part: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit:
    """A turn that was found. A dimension of the scope that is not set is None.

    `excerpt` is what was said around the words of the question, in the message that has most of them, and `speaker` who
    said it, where a name was given; a message of up to 400 characters is whole. `fact_ids` are the facts that came from
    the turn, none where nothing was extracted. `status` is how it ended: `stored`, `nothing_stored`, `failed` or
    `rejected`.
    """

    turn_id: str
    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    speaker: str | None
    excerpt: str
    occurred_at: datetime
    status: TurnStatus
    fact_ids: tuple[UUID, ...]
    metadata: Mapping[str, Any]
    score: TurnScore

    def __repr__(self) -> str:
        return f"TurnHit({self.excerpt!r}, speaker={self.speaker!r}, turn_id={self.turn_id!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFindings:
    """Turns, best first. `left_out` has, where it was asked for, how many other turns with a word of it are no hits."""

    turns: tuple[TurnHit, ...] = ()
    left_out: Mapping[LeftOutTurns, int] = field(default_factory=dict)


_SCORE_COLUMNS: Final = tuple(one.name for one in fields(TurnScore))
_OWN_COLUMNS: Final = frozenset({*_SCORE_COLUMNS, "left_out"})


async def search_turns(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter | Sequence[ScopeFilter],
    text: str,
    options: search.SearchOptions = search.DEFAULT_OPTIONS,
    *,
    at: datetime,
    statuses: Sequence[TurnStatus] = SHOWN_STATUSES,
) -> TurnFindings:
    """The best turns for the words of `text`, asked at `at`; best first.

    Of the options count `limit`, `filters`, `period` and `only_period` (by when a turn occurred), `believed_at` (what
    had been received then), `half_life_days`, `explain` and the weights `text`, `names`, `recency`, `times` and
    `neighbours`. A turn is no hit without any word of the question in it or just beside it, nor if a command took back
    something of it since, nor if it ended in none of `statuses`. Raises `QueryError` as `search` does.
    """
    scopes = search.checked_scopes(scope)
    query, of_filter = turns_query(scopes, options)
    known_at, _ = options.times(at)
    given = {
        **search.scope_parameters(scopes),
        **of_filter,
        **{f"{name}_weight": weight for name, weight in options.shares.items()},
        "text": search.storable_question(text),
        "at": at,
        "believed_at": known_at,
        "period_from": options.period[0] if options.period else None,
        "period_to": options.period[1] if options.period else None,
        "only_period": options.only_period,
        "half_life_days": options.half_life_days,
        "max_words": search.MAX_QUERY_WORDS,
        "top_k": options.limit,
        "statuses": list(statuses),
    }
    rows = await fetch_long(conn, query, given)  # the first row is there even where nothing was found
    turns = []
    for row in (row for row in rows if row["turn_id"] is not None):
        columns = {name: value for name, value in row.items() if name not in _OWN_COLUMNS}
        score = TurnScore(**{name: row[name] for name in _SCORE_COLUMNS})
        turns.append(TurnHit(**columns | {"fact_ids": tuple(row["fact_ids"])}, score=score))
    return TurnFindings(turns=tuple(turns), left_out=rows[0]["left_out"] or {})


def turns_query(scopes: Sequence[ScopeFilter], options: search.SearchOptions) -> tuple[SQL | Composed, dict[str, Any]]:
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
