"""What queries for facts share: the columns of a fact, the condition of a scope, and the most rows of an answer."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composable, Composed, Identifier, Placeholder

from mnemolog.projections.db.fetch import Query, Row, fetch_rows
from mnemolog.projections.filters.condition import filter_condition
from mnemolog.projections.filters.model import Filter
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.sql import queries

MAX_ROWS: Final = 10_000
ANY_VALUE: Final = "*"
"""Any value of an id that is set."""
ANY_OR_NONE: Final = "**"
"""Any value of an id, and rows that do not set it."""
WILDCARDS: Final = frozenset({ANY_VALUE, ANY_OR_NONE})


def read_query(
    file: str,
    name: str,
    *,
    scope: Mapping[str, str] = MappingProxyType({}),
    row: str = "f",
    state: str = "f",
    at: LiteralString = "now()",
    parts: Mapping[str, str] = MappingProxyType({}),
) -> SQL:
    """A query with the columns of `Fact` at `{fact}`, and the condition of a filter's parameters on `row` at `{scope}`.

    `{conflicting}` is a fact `t` as JSON, `{decided}` the condition that a model or a prompt version decided.

    What events can change of a fact is read from `state`: the facts themselves, or their former states. `at` is an SQL
    expression: what begins after it is marked as beginning later. `parts` are further places with the names of the
    queries of the same file that stand there. `{filter}` is left for `with_filter`.
    """
    wildcards = tuple(wildcards_of(scope).items())
    return _composed(file=file, name=name, wildcards=wildcards, row=row, state=state, at=at, parts=tuple(parts.items()))


def wildcards_of(scope: Mapping[str, str]) -> dict[str, str]:
    """The wildcards of a scope's parameters, the empty string for any other value."""
    return {name: value if value in WILDCARDS else "" for name, value in scope.items()}


def scope_condition(wildcards: Mapping[str, str], row: str = "f") -> Composable:
    """The condition that `row` is of a scope, which the parameters named as the ids give, but for its wildcards."""
    this_value = "this_value" if any(wildcards.values()) else "this_value_unseen"
    conditions = [
        queries("scopes")["any_value" if wildcard else this_value].format(
            row=Identifier(row), id=Identifier(column), value=Placeholder(column)
        )
        for column, wildcard in wildcards.items()
        if wildcard != ANY_OR_NONE
    ]
    return SQL(" AND ").join(conditions) if conditions else SQL("true")


def fact_columns(*, state: str = "f", at: LiteralString) -> Composable:
    """The columns of `Fact`; `state` and `at` as `read_query` has them."""
    return queries("facts")["fact_columns"].format(state=Identifier(state), at=SQL(at))


@cache
def _composed(
    *,
    file: str,
    name: str,
    wildcards: tuple[tuple[str, str], ...],
    row: str,
    state: str,
    at: LiteralString,
    parts: tuple[tuple[str, str], ...],
) -> SQL:
    """One statement for each combination of wildcards: a condition that depends on values could use no index."""
    scope = scope_condition(dict(wildcards), row)
    query = queries(file)[name].format(
        fact=fact_columns(state=state, at=at),
        scope=scope,
        filter=SQL("{filter}"),
        **{place: queries(file)[part].format(scope=scope) for place, part in parts},
        conflicting=queries("pending")["conflicting_fact"],
        decided=queries("event_history")["decided"],
    )
    return SQL(query.as_string())  # composed once, not at each call


def with_filter(query: SQL, wanted: Filter) -> tuple[Composed, dict[str, Any]]:
    """The query with the condition of a filter at `{filter}`, and the parameters of the filter."""
    condition, parameters = filter_condition(wanted)
    return query.format(filter=condition), parameters


async def fetch_bounded_rows(
    conn: AsyncConnection[TupleRow], row: type[Row], query: Query, parameters: Mapping[str, Any]
) -> list[Row]:
    """As `fetch_rows`, for a query with a `bound`. Raises `QueryError` where more than `MAX_ROWS` rows are there."""
    found = await fetch_rows(conn, row, query, {**parameters, "bound": MAX_ROWS + 1})
    if len(found) > MAX_ROWS:
        raise QueryError(f"the answer has more than {MAX_ROWS} rows: ask for a narrower scope or a shorter time")
    return found
