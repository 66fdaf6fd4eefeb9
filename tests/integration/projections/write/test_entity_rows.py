"""Entities and relations in real tables: what the log says of them, once, and in the scope of its commit alone."""

from typing import Any

import pytest

from mnemolog.schemas.command import Delete, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import Alias
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    command_commit,
    commit,
    day,
    event_id_at,
    fact_id_at,
    merged,
    pending,
    retracted,
    undone,
)
from tests.support.builders.entity_events import (
    alias_added,
    entity_id_at,
    linked,
    name_alias,
    registered,
    relation_stated,
    with_entities,
)
from tests.support.builders.sample_logs import reversal
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


async def test_entities_have_names_twins_and_links_in_their_scope_alone(db: ProjectedDatabase) -> None:
    first = commit("t1", added("Alice's wife Ana lives in Bern."))
    ana, bern = entity_id_at(first), entity_id_at(first, 1)
    wife = Alias(text="my wife", kind="tie", key=f"wife of {bern}")
    names = [alias_added(ana, name_alias(name)) for name in ("Anna", "ANNA")]
    again = commit("t3", added("Ana again."))
    await db.apply(
        with_entities(first, registered("Ana", wife), registered("Bern", kind="place", place=1), linked(0, ana, bern)),
        with_entities(commit("t2", added("Anna sails.")), *names),
        with_entities(again, registered("Ana", twins=(ana,)), linked(fact_id_at(first), ana)),
        with_entities(
            commit("b1", added("Bob sails."), scope=BOB), alias_added(ana, name_alias("Bob")), linked(0, ana)
        ),
    )
    twin = entity_id_at(again)
    entities = "SELECT entity_id, name, type, possible_twins, user_id FROM entities ORDER BY source_id, ordinal"
    assert await db.rows(entities) == [
        (ana, "Ana", "person", [], "alice"),
        (bern, "Bern", "place", [], "alice"),
        (twin, "Ana", "person", [ana], "alice"),
    ]
    aliases = "SELECT current_id, kind, head, min(shown) FROM entity_aliases GROUP BY current_id, kind, key, head"
    assert sorted(await db.rows(aliases), key=lambda row: (row[2], row[3], row[0] != ana)) == [
        (ana, "tie", "@wife", "my wife"),
        (ana, "name", "ana", "Ana"),
        (twin, "name", "ana", "Ana"),
        (ana, "name", "ann", "ANNA"),
        (bern, "name", "ber", "Bern"),
    ]
    links = await db.rows("SELECT DISTINCT fact_id, current_id, role FROM fact_entities")
    assert sorted(links) == sorted([(fact_id_at(first), ana, "object"), (fact_id_at(first), bern, "object")])
    rejected = await db.rows("SELECT source_id, reason FROM rejections")
    assert rejected == [("b1", "foreign_target"), ("b1", "foreign_target")]
    assert await db.rows("SELECT text FROM facts WHERE user_id = 'bob'") == [("Bob sails.",)]


FIRST = commit("t1", added("Alice's wife is Ana."), added("Ana sings."), added("Tom is Alice's brother."))
ALICE_ID, ANA, ACME = (entity_id_at(FIRST, place) for place in range(3))
WIFE, IN_PASSING, BROTHER = (fact_id_at(FIRST, ordinal) for ordinal in range(3))
SPOUSE = relation_stated(0, ALICE_ID, "spouse", ANA)
BOTH = {("Alice", "spouse", "Ana"), ("Ana", "spouse", "Alice")}


def known(*drafts: Any) -> Commit:
    entities = registered("Alice"), registered("Ana", place=1), registered("Acme", place=2, kind="organisation")
    return with_entities(FIRST, *entities, *(drafts or (SPOUSE,)))


async def relations(db: ProjectedDatabase, columns: str = "is_active", scope: Scope = ALICE) -> dict[Any, Any]:
    """By subject, predicate and object, as names."""
    query = f"""SELECT s.name, predicate, o.name, {columns}
        FROM shown_relations(ARRAY(SELECT relation_id FROM relationships WHERE user_id = %s)) AS r
        JOIN entities s ON s.entity_id = r.subject_id JOIN entities o ON o.entity_id = r.object_id"""  # noqa: S608 -- columns of this file
    rows = await (await db.conn.execute(query.encode(), [scope.user_id])).fetchall()
    return {row[:3]: row[3] if columns == "is_active" else row[3:] for row in rows}


