"""Whether two facts are about one entity, by the entities of their subjects."""

import pytest

from mnemolog.schemas.entities import KnownEntity
from mnemolog.streams.entities.subjects import entity_relation
from mnemolog.streams.text.differences import EntityRelation
from tests.support.builders.entities import known_entity

MIRA = known_entity("Mira", number=1)
TWIN = known_entity("Mira", number=2, twins=[MIRA.entity_id])


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        (MIRA, MIRA, "same"),
        (MIRA, TWIN, "twin"),
        (TWIN, MIRA, "twin"),
        (MIRA, known_entity("Ben"), "other"),
        (MIRA, known_entity("Mira Kovac"), "other"),
        (MIRA, known_entity("Mira Kovac", kind="other"), "twin"),
        (MIRA, known_entity(is_user=True), None),
        (MIRA, known_entity("Alice", is_user=True), "other"),
        (known_entity("The user's company", kind="organisation"), known_entity(is_user=True), "other"),
        (MIRA, None, None),
    ],
)
def test_two_subjects_are_one_entity_or_not(
    one: KnownEntity, other: KnownEntity | None, relation: EntityRelation | None
) -> None:
    assert entity_relation(one, other) == relation
