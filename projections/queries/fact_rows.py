"""What queries for facts share: the columns of a fact, and the conditions of a scope and of a filter."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, LiteralString

from psycopg.sql import SQL, Composable, Composed, Identifier, Placeholder

from mnemolog.projections.filters.condition import filter_condition, status_at
from mnemolog.projections.sql import queries
from mnemolog.schemas.filters.model import Filter

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
    """The columns of `Fact`; `state` and `at` as `read_query` has them. What has ended by then is shown as expired."""
    return queries("facts")["fact_columns"].format(
        ids=Identifier("f"), state=Identifier(state), status=status_at(SQL(at), state=state), at=SQL(at)
    )


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
