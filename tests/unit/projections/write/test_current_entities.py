"""What entities are after a split that was undone: as if nobody had decided anything about what it made."""

from uuid import UUID

import pytest

from mnemolog.schemas.entity_events import AnyEntityChange, EntitiesMerged, EntityForgotten, EntityRenamed, EntitySplit
from mnemolog.schemas.entity_state import CurrentState, GivenAlias, GivenType, RegisteredEntity, StoredChange
from mnemolog.schemas.provenance import Decision
from tests.support.builders.entity_events import name_alias

EVA, EVE, MIA = UUID(int=1), UUID(int=2), UUID(int=3)
"""Eve was split from Eva."""
COMMON = {"ordinal": 0, "decision": Decision(by="person", reason="a human said so")}
SPLIT = EntitySplit.model_validate(
    {**COMMON, "event_id": UUID(int=8), "entity_id": EVA, "new_id": EVE, "name": "Eve", "type": "person"}
    | {"names": (name_alias("Eve"),)}
)
LATER: dict[str, AnyEntityChange] = {
    "merge": EntitiesMerged.model_validate({**COMMON, "event_id": UUID(int=9), "merged": (EVE,), "into": MIA}),
    "merge into it": EntitiesMerged.model_validate({**COMMON, "event_id": UUID(int=9), "merged": (MIA,), "into": EVE}),
    "forget": EntityForgotten.model_validate({**COMMON, "event_id": UUID(int=9), "entity_id": EVE}),
}


def statuses(later: AnyEntityChange, *, is_split: bool) -> list[str]:
    entities = [RegisteredEntity(one, one, "Eva", "person", is_user=False, is_named=True) for one in (EVA, EVE, MIA)]
    changes = [StoredChange(SPLIT, 1, is_split), StoredChange(later, 2, in_effect=True)]
    current = CurrentState.of(entities, (), (), changes).current()
    assert is_split or current[EVE].merged_into == EVA
    return [current[one].status for one in (EVA, EVE, MIA)]


@pytest.mark.parametrize("kind", LATER)
def test_what_was_decided_about_what_a_split_made_falls_with_it(kind: str) -> None:
    assert statuses(LATER[kind], is_split=True) != ["active", "active", "active"]
    assert statuses(LATER[kind], is_split=False) == ["active", "merged", "active"]


def test_what_was_known_by_a_tie_is_called_by_its_first_current_name() -> None:
    assert called() == "Rosa"
    assert called(is_said=False) == "Bibi"
    assert called(renamed="Rosalinde") == "Rosalinde"


def called(*, is_said: bool = True, renamed: str | None = None) -> str:
    """The name of "my mother", to whom facts gave the name Rosa, if it `is_said`, and then Bibi."""
    entity = RegisteredEntity(EVA, EVA, "my mother", "person", is_user=False, is_named=True)
    aliases = [
        GivenAlias(EVA, "name", "bibi", "Bibi", 1, UUID(int=13), 3, is_own=False, is_said=True),
        GivenAlias(EVA, "name", "rosa", "Rosa", 1, UUID(int=12), 2, is_own=False, is_said=is_said),
        GivenAlias(EVA, "tie", f"mother of {MIA}", "my mother", 0, EVA, 1, is_own=True, is_said=True),
    ]
    event = {**COMMON, "event_id": UUID(int=9), "entity_id": EVA, "name": renamed, "alias": name_alias("Rosalinde")}
    changes = [StoredChange(EntityRenamed.model_validate(event), 4, in_effect=True)] if renamed else []
    return CurrentState.of([entity], aliases, (), changes).current()[EVA].name


def test_a_type_that_nobody_gave_is_that_of_the_first_fact_that_gives_one() -> None:
    told = [GivenType(UUID(int=20), EVA, "person"), GivenType(UUID(int=21), EVA, "animal")]
    for registered, types, expected in (
        ("other", told, "person"),
        ("other", told[1:], "animal"),
        ("other", [], "other"),
        ("place", told, "place"),
    ):
        entity = RegisteredEntity(EVA, EVA, "Eva", registered, is_user=False, is_named=True)
        assert CurrentState.of([entity], (), (), (), types).current()[EVA].type == expected


def test_a_type_goes_with_the_fact_that_a_split_moves() -> None:
    fact_id = UUID(int=20)
    entities = [RegisteredEntity(one, one, "Eva", "other", is_user=False, is_named=True) for one in (EVA, EVE)]
    split = StoredChange(SPLIT.model_copy(update={"facts": (fact_id,)}), 1, in_effect=True)
    told = [GivenType(fact_id, EVA, "person")]
    current = CurrentState.of(entities, (), [(fact_id, EVA)], [split], told).current()
    assert (current[EVA].type, current[EVE].type) == ("other", "person")


def test_a_merged_entity_tells_what_the_other_one_is() -> None:
    kinds = {EVA: "other", MIA: "person"}
    entities = [RegisteredEntity(one, one, "Eva", kind, is_user=False, is_named=True) for one, kind in kinds.items()]
    event = EntitiesMerged.model_validate({**COMMON, "event_id": UUID(int=9), "merged": (MIA,), "into": EVA})
    current = CurrentState.of(entities, (), (), [StoredChange(event, 1, in_effect=True)]).current()
    assert current[EVA].type == "person"
