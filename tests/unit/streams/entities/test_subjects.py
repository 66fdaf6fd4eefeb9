"""Whether two facts are about one entity, by the entities of their subjects."""

from uuid import UUID

import pytest

from mnemolog.schemas.entities import Alias, EntityType, KnownEntity
from mnemolog.streams.entities.subjects import entity_relation
from mnemolog.streams.text.differences import EntityRelation

USER_MARK = Alias(text="the user", kind="user", key="user")


def entity(number: int, *names: str, kind: EntityType = "person", is_user: bool = False) -> KnownEntity:
    aliases = tuple(Alias(text=name, key=name.casefold()) for name in names)
    aliases = (USER_MARK, *aliases) if is_user else aliases
    return KnownEntity(entity_id=UUID(int=number), name=aliases[0].text, type=kind, aliases=aliases)


MIRA = entity(1, "Mira")
TWIN = entity(2, "Mira").model_copy(update={"possible_twins": (MIRA.entity_id,)})


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        (MIRA, MIRA, "same"),
        (MIRA, TWIN, "twin"),
        (TWIN, MIRA, "twin"),
        (MIRA, entity(3, "Ben"), "other"),
        (MIRA, entity(3, "Mira Kovac"), "other"),
        (MIRA, entity(3, "Mira Kovac", kind="other"), "twin"),
        (MIRA, entity(3, is_user=True), None),
        (MIRA, entity(3, "Alice", is_user=True), "other"),
        (MIRA, None, None),
    ],
)
def test_two_subjects_are_one_entity_or_not(
    one: KnownEntity, other: KnownEntity | None, relation: EntityRelation | None
) -> None:
    assert entity_relation(one, other) == relation
