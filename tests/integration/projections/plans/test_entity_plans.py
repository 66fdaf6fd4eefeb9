"""What reads entities and relations uses indexes, and reads none of other owners, of whom there are 50 000."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed
from psycopg.types.json import Jsonb

from mnemolog.projections.queries.entities import called, details, relations
from mnemolog.projections.queries.entity_graph import AskedTie, neighbours, related, user_entities
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.entities import MAX_TIED, near_columns
from mnemolog.projections.stores.facts import CandidateFinder
from mnemolog.schemas.entities import NameQuery, name_head
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.background import names_said_in
from tests.integration.projections.plans.test_query_plans import AT, PARAMETERS
from tests.support.filled_scopes import MODEL, name_of_entity
from tests.support.plans import SMALL, SMALL_FACTS, numbered, plan_of, rows_read, whole_scans

pytestmark = pytest.mark.postgres
TABLES: Final = (
    *("entities", "entity_aliases", "name_vectors", "fact_entities", "relationships", "relationship_evidence"),
    "facts",
)
QUESTION: Final = f"Does {name_of_entity(3)} know my wife and {name_of_entity(4)}'s boss?"
HEADS: Final = names_said_in(QUESTION).heads
OF_ENTITIES: Final = {"relation_ids": "relations_of_entities"}
COLUMNS: Final = {"entity_columns": "entity_columns", "pending_merges": "pending_merges_of_entity"}


def listed(file: str, name: str, row: str = "e") -> SQL:
    parts = COLUMNS if row == "e" else {}
    return read_query(file, name, scope=SMALL.parameters, row=row, parts=parts)


HOT: Final[Mapping[str, SQL | Composed]] = {
    "entities": listed("entities", "listed_entities"),
    "called": listed("entities", "entities_called"),
    "of_ids": listed("entities", "entities_of_ids"),
    "twins": listed("entities", "twins_of_entity"),
    "facts_of_entity": read_query("entities", "facts_of_entity"),
    "names_of_entity": queries("entities")["names_of_entity"],
    "history_of_entity": queries("entities")["history_of_entity"],
    "relations": read_query(
        "relations", "listed_relations", scope=SMALL.parameters, row="r", parts={"relation_ids": "relations_of_scope"}
    ),
    "relations_of_entity": read_query("relations", "listed_relations", parts=OF_ENTITIES),
    "given_ties": read_query("relations", "given_ties", scope=SMALL.parameters, row="alias"),
    "aliases_of": queries("relations")["aliases_of"],
    "timeline_of_entity": read_query("relations", "timeline_of_entity", parts=OF_ENTITIES),
    "entities_of_heads": queries("entities")["entities_of_heads"],
    "entities_for": queries("shown")["entities_for"],
    "facts_of_entities": CandidateFinder.QUERIES["facts_of_entities"],
}


SHOWN: Final[dict[str, Any]] = {
    **{name: [value] for name, value in Scope(user_id="user7").columns.items()},
    "said": [QUESTION],
    "heads": [Jsonb([*HEADS])],
    "said_ties": [Jsonb(["@wife"])],
    "predicates": [Jsonb(["spouse"])],
    "ties": ["@wife"],
    "entities": [10],
    "facts": [10],
    "looked_at": 60,
    "at": [AT],
}


def compared(entity_ids: Sequence[UUID]) -> dict[str, Any]:
    vector = Vector.from_values(MODEL, [1.0, 0.0, 1.0])
    return {
        "entity_ids": entity_ids,
        "keys": ["home_city"] * len(entity_ids),
        "vectors": [vector] * len(entity_ids),
        "models": [MODEL] * len(entity_ids),
        "known": [uuid4()],
        "known_places": [1],
        "limit_of_key": 5,
    }


async def parameters(conn: AsyncConnection[TupleRow]) -> dict[str, Any]:
    query = "SELECT entity_id FROM entities WHERE user_id = 'user7' ORDER BY recorded_at LIMIT 3"
    ids: list[UUID] = [entity_id for (entity_id,) in await (await conn.execute(query)).fetchall()]
    named = {"entity_id": ids[1], "entity_ids": ids, "twins": [ids[2]], "with_user": True}
    asked: dict[str, Any] = {"type": None, "after": None, "limit": 10, "all_versions": True, "mirrors": True}
    key = name_of_entity(3).lower()
    asked |= {"name": "Nobody", "key": key, "first_id": None, "last_id": None}
    of_turn = {"aliases": 20, "fact_ids": [uuid4()], "heads": [*HEADS, "@user", "@wife"], "ends": ["nn"]}
    ties = {"head": "@wife", "keys": [f"wife of {ids[0]}", key]}
    meant = NameQuery(key="nowhere", type="person", vector=Vector.from_values(MODEL, [1.0, 0.0, 1.0]))
    near = {**near_columns([meant]), "near_from": 0.9, "tied": MAX_TIED}
    related: dict[str, Any] = {"single_valued": [], "subject_ids": ids[:1], "predicate": None, "true_at": None}
    times = {"at": AT, "believed_at": None}
    return {**PARAMETERS, **named, **asked, **ties, **of_turn, **near, **related, **times}


@pytest.mark.parametrize("name", HOT)
async def test_indexes_are_used_and_no_rows_of_other_owners_read(
    connection: AsyncConnection[TupleRow], name: str
) -> None:
    """A scope has 30 facts and 15 entities: each may be read some times, but none of the many others."""
    for_all = await plan_of(connection, f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered(HOT[name])}")
    assert whole_scans(for_all, {*TABLES, "scopes"}) == []
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT[name].as_string()}"
    given = await parameters(connection)
    own = {
        "entities_for": SHOWN,
        "facts_of_entities": compared(given["entity_ids"]),
        "called": {"head": name_head(given["key"])},
        "relations": {"subject_ids": None},
    }
    plan = await plan_of(connection, statement, given | own.get(name, {}))
    read = {table: rows_read(plan, table) for table in TABLES}
    assert all(rows <= 20 * SMALL_FACTS for rows in read.values()), read
    assert sum(read.values()) > 0 or name == "history_of_entity"


TIE: Final = """
INSERT INTO entity_aliases (
    entity_id, current_id, kind, key, current_key, head, alias, shown, place, event_id, recorded_at, tenant, user_id,
    owner, source_id
)
SELECT
    entity_id, entity_id, 'tie', tie.key, tie.key, '@dog', 'dog', 'dog', 2, entity_id, recorded_at, tenant, user_id,
    owner, source_id
