"""Plans of statements over many owners: what they read, and by which indexes."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed

from mnemolog.projections.database import connection_settings, prepare_connection
from mnemolog.projections.queries.scope_filter import ScopeFilter

SIZES: Final = {"big": 20_000, **{f"user{number}": 30 for number in range(3000)}}
FACTS: Final = sum(SIZES.values())
SMALL: Final = ScopeFilter(user_id="user7")
SMALL_FACTS: Final = 30
LARGE_TABLES: Final = {
    *("facts", "memory_events", "commits", "scopes", "daily_tokens", "daily_usage", "turn_journal", "model_replies"),
}


async def connected(url: str) -> AsyncConnection[TupleRow]:
    settings = connection_settings(url, application_name="plans")
    conn: AsyncConnection[TupleRow] = await AsyncConnection.connect(url, autocommit=True, **settings)
    await prepare_connection(conn)
    return conn


def numbered(query: SQL | Composed) -> str:
    """The statement with `$1` for its first parameter, as it is prepared."""
    places: dict[str, int] = {}
    text = re.sub(
        r"%\((\w+)\)[sbt]", lambda found: f"${places.setdefault(found[1], len(places) + 1)}", query.as_string()
    )
    return text.replace("%%", "%").rstrip(";")


async def plan_of(conn: AsyncConnection[TupleRow], statement: str, parameters: Any = None) -> dict[str, Any]:
    (rows,) = await (await conn.execute(statement.encode(), parameters)).fetchall()
    plan: dict[str, Any] = (rows[0] if isinstance(rows[0], list) else json.loads(rows[0]))[0]["Plan"]
    return plan


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


def whole_scans(plan: Mapping[str, Any], tables: Collection[str] = LARGE_TABLES) -> list[str]:
    """The large tables that a plan reads without the condition of an index."""
    return [
        f"{node['Node Type']} of {node['Relation Name']} {node.get('Index Name', '')}"
        for node in nodes(plan)
        if node.get("Relation Name") in tables
        and node["Node Type"] != "ModifyTable"
        and "Index Cond" not in node
        and not any("Index Cond" in inner for inner in nodes(node))
    ]


def facts_read(plan: Mapping[str, Any]) -> int:
    return rows_read(plan, "facts")


def rows_read(plan: Mapping[str, Any], table: str) -> int:
    """The rows of a table that a plan has read, those that it left out among them."""
    return sum(
        int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in nodes(plan)
        if node.get("Relation Name") == table
    )


async def believe_in_rows(conn: AsyncConnection[TupleRow], rows: int) -> int:
    """Set the statistics of tables with a row for each fact to so many facts; how many a plan then expects."""
    of_facts = "SELECT facts.reltuples FROM pg_class AS facts WHERE facts.oid = 'facts'::regclass"
    changed = "reltuples = 1, relpages = 1" if rows == 1 else f"reltuples = reltuples * {rows} / ({of_facts})"
    statement = f"UPDATE pg_class SET {changed} WHERE oid IN (SELECT unnest(%s::regclass[]))"  # noqa: S608 - no foreign text
    await conn.execute(statement.encode(), [["facts", "memory_events", "commits"]])
    return int((await plan_of(conn, "EXPLAIN (FORMAT JSON) SELECT FROM facts"))["Plan Rows"])


async def pages(conn: AsyncConnection[TupleRow]) -> int:
    query = "SELECT pg_relation_size('facts') / current_setting('block_size')::integer"
    ((size,),) = await (await conn.execute(query)).fetchall()
    return int(size)
