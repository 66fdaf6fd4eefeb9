"""Lists and the history of a fact read what they show."""

from datetime import UTC, datetime
from typing import Final

import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.explain import history
from mnemolog.projections.queries.facts import facts, facts_as_of, listing_query, named_ids
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.projections.sql import queries
from tests.support.plans import SIZES, facts_read, plan_of, rows_read

pytestmark = pytest.mark.postgres

START: Final = datetime(2025, 1, 1, tzinfo=UTC)
AT: Final = datetime(2026, 11, 1, tzinfo=UTC)
BIG: Final = ScopeFilter(user_id="big")
VERSIONS: Final = read_query("history", "versions")
EVENTS: Final = queries("history")["events"]


@pytest.mark.parametrize("limit", [1, 100])
async def test_a_page_reads_its_own_facts_and_not_those_before_it(
    connection: AsyncConnection[TupleRow], limit: int
) -> None:
    """As it is planned by the values, and for all values."""
    (after,) = await facts(connection, BIG, at=AT, limit=1)
    after = (await facts(connection, BIG, at=AT, limit=10_000, after=after.fact_id))[-1]
    place = {"after_time": after.recorded_at, "after_ordinal": 0, "after_fact": after.fact_id}
    given = {**BIG.parameters, **place, "at": AT, "limit": limit}
    for mode in ("force_custom_plan", "force_generic_plan"):
        await connection.execute(f"SET plan_cache_mode = {mode}".encode())
        query = listing_query(BIG, continued=True)[0]
        plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {query.as_string()}", given)
        assert limit <= facts_read(plan) <= 2 * limit + 20, mode


async def test_the_history_of_a_fact_reads_its_own_chain_and_not_its_scope(
    connection: AsyncConnection[TupleRow],
) -> None:
    superseded = [fact for fact in await facts(connection, BIG, all_versions=True, at=AT) if fact.superseded_by]
    assert len(superseded) > 500
    named = {"tenant": "default", "fact_id": superseded[300].fact_id}
    plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {VERSIONS.as_string()}", named)
    assert 0 < facts_read(plan) < 20
    events = {**BIG.parameters, "fact_ids": [superseded[300].fact_id, superseded[300].superseded_by]}
    plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {EVENTS.as_string()}", events)
    assert 0 < rows_read(plan, "memory_events") < 20
    told = await history(connection, "default", superseded[300].fact_id)
    assert [version.fact_id for version in told.versions] == events["fact_ids"]


async def test_users_are_counted_without_reading_a_fact(connection: AsyncConnection[TupleRow]) -> None:
    everybody = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
    query = read_query("scopes", "named_ids", scope=everybody.parameters, row="known", parts={"name": "user_id"})
    given = {**everybody.parameters, "limit": 10, "after": None}
    plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {query.as_string()}", given)
    assert facts_read(plan) == 0
    listed = await named_ids(connection, "user_id", everybody)
    assert len(listed) == len(SIZES)
    assert {one.id: one.scopes for one in listed} == dict.fromkeys(SIZES, 1)


async def test_lists_have_no_bound(connection: AsyncConnection[TupleRow]) -> None:
    listed = await facts(connection, BIG, at=AT)
    assert len(listed) > 15_000
    known = await facts_as_of(connection, BIG, believed_at=AT, true_at=AT)
    assert {fact.fact_id for fact in known} > {fact.fact_id for fact in listed}
    changed = await diff(connection, BIG, START, AT)
    assert list(changed.gained) == known
    assert len(changed.added) == SIZES["big"]
    assert len((await diff(connection, BIG, START, AT, axis="true")).added) > 15_000
    in_pages, after = [], None
    while page := await facts(connection, BIG, at=AT, limit=1000, after=after):
        in_pages += page
        after = page[-1].fact_id
    assert in_pages == listed
