"""Entities in real tables: what the log says of them, once, and in the scope of its commit alone."""

import pytest

from mnemolog.schemas.entities import Alias
from tests.support.builders.commits import BOB, added, commit, fact_id_at
from tests.support.builders.entity_events import (
    alias_added,
    entity_id_at,
    linked,
    name_alias,
    registered,
    with_entities,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
FIRST = commit("t1", added("Alice's wife Ana lives in Bern."))
ANA, BERN = entity_id_at(FIRST), entity_id_at(FIRST, 1)
WIFE = Alias(text="my wife", kind="tie", key=f"wife of {BERN}")
LOG = [
    with_entities(FIRST, registered("Ana", WIFE), registered("Bern", kind="place", place=1), linked(0, ANA, BERN)),
    with_entities(
        commit("t2", added("Anna sails.")), alias_added(ANA, name_alias("Anna")), alias_added(ANA, name_alias("ANNA"))
    ),
    with_entities(commit("t3", added("Ana again.")), registered("Ana", twins=(ANA,)), linked(fact_id_at(FIRST), ANA)),
    with_entities(commit("b1", added("Bob sails."), scope=BOB), alias_added(ANA, name_alias("Bob")), linked(0, ANA)),
]


async def test_entities_have_names_twins_and_links(db: ProjectedDatabase) -> None:
    await db.apply(*LOG)
    twin = entity_id_at(LOG[2])
    entities = "SELECT entity_id, name, type, possible_twins, user_id FROM entities ORDER BY source_id, ordinal"
    assert await db.rows(entities) == [
        (ANA, "Ana", "person", [], "alice"),
        (BERN, "Bern", "place", [], "alice"),
        (twin, "Ana", "person", [ANA], "alice"),
    ]
    aliases = "SELECT entity_id, kind, head, min(alias) FROM current_entity_names GROUP BY entity_id, kind, key, head"
    assert sorted(await db.rows(aliases), key=lambda row: (row[2], row[3], row[0] != ANA)) == [
        (ANA, "tie", "@wife", "my wife"),
        (ANA, "name", "ana", "Ana"),
        (twin, "name", "ana", "Ana"),
        (ANA, "name", "ann", "ANNA"),
        (BERN, "name", "ber", "Bern"),
    ]
    links = await db.rows("SELECT DISTINCT fact_id, entity_id, role FROM current_entity_links")
    assert sorted(links) == sorted([(fact_id_at(FIRST), ANA, "object"), (fact_id_at(FIRST), BERN, "object")])


async def test_what_names_an_entity_of_another_scope_is_rejected_alone(db: ProjectedDatabase) -> None:
    await db.apply(*LOG)
    assert await db.rows("SELECT source_id, reason FROM rejections ORDER BY item") == [
        ("b1", "foreign_target"),
        ("b1", "foreign_target"),
    ]
    assert await db.rows("SELECT text FROM facts WHERE user_id = 'bob'") == [("Bob sails.",)]