FROM entities, (SELECT 'dog of ' || md5('big/entity/4')::uuid AS key) AS tie
WHERE entity_id = md5('big/entity/3')::uuid
"""


async def test_a_prompt_reads_few_entities_of_a_big_scope(connection: AsyncConnection[TupleRow]) -> None:
    """It has 10 000 of them: those that are named, that the user is related to, and of whom their ties are."""
    given = await parameters(connection) | SHOWN | {"user_id": ["big"]}
    async with connection.transaction(force_rollback=True):
        await connection.execute(TIE)
        rows = await (await connection.execute(HOT["entities_for"], given)).fetchall()
        plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT['entities_for'].as_string()}", given)
    ties = [tie for _, _, _, _, _, of_one, *_ in rows for tie in of_one]
    assert sorted(ties) == [f"dog of {name_of_entity(4)}", "wife of the user"]
    assert 0 < rows_read(plan, "entities") < 1000


ENTITY_TABLES: Final = [table for table in TABLES if table != "facts"]
WHOLE: Final = ScopeFilter(user_id="big")


async def entity_by_name(conn: AsyncConnection[TupleRow]) -> object:
    (one,) = await called(conn, WHOLE, name_of_entity(7).upper(), name_of_entity(7).lower())
    return (await details(conn, one)).facts


async def entity_by_id(conn: AsyncConnection[TupleRow]) -> object:
    (one,) = await called(conn, WHOLE, name_of_entity(7), name_of_entity(7).lower())
    return await called(conn, WHOLE, str(one.entity_id)[:13], "nobody")


async def neighbours_by_name(conn: AsyncConnection[TupleRow]) -> object:
    (one,) = await called(conn, WHOLE, name_of_entity(10), name_of_entity(10).lower())
    return await neighbours(conn, one)


async def wife_of_user(conn: AsyncConnection[TupleRow]) -> object:
    owners = [one.entity_id for one in await user_entities(conn, WHOLE)]
    return await related(conn, WHOLE, owners, AskedTie(predicate="spouse", tie="wife"))


async def newest_relations(conn: AsyncConnection[TupleRow]) -> object:
    return await relations(conn, ScopeFilter.of_scope(Scope(user_id="big")), limit=10)


@pytest.mark.parametrize(
    ("reader", "most"),
    [
        (newest_relations, 200),
        (entity_by_name, 100),
        (entity_by_id, 100),
        (neighbours_by_name, 200),
        (wife_of_user, 1500),  # the user has 1000 relations
    ],
)
async def test_one_who_is_asked_for_by_name_costs_no_look_at_the_others(
    connection: AsyncConnection[TupleRow], reader: Callable[[AsyncConnection[TupleRow]], Awaitable[object]], most: int
) -> None:
    """The scope has 10 000 entities."""
    counted = """SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer FROM pg_stat_xact_user_tables
        WHERE relname = ANY(%s)"""
    async with connection.transaction(force_rollback=True):
        assert await reader(connection)
        ((rows,),) = await (await connection.execute(counted, [ENTITY_TABLES])).fetchall()
    assert 0 < rows < most


COUSINS: Final = """
INSERT INTO entity_aliases (
    entity_id, current_id, kind, key, current_key, head, alias, shown, place, event_id, recorded_at, tenant, user_id,
    owner, source_id
)
SELECT
    e.entity_id, e.entity_id, 'tie', tie.key, tie.key, '@cousin', 'my cousin', 'my cousin', 2, e.entity_id,
    e.recorded_at, e.tenant, e.user_id, e.owner, e.source_id
