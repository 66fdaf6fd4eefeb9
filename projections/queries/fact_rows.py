"""What queries for facts share: the columns of a fact, and the most rows that an answer has."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier

from mnemolog.projections.db.fetch import Query, Row, fetch_rows
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.sql import queries

MAX_ROWS: Final = 10_000


@cache
def read_query(file: str, name: str, *, row: str = "f", state: str = "f", at: LiteralString = "now()") -> Composed:
    """A query with the columns of `Fact` at `{fact}`, and the condition of a `ScopeFilter` on `row` at `{scope}`.

    `{conflicting}` is a fact `t` as JSON, `{decided}` the condition that a model or a prompt version decided.

    What events can change of a fact is read from `state`: the facts themselves, or their former states. `at` is an SQL
    expression: what begins after it is marked as beginning later.
    """
    return queries(file)[name].format(
        fact=queries("facts")["fact_columns"].format(state=Identifier(state), at=SQL(at)),
        scope=queries("scopes")["filter"].format(row=Identifier(row)),
        conflicting=queries("pending")["conflicting_fact"],
        decided=queries("event_history")["decided"],
    )


async def fetch_bounded_rows(
    conn: AsyncConnection[TupleRow], row: type[Row], query: Query, parameters: Mapping[str, Any]
) -> list[Row]:
    """As `fetch_rows`, for a query with a `bound`. Raises `QueryError` where more than `MAX_ROWS` rows are there."""
    found = await fetch_rows(conn, row, query, {**parameters, "bound": MAX_ROWS + 1})
    if len(found) > MAX_ROWS:
        raise QueryError(f"the answer has more than {MAX_ROWS} rows: ask for a narrower scope or a shorter time")
    return found
