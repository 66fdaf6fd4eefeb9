"""The statement of a search, put together from its parts: which facts it looks at, and the filter."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, LiteralString

from psycopg.sql import SQL, Composable, Composed

from mnemolog.projections.filters.condition import filter_condition, status_at
from mnemolog.projections.queries.fact_rows import fact_columns, scope_condition
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.asked_entities import NOBODY, AskedEntities, Entities
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.sql import queries
from mnemolog.schemas.filters.model import EVERYTHING

_NOW: Final[LiteralString] = "%(at)s"


def search_query(
    scopes: Sequence[ScopeFilter],
    options: SearchOptions,
    *,
    indexed: bool = False,
    named: AskedEntities = NOBODY,
) -> tuple[SQL | Composed, dict[str, Any]]:
    """The statement of a search and the parameters of its filter.

    Several scopes come as arrays. `indexed` gives the one for scopes that have indexes of their own. `named` is what of
    the question may name entities, which is looked for where their weight is not 0.
    """
    source = "from_indexes" if indexed else _source(options)
    entities: Entities = named.kind if options.weights.entities > 0 else "none"
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
        entities=entities,
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
    entities: Entities,
) -> SQL:
    """One text for each kind of search, with `{filter}` left open where there is one: composed once."""
    parts = queries("search")
    scope = parts["of_named_scope"] if is_several else scope_condition(dict(wildcards))
    of_any = parts["of_any_scope"] if is_several else scope
    state_at = parts["state_at"]
    condition, wanted = (SQL("{filter}"), SQL("{wanted}")) if is_filtered else (SQL("true"), SQL("true"))
    is_linked = source == "from_indexes" and entities != "none"
    live = parts["from_indexes_and_links" if is_linked else source].format(
        filter=condition, scope=scope, state_at=state_at, state=status_at(SQL(_NOW))
    )
    if is_several:
        of_scopes = parts["of_scopes"].format(live=live)
        live = parts["facts_of_scopes"].format(of_scopes=of_scopes, of_any=of_any, wanted=wanted)
    travels = source == "as_of"
    query = parts["hybrid"].format(
        live=live,
        **_entity_parts(entities, scope, is_several=is_several, is_explained=is_explained),
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


def _entity_parts(
    entities: Entities, scope: Composable, *, is_several: bool, is_explained: bool
) -> dict[str, Composable]:
    """What finds the entities that the question names, and the facts that name these."""
    parts, search = queries("search_entities"), queries("search")
    if entities == "none":
        nothing = dict.fromkeys(("entities", "links", "unlinked"), SQL(""))
        return {**nothing, "entity_share": search["no_entity_share"], "meant": search["nobody_meant"]}

    def of_scopes(part: str) -> Composable:
        query = parts[part].format(scope=scope)
        return search["of_scopes"].format(live=query) if is_several else query

    tied: Composable = SQL("")
    if entities == "ties":
        steps = {f"{one}_step": parts["step"].format(owners=SQL(owners)) for one, owners in _STEPS.items()}
        relations, users = of_scopes("relations_of_scope"), of_scopes("users_of_scope")
        tied = parts["tied"].format(relations=relations, users=users, **steps)
    by_ties = parts["by_ties"] if entities == "ties" else SQL("")
    return {
        "entities": parts["by_names"].format(names=of_scopes("names_of_scope"), tied=tied, by_ties=by_ties),
        "entity_share": parts["entity_share"],
        "links": parts["with_links"],
        "unlinked": parts["unlinked"],
        "meant": parts["meant"] if is_explained else search["nobody_meant"],
    }


_STEPS: Final[Mapping[str, LiteralString]] = {"first": "owners", "next": "next_owners"}
