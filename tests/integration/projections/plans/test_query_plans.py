"""Hot statements use indexes and read no rows of other owners: by their plans without values, and as they run."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed
from psycopg.types.json import Jsonb

from mnemolog.projections.database import open_pool
from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.explain import history
from mnemolog.projections.queries.facts import facts, facts_as_of, listing_query, named_ids
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.projections.search.search import DEFAULT_WEIGHTS, SearchOptions, scope_parameters, search_query
from mnemolog.projections.search.turn_search import SHOWN_STATUSES, turns_query
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import RECENT_FACTS, CandidateFinder, FactStore
from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.projections.write.row_writer import STATEMENTS
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
from tests.support.databases import fresh_database
from tests.support.filled_scopes import MODEL
from tests.support.plans import (
    FACTS,
    LARGE_TABLES,
    SIZES,
    SMALL,
    SMALL_FACTS,
    believe_in_rows,
    facts_read,
    numbered,
    pages,
    plan_of,
    rows_read,
    whole_scans,
)

pytestmark = pytest.mark.postgres

AT: Final = datetime(2026, 11, 1, tzinfo=UTC)
EXPLAINED: Final = SearchOptions.read({"explain": True, "weights": {"neighbours": 0.3}})
START: Final = datetime(2025, 1, 1, tzinfo=UTC)
BIG: Final = ScopeFilter(user_id="big")
SMALL_RUN: Final = ScopeFilter(user_id="user7", run_id="r1")


def named(found: Mapping[str, SQL | Composed], *names: str, prefix: str = "") -> dict[str, SQL | Composed]:
    return {f"{prefix}{name}": found[name] for name in names}


HOT: Final[Mapping[str, SQL | Composed]] = {
    "search": search_query([SMALL], SearchOptions())[0],
    "search_in_states": search_query([SMALL], SearchOptions(state=("superseded",)))[0],
    "search_as_of": search_query([SMALL], SearchOptions(believed_at=AT))[0],
    "search_of_several": search_query([SMALL, SMALL_RUN], SearchOptions())[0],
    "search_of_several_as_of": search_query([SMALL, SMALL_RUN], SearchOptions(true_at=AT))[0],
    "search_explained": search_query([SMALL, SMALL_RUN], EXPLAINED)[0],
    "search_explained_of_one": search_query([SMALL], EXPLAINED)[0],
    "search_with_neighbours": search_query([SMALL], SearchOptions(neighbours=2))[0],
    "search_by_indexes": search_query([SMALL], SearchOptions(), indexed=True)[0],
    "search_turns": turns_query([SMALL], SearchOptions())[0],
    "search_turns_of_several": turns_query([SMALL, SMALL_RUN], SearchOptions(explain=True))[0],
    "count_by_ids": read_query("search", "count_by_ids", scope=SMALL.parameters),
    "current_facts": listing_query(SMALL)[0],
    "counted_facts": read_query(
        "facts", "counted_facts", scope=SMALL.parameters, at="%(at)s", parts={"states": "holding"}
    ).format(filter=SQL("true")),
    "next_page": listing_query(SMALL, continued=True)[0],
    "versions": read_query("history", "versions"),
    "history_events": queries("history")["events"],
    "feedback": read_query("quality", "used_at_rank", scope=SMALL.parameters, row="c"),
    "lasting_facts": read_query("profiles", "lasting_facts", at="%(at)s"),
    "turn": queries("facts")["turn"],
    "record": queries("journal")["record"],
    "profile": queries("profiles")["profile"],
    **named(queries("profiles"), "published_at", "published", "sources", prefix="profiles_"),
    **named(CandidateFinder.QUERIES, "find_candidates", "source_statuses"),
    **named(FactStore.QUERIES, "ended_candidates", "facts", "pending_cases", "challenges", "ended_facts", "events"),
    **named(FactStore.QUERIES, "values_before", "values_since", "version_starts", "user_names", "known_for"),
    **named(FactStore.QUERIES, "former_values"),
    **named(queries("limits"), "usage", "is_received"),
    **named(STATEMENTS, "applied", "known_facts", "update_facts", "settle_pending", "step_scopes", "count_tokens"),
    **named(STATEMENTS, "dispute_facts", "refresh_profiles", "changed_records"),
    **named(ReplyStore.QUERIES, "get", "forget", "paid", prefix="replies_"),
}
NOT_OF_WORKERS: Final = {
    *(name for name in HOT if name.startswith(("search", "profiles_"))),
    *("count_by_ids", "current_facts", "counted_facts", "next_page", "versions"),
    *("history_events", "profile", "turn", "is_received", "lasting_facts", "feedback"),
}
SEARCHES: Final = (
    *("search_explained", "search_explained_of_one", "search_with_neighbours", "search_in_states", "search_as_of"),
    *("search_of_several", "search_of_several_as_of"),
)
SCOPE_COLUMNS: Final = {name: [value] for name, value in Scope(user_id="user7").columns.items()}
PARAMETERS: Final[dict[str, Any]] = {
    **SMALL.parameters,
    "text": "what did the user say about word7",
    "at": AT,
    "model": MODEL,
    "dimensions": 3,
    "indexed": False,
    **{f"{name}_weight": weight for name, weight in DEFAULT_WEIGHTS["rrf"].model_dump().items()},
    "threshold": 0.0,
    "period_from": None,
    "period_to": None,
    "only_period": False,
    "ranked": 100,
    "per_matter": 3,
    "fusion": "rrf",
    "rrf_k": 10,
    "half_life_days": 30.0,
    "candidates": 50,
    "max_words": 256,
    "neighbours": 2,
    "field_weights": [1.0, 1.0, 1.0, 0.5],
    "top_k": 10,
    "limit": 10,
    "believed_at": AT,
    "states": None,
    "statuses": list(SHOWN_STATUSES),
    **scope_parameters([SMALL, SMALL_RUN]),
    "limit_of_key": 5,
    "user_words": ["user"],
    "models": [MODEL] * 2,
    "content_hashes": ["none", "none"],
    "keys": ["key_3", None],
    "subjects": ["user", None],
    "ends_only": [False, True],
    "floors": [0.65, 0.65],
    "vector": Vector.from_values(MODEL, [1.0, 0.0, 0.0]),
    "categories": ["hard_preference", "health"],
    "vectors": [Vector.from_values(MODEL, [1.0, 0.0, 0.0])] * 2,
}
SLOTS: Final = 20
OF_TURN: Final[dict[str, Any]] = {
    **SCOPE_COLUMNS,
    "at": [AT],
    "speaker": [None],
    "speakers": [Jsonb([])],
    "slots": [Jsonb(["key_3", "key_4"])],
    "said": ["What did I say about word7?"],
    "facts": [10],
    "recent": RECENT_FACTS,
    "limit_of_slots": SLOTS,
    "lexemes": 64,
}


async def scans(conn: AsyncConnection[TupleRow], names: Iterable[str]) -> dict[str, list[str]]:
    """Which of these statements read large tables whole, as they are planned for all parameters."""
    found = {
        name: whole_scans(await plan_of(conn, f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered(HOT[name])}"))
        for name in names
    }
    return {name: scans for name, scans in found.items() if scans}


@pytest.mark.parametrize("rows", [1, None, 1_000_000])
async def test_the_plans_for_all_parameters_use_indexes_whatever_the_statistics_are(
    connection: AsyncConnection[TupleRow], rows: int | None
) -> None:
    """The planner multiplies the rows of a page, by the statistics, by the pages that a table has now."""
    async with connection.transaction(force_rollback=True):
        if rows is not None:
            believed = await believe_in_rows(connection, rows)
            assert abs(believed - max(rows, await pages(connection))) < 0.02 * believed
        assert await scans(connection, HOT) == {}


async def test_a_worker_plans_by_index_before_there_are_statistics(
    postgres_admin_url: str, template_database: str
) -> None:
    """A plan of the first minutes is kept until autovacuum has analysed the tables, which have grown meanwhile."""
    with fresh_database(postgres_admin_url, template=template_database) as url:
        async with (
            open_pool(url, min_size=1, max_size=1, application_name="plans", looks_up=True) as pool,
            pool.connection() as conn,
        ):
            assert await scans(conn, sorted(HOT.keys() - NOT_OF_WORKERS)) == {}


@pytest.mark.parametrize("rows", [1, FACTS, 1_000_000])
@pytest.mark.parametrize(
    "name", ["search", "find_candidates", "current_facts", "counted_facts", "count_by_ids", *SEARCHES]
)
async def test_no_rows_of_other_owners_are_read(connection: AsyncConnection[TupleRow], name: str, rows: int) -> None:
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT[name].as_string()}"
    turn = {**SCOPE_COLUMNS, "at": [AT], "speaker": [None], "first_place": [1], "last_place": [2]}
    own: dict[str, dict[str, Any]] = {"find_candidates": turn, "current_facts": {"limit": None}}
    given = PARAMETERS | {"indexed": None if name in SEARCHES else False} | own.get(name, {})
    async with connection.transaction(force_rollback=True):
        await believe_in_rows(connection, rows)
        plan = await plan_of(connection, statement, given)
    read = facts_read(plan)
    # What is left out is looked for once more, and neighbours are read by id.
    scans = 2 if name.startswith(("search_explained", "search_with_neighbours")) else 1
    assert SMALL_FACTS * 0.9 < read < SMALL_FACTS * (scans + 1)  # each once, and some of them again by id


@pytest.mark.parametrize("rows", [1, FACTS, 1_000_000])
@pytest.mark.parametrize("name", ["search_turns", "search_turns_of_several"])
async def test_no_turns_of_other_owners_are_read(connection: AsyncConnection[TupleRow], name: str, rows: int) -> None:
    """Whatever the words are, in the tables as in what the functions read."""
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT[name].as_string()}"
    async with connection.transaction(force_rollback=True):
        await believe_in_rows(connection, rows)
        plan = await plan_of(connection, statement, PARAMETERS | {"believed_at": None})
    found = 10
    assert SMALL_FACTS <= rows_read(plan, "turn_journal") <= SMALL_FACTS + found
    assert rows_read(plan, "commits") == 0


@pytest.mark.parametrize("rows", [FACTS, 1_000_000])
@pytest.mark.parametrize("user_id", ["user7", "big"])
async def test_an_extraction_reads_the_newest_facts_and_those_of_slots(
    connection: AsyncConnection[TupleRow], user_id: str, rows: int
) -> None:
    """Of a big scope as of a small one."""
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT['known_for'].as_string()}"
    of_slots = "SELECT count(*) FROM facts WHERE user_id = %s AND (key IN ('key_3', 'key_4') OR single_valued)"
    one_value = "UPDATE facts SET single_valued = true WHERE user_id = 'big' AND key = 'key_5'"
    async with connection.transaction(force_rollback=True):
        await connection.execute(one_value)
        ((in_slots,),) = await (await connection.execute(of_slots, [user_id])).fetchall()
        await believe_in_rows(connection, rows)
        given = PARAMETERS | OF_TURN | {"user_id": [user_id]}
        plan = await plan_of(connection, statement, given)
        shown = await (await connection.execute(HOT["known_for"], given)).fetchall()
    newest = {"user7": SMALL_FACTS, "big": RECENT_FACTS}[user_id]
    assert 0.9 * newest < facts_read(plan) < 1.1 * newest + in_slots
    assert len(shown) > (SLOTS if user_id == "big" else 0)


async def test_a_profile_reads_no_more_than_it_shows_of_a_big_scope(connection: AsyncConnection[TupleRow]) -> None:
    statement = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM profile_of_scope('default', 'big', '', '', '')"
    plan = await plan_of(connection, statement)
    read = facts_read(plan)
    assert read == 7 * 50  # categories with facts here, entries of a section
    assert whole_scans(plan) == []


async def test_limits_read_counts_and_not_rows(connection: AsyncConnection[TupleRow]) -> None:
    ((before,),) = await (await connection.execute("SELECT count(*) FROM tenant_facts")).fetchall()
    asked = (
        "SELECT tenant_facts('default', 'o', 's'), paid_tokens('default', '', '', '', '', '2026-01-01 00:00Z')"
        " + reserved_tokens('default', '2026-01-01 00:00Z', 'o', 's')"
    )
    ((facts, tokens),) = await (await connection.execute(asked.encode())).fetchall()
    assert facts > 0.9 * FACTS
    assert tokens > 0
    plan = await plan_of(connection, f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {asked}")
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 40 + before


async def test_a_scan_of_a_scope_reads_each_of_its_pages_once(connection: AsyncConnection[TupleRow]) -> None:
    scope = "tenant = 'default' AND user_id = 'big' AND agent_id = '' AND app_id = '' AND run_id = ''"
    active = f"FROM facts WHERE {scope} AND status = 'active'"
    count = f"SELECT count(DISTINCT (ctid::text::point)[0]) {active}"
    ((pages_of_scope,),) = await (await connection.execute(count.encode())).fetchall()
    await connection.execute("SET enable_bitmapscan = off; SET enable_seqscan = off")
    plan = await plan_of(connection, f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT embedding {active}")
    assert plan["Index Name"] == "facts_active"
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 1.1 * pages_of_scope


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
    plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT['versions'].as_string()}", named)
    assert 0 < facts_read(plan) < 20
    events = {**BIG.parameters, "fact_ids": [superseded[300].fact_id, superseded[300].superseded_by]}
    plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT['history_events'].as_string()}", events)
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
    assert len(listed) > 0.75 * SIZES["big"]
    known = await facts_as_of(connection, BIG, believed_at=AT, true_at=AT)
    assert {fact.fact_id for fact in known} > {fact.fact_id for fact in listed}
    changed = await diff(connection, BIG, START, AT)
    assert list(changed.gained) == known
    assert len(changed.added) == SIZES["big"]
    assert len((await diff(connection, BIG, START, AT, axis="true")).added) > 0.75 * SIZES["big"]


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


@pytest.mark.parametrize("rows", [1, FACTS, 1_000_000])
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
