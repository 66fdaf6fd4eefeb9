"""Relations in real tables: which hold follows from the facts that are their evidence, in both directions."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.command import Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    command_commit,
    commit,
    contradicted,
    corrected,
    day,
    event_id_at,
    fact_id_at,
    pending,
    replaced,
    retracted,
    undone,
)
from tests.support.builders.entity_events import (
    entity_id_at,
    linked,
    registered,
    relation_ended,
    relation_stated,
    with_entities,
)
from tests.support.builders.sample_logs import ACTIVE_STATE as ACTIVE
from tests.support.builders.sample_logs import reversal
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
FIRST = commit("t1", added("Alice's wife is Ana."), added("Ana sings."), added("Tom is Alice's brother."))
ALICE_ID, ANA, TOM, ACME = (entity_id_at(FIRST, place) for place in range(4))
WIFE, IN_PASSING, BROTHER = (fact_id_at(FIRST, ordinal) for ordinal in range(3))
PEOPLE = (
    registered("Alice"),
    registered("Ana", place=1),
    registered("Tom", place=2),
    registered("Acme", place=3, kind="organisation"),
)
SPOUSE = relation_stated(0, ALICE_ID, "spouse", ANA)
LATER = 5


def known(*drafts: Any) -> Commit:
    return with_entities(FIRST, *PEOPLE, *(drafts or (SPOUSE,)))


Times = tuple[datetime | None, datetime | None]


async def relations(
    db: ProjectedDatabase, columns: str = "is_active", scope: Scope = ALICE, times: Times = (None, None)
) -> dict[Any, Any]:
    """By subject, predicate and object, as names."""
    query = """SELECT s.name, predicate, o.name, {} FROM relations_of_scope('default', %s, '', '', '', %s, %s) AS r
        JOIN entities s ON s.entity_id = r.subject_id JOIN entities o ON o.entity_id = r.object_id"""
    async with db.pool.connection() as connection:
        rows = await (await connection.execute(query.format(columns).encode(), (scope.user_id, *times))).fetchall()
    return {row[:3]: row[3] if len(row) == LATER - 1 else row[3:] for row in rows}


BOTH = {("Alice", "spouse", "Ana"), ("Ana", "spouse", "Alice")}


async def test_a_relation_holds_in_both_directions_and_one_is_a_mirror(db: ProjectedDatabase) -> None:
    await db.apply(known(SPOUSE, relation_stated(2, ALICE_ID, "employer", ACME, strength="weak")))
    assert await relations(db, "is_active, is_mirror, strength, since, until, evidence") == {
        ("Alice", "spouse", "Ana"): (True, False, "strong", day(0), None, [WIFE]),
        ("Ana", "spouse", "Alice"): (True, True, "strong", day(0), None, [WIFE]),
        ("Alice", "employer", "Acme"): (True, False, "weak", day(0), None, [BROTHER]),
        ("Acme", "employee", "Alice"): (True, True, "weak", day(0), None, [BROTHER]),
    }


async def test_what_is_said_in_both_directions_is_one_relation(db: ProjectedDatabase) -> None:
    await db.apply(known(SPOUSE, relation_stated(1, ANA, "spouse", ALICE_ID, strength="medium")))
    found = await relations(db, "is_mirror, strength, evidence")
    assert found == dict.fromkeys(BOTH, (False, "strong", sorted([WIFE, IN_PASSING])))


async def test_a_predicate_without_an_inverse_has_no_mirror(db: ProjectedDatabase) -> None:
    await db.apply(known(relation_stated(0, ALICE_ID, "mentored_by", ANA)))
    assert await relations(db) == {("Alice", "mentored_by", "Ana"): True}


@pytest.mark.parametrize(
    "end",
    [
        replaced("Alice's wife is Eva.", WIFE),
        retracted(WIFE, ended_at=day(2)),
        retracted(WIFE),
        contradicted("Alice has no wife.", WIFE),
        corrected("Alice's wife is Anna.", WIFE),
    ],
    ids=["replaced", "ended", "deleted", "contradicted", "corrected"],
)
async def test_a_relation_falls_with_its_only_evidence(db: ProjectedDatabase, end: Any) -> None:
    await db.apply(known(), commit("t2", end, at=day(3)))
    assert await relations(db) == dict.fromkeys(BOTH, False)


async def test_an_undo_brings_a_relation_back_without_an_event_of_its_own(db: ProjectedDatabase) -> None:
    replacing = commit("t2", replaced("Alice's wife is Eva.", WIFE), at=day(3))
    await db.apply(known(), replacing)
    back = (reversal(WIFE, "superseded", ACTIVE), reversal(fact_id_at(replacing), "active", None))
    await db.apply(command_commit("u1", Undo(source_id="t2"), undone(event_id_at(replacing), *back), at=day(4)))
    assert await relations(db) == dict.fromkeys(BOTH, True)


async def test_what_waits_for_a_confirmation_is_no_evidence(db: ProjectedDatabase) -> None:
    held = commit("t2", pending("Alice's wife is Eva.", WIFE), at=day(3))
    eva = entity_id_at(held)
    await db.apply(
        known(), with_entities(held, registered("Eva"), relation_stated(0, ALICE_ID, "spouse", eva), linked(0, eva))
    )
    found = await relations(db)
    assert (found["Alice", "spouse", "Eva"], found["Alice", "spouse", "Ana"]) == (False, True)


OVER = commit("t2", added("Ana is no longer Alice's wife.", true_from=day(3)), at=day(3))


@pytest.mark.parametrize(
    ("subject", "object_id"), [(ALICE_ID, ANA), (ANA, ALICE_ID)], ids=["same direction", "other direction"]
)
async def test_a_statement_ends_a_relation_whose_evidence_stays(
    db: ProjectedDatabase, subject: UUID, object_id: UUID
) -> None:
    in_passing = relation_stated(1, ALICE_ID, "spouse", ANA, strength="medium")
    over = with_entities(OVER, relation_ended(0, subject, "spouse", object_id, at=day(3)))
    await db.apply(known(SPOUSE, in_passing), over)
    assert await relations(db, "is_active, until, endings") == dict.fromkeys(BOTH, (False, day(3), [fact_id_at(OVER)]))
    back = command_commit(
        "u1", Undo(source_id="t2"), undone(event_id_at(OVER), reversal(fact_id_at(OVER), "active", None)), at=day(4)
    )
    await db.apply(back)
    assert await relations(db) == dict.fromkeys(BOTH, True)


async def test_scopes_never_mix(db: ProjectedDatabase) -> None:
    theirs = commit("b1", added("Bob's wife is Ana."), scope=BOB)
    bob, ana = entity_id_at(theirs), entity_id_at(theirs, 1)
    people = (registered("Bob"), registered("Ana", place=1))
    await db.apply(
        known(),
        with_entities(
            theirs, *people, relation_stated(0, bob, "spouse", ana), relation_stated(0, bob, "friend", ALICE_ID)
        ),
    )
    assert set(await relations(db, scope=BOB)) == {("Bob", "spouse", "Ana"), ("Ana", "spouse", "Bob")}
    assert set(await relations(db)) == BOTH
    assert await db.rows("SELECT source_id, reason FROM rejections") == [("b1", "foreign_target")]