FROM entities AS e, (SELECT 'cousin of ' || md5('big/entity/0')::uuid AS key) AS tie
WHERE e.user_id = 'big' AND e.ordinal = 1 ORDER BY e.recorded_at LIMIT %(cousins)s
"""


async def test_a_new_cousin_is_compared_with_the_newest_cousins_alone(connection: AsyncConnection[TupleRow]) -> None:
    read = {}
    for cousins in (100, 1000):
        async with connection.transaction(force_rollback=True):
            await connection.execute(COUSINS, {"cousins": cousins})
            given = await parameters(connection) | {"user_id": "big", "heads": ["@cousin"], "keys": [], "ends": []}
            given |= near_columns([])
            query = HOT["entities_of_heads"]
            found = await (await connection.execute(query, given)).fetchall()
            plan = await plan_of(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {query.as_string()}", given)
        assert len(found) == MAX_TIED
        read[cousins] = rows_read(plan, "entities") + rows_read(plan, "fact_entities")
    assert read[1000] == read[100]


@pytest.mark.parametrize("times", [{"believed_at": AT}, {"true_at": AT}, {"believed_at": AT, "true_at": AT}])
@pytest.mark.parametrize("name", ["relations", "given_ties"])
async def test_no_rows_of_other_owners_are_read_for_other_times(
    connection: AsyncConnection[TupleRow], name: str, times: dict[str, Any]
) -> None:
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {HOT[name].as_string()}"
    plan = await plan_of(connection, statement, await parameters(connection) | times)
    read = {table: rows_read(plan, table) for table in (*TABLES, "former_states")}
    assert all(rows <= 20 * SMALL_FACTS for rows in read.values()), read


CHANGES = 10
MADE_CHANGES = """
INSERT INTO entity_changes (
    event_id, partition, log_offset, ordinal, owner, source_id, tenant, user_id, event, entity_ids, payload, decided_at,
    original_id
)
SELECT
    md5(%(event)s || one.number)::uuid, 0, one.number, 0, one.owner, 'c' || one.number, 'default', one.user_id,
    %(event)s, ARRAY[one.entity_id, other.entity_id],
    jsonb_build_object(
        'merged', one.entity_id, 'into', other.entity_id, 'version', 1, 'text', one.name, 'left_out', 0,
        'facts', (
            SELECT jsonb_agg(fact_id) FROM fact_entities INNER JOIN facts USING (fact_id)
            WHERE entity_id = one.entity_id AND facts.status = 'active'
        )
    ),
    now(), md5(%(event)s || one.number)::uuid
FROM (
    SELECT *, row_number() OVER (ORDER BY entity_id) AS number FROM entities WHERE user_id = 'user7'
) AS one
INNER JOIN (
    SELECT entity_id, row_number() OVER (ORDER BY entity_id) AS number FROM entities WHERE user_id = 'user7'
) AS other ON one.number + 1 = other.number
WHERE one.number <= %(changes)s
"""


async def rows_of_changes(conn: AsyncConnection[TupleRow], event: str, name: str, **asked: Any) -> tuple[int, int]:
    """How many rows of changes a query reads where ten entities of its scope have one, and how many rows it gives."""
    query = HOT[name] if name in HOT else queries("summaries")[name]
    async with conn.transaction(force_rollback=True):
        await conn.execute(MADE_CHANGES, {"event": event, "changes": CHANGES})
        given = await parameters(conn) | {"limit": None} | asked
        rows = await (await conn.execute(query, given)).fetchall()
        plan = await plan_of(conn, f"EXPLAIN (ANALYZE, FORMAT JSON) {query.as_string()}", given)
    return rows_read(plan, "entity_changes"), len(rows)


async def test_pending_merges_are_read_once_for_all_listed_entities(connection: AsyncConnection[TupleRow]) -> None:
    read_for_all, listed = await rows_of_changes(connection, "merge_proposed", "entities")
    read_for_one, _ = await rows_of_changes(connection, "merge_proposed", "entities", limit=1)
    assert listed > CHANGES
    assert read_for_all <= 2 * read_for_one


async def test_only_the_summaries_that_are_given_are_looked_up(connection: AsyncConnection[TupleRow]) -> None:
    facts = "SELECT fact_id FROM facts WHERE user_id = 'user7'"
    fact_ids = [fact_id for (fact_id,) in await (await connection.execute(facts)).fetchall()]
    read = {}
    for limit in (1, CHANGES - 2):  # these facts name no more of the ten
        read[limit], given = await rows_of_changes(
            connection, "entity_summarised", "summaries_of_facts", fact_ids=fact_ids, limit=limit
        )
        assert given == limit
    assert read[1] < read[CHANGES - 2] / 2