@pytest.mark.parametrize(
    ("drafts", "columns", "expected"),
    [
        pytest.param(
            (SPOUSE, relation_stated(2, ALICE_ID, "employer", ACME, strength="weak")),
            "is_active, is_mirror, strength, since, until, evidence",
            {
                ("Alice", "spouse", "Ana"): (True, False, 0.8, day(0), None, [WIFE]),
                ("Ana", "spouse", "Alice"): (True, True, 0.8, day(0), None, [WIFE]),
                ("Alice", "employer", "Acme"): (True, False, 0.4, day(0), None, [BROTHER]),
                ("Acme", "employee", "Alice"): (True, True, 0.4, day(0), None, [BROTHER]),
            },
            id="it holds in both directions, and one is a mirror",
        ),
        pytest.param(
            (SPOUSE, relation_stated(1, ANA, "spouse", ALICE_ID, strength="medium")),
            "is_mirror, strength, evidence",
            dict.fromkeys(BOTH, (False, 0.85, sorted([WIFE, IN_PASSING]))),
            id="said in both directions it is one",
        ),
        pytest.param(
            (relation_stated(0, ALICE_ID, "mentored_by", ANA),),
            "is_active",
            {("Alice", "mentored_by", "Ana"): True},
            id="a predicate without an inverse has no mirror",
        ),
    ],
)
async def test_a_relation(db: ProjectedDatabase, drafts: Any, columns: str, expected: dict[Any, Any]) -> None:
    await db.apply(known(*drafts))
    assert await relations(db, columns) == expected


async def test_what_waits_for_a_confirmation_is_no_evidence(db: ProjectedDatabase) -> None:
    held = commit("t2", pending("Alice's wife is Eva.", WIFE), at=day(3))
    eva = entity_id_at(held)
    spouse = relation_stated(0, ALICE_ID, "spouse", eva)
    await db.apply(known(), with_entities(held, registered("Eva"), spouse, linked(0, eva)))
    found = await relations(db)
    assert (found["Alice", "spouse", "Eva"], found["Alice", "spouse", "Ana"]) == (False, True)


async def test_relations_of_scopes_never_mix(db: ProjectedDatabase) -> None:
    theirs = commit("b1", added("Bob's wife is Ana."), scope=BOB)
    bob, ana = entity_id_at(theirs), entity_id_at(theirs, 1)
    stated = relation_stated(0, bob, "spouse", ana), relation_stated(0, bob, "friend", ALICE_ID)
    await db.apply(known(), with_entities(theirs, registered("Bob"), registered("Ana", place=1), *stated))
    assert set(await relations(db, scope=BOB)) == {("Bob", "spouse", "Ana"), ("Ana", "spouse", "Bob")}
    assert set(await relations(db)) == BOTH
    assert await db.rows("SELECT source_id, reason FROM rejections") == [("b1", "foreign_target")]


async def test_a_chain_of_merges_is_hidden_and_shown_with_its_last_fact(db: ProjectedDatabase) -> None:
    told = commit("t0", added("Ana rows."))
    ana = entity_id_at(told)
    await db.apply(with_entities(told, registered("Ana"), linked(0, ana)))
    for number in range(1, 5):
        told = commit(f"t{number}", merged(f"Ana rows in {number} lakes.", fact_id_at(told)), at=day(number))
        await db.apply(told)
    last = fact_id_at(told)
    seen = """SELECT DISTINCT f.is_hidden, e.shown_name, n.shown FROM facts AS f, entities AS e, entity_aliases AS n"""
    assert await db.rows(seen) == [(False, "Ana", "Ana")]
    columns = ", ".join(FactState.model_fields)
    ((*state,),) = await db.rows(f"SELECT {columns} FROM facts WHERE status = 'active'")  # noqa: S608 -- names of fields
    deletion = command_commit("d1", Delete(fact_ids=(last,)), retracted(last), at=day(6))
    await db.apply(deletion)
    assert await db.rows(seen) == [(True, None, None)]
    before = FactState(**dict(zip(FactState.model_fields, state, strict=True)))
    back = undone(event_id_at(deletion), reversal(last, "retracted", before))
    await db.apply(command_commit("u1", Undo(source_id="d1"), back, at=day(7)))
    assert await db.rows(seen) == [(False, "Ana", "Ana")]
