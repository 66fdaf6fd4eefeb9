"""Views and functions for SQL users read no rows of other owners."""

from collections.abc import Mapping
from typing import Final

import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from tests.support.plans import LARGE_TABLES, SMALL_FACTS, believe_in_rows, facts_read, plan_of, whole_scans

pytestmark = pytest.mark.postgres

MEMORY_VIEWS: Final[Mapping[str, str]] = {
    "current_facts": "SELECT * FROM memory.current_facts WHERE user_id = 'user7'",
    "facts": "SELECT text, state FROM memory.facts WHERE user_id = 'user7' AND tenant = 'default' ORDER BY true_from",
    "of_one_scope": "SELECT * FROM memory.facts WHERE user_id = 'user7' AND agent_id IS NULL AND run_id IS NULL",
    "joined": "SELECT reason FROM memory.facts AS f JOIN memory.events USING (fact_id) WHERE f.user_id = 'user7'",
    "pending": "SELECT * FROM memory.pending WHERE user_id = 'user7'",
    "events": "SELECT * FROM memory.events WHERE user_id = 'user7'",
    "turns": "SELECT * FROM memory.turns WHERE user_id = 'user7'",
    "entities": "SELECT * FROM memory.entities WHERE user_id = 'user7'",
    "entity_aliases": "SELECT * FROM memory.entity_aliases WHERE user_id = 'user7'",
    "fact_entities": "SELECT * FROM memory.fact_entities WHERE user_id = 'user7'",
    "one_fact": "SELECT * FROM memory.current_facts WHERE fact_id = md5('user7/3')::uuid",
}


@pytest.mark.parametrize("rows", [1, 110_000, 1_000_000])
@pytest.mark.parametrize("name", MEMORY_VIEWS)
async def test_views_for_sql_users_read_no_rows_of_other_owners(
    connection: AsyncConnection[TupleRow], name: str, rows: int
) -> None:
    """The condition on the view reaches the index of the scope."""
    async with connection.transaction(force_rollback=True):
        await believe_in_rows(connection, rows)
        plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {MEMORY_VIEWS[name]}")
    assert whole_scans(plan) == []
    assert facts_read(plan) < SMALL_FACTS * 2


@pytest.mark.parametrize(
    "call",
    [
        "facts_as_of('2026-06-01', user_id => 'user7')",
        "changes_between('2026-01-01', user_id => 'user7', agent_id => '**')",
        "profile(user_id => 'user7')",
        "search('word7', user_id => 'user7')",
        "context('word7', user_id => 'user7')",
        "search('word7', '[1, 0, 0]', user_id => 'user7', agent_id => '**')",
    ],
)
async def test_functions_for_sql_users_read_no_rows_of_other_owners(
    connection: AsyncConnection[TupleRow], call: str
) -> None:
    read = "SELECT relname, seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = ANY(%s)"
    async with connection.transaction(force_rollback=True):
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        answer = await (await connection.execute(f"SELECT * FROM memory.{call}".encode())).fetchall()  # noqa: S608 - no foreign text
        rows = await (await connection.execute(read, [list(LARGE_TABLES)])).fetchall()
    assert answer or call.startswith("profile")  # this database has no profiles
    assert {name: scanned for name, scanned, _ in rows if scanned} == {}
    assert max(fetched or 0 for _, _, fetched in rows) < SMALL_FACTS * 4
