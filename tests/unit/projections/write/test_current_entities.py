"""What entities are after a split that was undone: as if nobody had decided anything about what it made."""

from uuid import UUID

import pytest

from mnemolog.projections.write.entities.current_state import CurrentState, RegisteredEntity, StoredChange
from mnemolog.schemas.entities.changes import AnyEntityChange, EntitiesMerged, EntityForgotten, EntitySplit
from mnemolog.schemas.provenance import Decision
from tests.support.builders.entity_events import name_alias

EVA, EVE, MIA = UUID(int=1), UUID(int=2), UUID(int=3)
"""Eve was split from Eva."""
COMMON = {"ordinal": 0, "decision": Decision(by="human", reason="a human said so")}
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
    entities = [RegisteredEntity(one, one, "Eva", False, True) for one in (EVA, EVE, MIA)]
    changes = [StoredChange(SPLIT, 1, is_split), StoredChange(later, 2, in_effect=True)]
    current = CurrentState.of(entities, (), (), changes).current()
    assert is_split or current[EVE].merged_into == EVA
    return [current[one].status for one in (EVA, EVE, MIA)]


@pytest.mark.parametrize("kind", LATER)
def test_what_was_decided_about_what_a_split_made_falls_with_it(kind: str) -> None:
    assert statuses(LATER[kind], is_split=True) != ["active", "active", "active"]
    assert statuses(LATER[kind], is_split=False) == ["active", "merged", "active"]
