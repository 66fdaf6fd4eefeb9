"""The statement of a search, put together from its parts: which facts it looks at, and the filter."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, LiteralString

from psycopg.sql import SQL, Composed

from mnemolog.projections.filters.condition import filter_condition, status_at
from mnemolog.projections.queries.fact_rows import fact_columns, scope_condition
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.sql import queries
from mnemolog.schemas.filters.model import EVERYTHING

_NOW: Final[LiteralString] = "%(at)s"


def search_query(
    scopes: Sequence[ScopeFilter],
    options: SearchOptions,
    *,
    indexed: bool = False,
) -> tuple[SQL | Composed, dict[str, Any]]:
    """The statement of a search and the parameters of its filter.

    Several scopes come as arrays. `indexed` gives the one for scopes that have indexes of their own.
    """
    source = "from_indexes" if indexed else _source(options)
    wildcards = () if len(scopes) > 1 else tuple(scopes[0].wildcards.items())
    is_filtered = options.filters != EVERYTHING
    query = _composed(
        source=source,
        wildcards=wildcards,
        is_several=len(scopes) > 1,
        is_filtered=is_filtered,
        is_ranked=options.is_ranked,
        has_neighbours=options.weights.neighbours > 0 and not indexed,
        shows_neighbours=options.neighbours > 0,
        is_explained=options.explain,
    )
    if not is_filtered:
        return query, {}
    condition, parameters = filter_condition(options.filters)
    wanted, _ = filter_condition(options.filters, as_active=True)
    return query.format(filter=condition, wanted=wanted), parameters


def scope_parameters(scopes: Sequence[ScopeFilter]) -> Mapping[str, Any]:
    """The ids of one scope, or for each id those of all scopes as an array, and their one tenant."""
    if len(scopes) == 1:
        return scopes[0].parameters
    rows = [one.parameters for one in scopes]
    arrays = {f"{name}s": [row[name] for row in rows] for name in rows[0] if name != "tenant"}
    return {"tenant": rows[0]["tenant"], **arrays}


def _source(options: SearchOptions) -> str:
    if options.travels:
        return "as_of"
    return "scanned" if options.state is None and not options.filters.asks_about_state else "in_states"


@cache
def _composed(
    *,
    source: str,
    wildcards: tuple[tuple[str, str], ...],
    is_several: bool,
    is_filtered: bool,
    is_ranked: bool,
    has_neighbours: bool,
    shows_neighbours: bool,
    is_explained: bool,
) -> SQL:
    """One text for each kind of search, with `{filter}` left open where there is one: composed once."""
    parts = queries("search")
    scope = parts["of_named_scope"] if is_several else scope_condition(dict(wildcards))
    of_any = parts["of_any_scope"] if is_several else scope
    state_at = parts["state_at"]
    condition, wanted = (SQL("{filter}"), SQL("{wanted}")) if is_filtered else (SQL("true"), SQL("true"))
    live = parts[source].format(filter=condition, scope=scope, state_at=state_at, state=status_at(SQL(_NOW)))
    if is_several:
        of_scopes = parts["of_scopes"].format(live=live)
        live = parts["facts_of_scopes"].format(of_scopes=of_scopes, of_any=of_any, wanted=wanted)
    travels = source == "as_of"
    query = parts["hybrid"].format(
        live=live,
        state=parts["hit_state"].format(state_at=state_at) if travels else SQL(""),
        whole=parts["indexed_facts" if source == "from_indexes" else "all_facts"],
        conversation=parts["conversation"] if has_neighbours or shows_neighbours else SQL(""),
        neighbours=parts["neighbours" if has_neighbours else "no_neighbours"],
        shown=parts["with_neighbours" if shows_neighbours else "hits_alone"],
        left_out=parts["left_out"].format(scope=of_any, filter=condition)
        if is_explained
        else parts["nothing_left_out"],
        messages=parts["messages" if is_explained else "no_messages"],
        ranks=parts["ranks" if is_ranked else "no_ranks"],
        route=parts["any_route" if is_several else "by_indexes_or_not"],
        fact=fact_columns(state="s" if travels else "f", at=_NOW),
    )
    return SQL(query.as_string())
