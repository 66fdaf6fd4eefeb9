"""What a dialogue left of relations is judged by those that its case names."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.queries.entities import EntityRelation
from mnemolog.schemas.entities import Strength
from tests.quality.scores import Cost
from tests.quality.understanding.case_runner import CaseResult
from tests.quality.understanding.cases import USER, DialogueCase
from tests.quality.understanding.relation_faults import RelationFaults, relation_faults

BEN, ANA, TOM, STRANGER, FACT = (UUID(int=number) for number in range(1, 6))
LABELLED = {USER: frozenset({BEN}), "ana": frozenset({ANA}), "tom": frozenset({TOM})}
AT = datetime(2026, 3, 2, tzinfo=UTC)
STRONG: Strength = "strong"


def faults(expected: list[dict[str, Any]], *seen: EntityRelation, **fields: Any) -> RelationFaults:
    """Of a case of Ben, Ana and Tom."""
    people = [{"label": name, "mentions": [{"turn": 0, "names": [name]}]} for name in ("ana", "tom")]
    case = DialogueCase.model_validate(
        {"id": "alias-01", "language": "en", "speaker": "Ben", "relations": expected, "entities": people}
        | {"turns": [{"messages": [{"role": "user", "content": "My wife Ana met Tom."}]}]}
    )
    left: dict[str, Any] = {"facts": {}, "turns": [], "links": {}, "entities": {}, "challenged": frozenset[UUID]()}
    return relation_faults(case, LABELLED, CaseResult(**(left | fields), relations=seen, cost=Cost()))


def stated(subject_id: UUID, predicate: str, object_id: UUID, *, holds: bool = True) -> EntityRelation:
    scope: dict[str, Any] = {"tenant": "default", "user_id": "b", "agent_id": None, "app_id": None, "run_id": None}
    return EntityRelation(
        **scope,
        subject_id=subject_id,
        subject="",
        predicate=predicate,
        object_id=object_id,
        object="",
        is_active=holds,
        is_mirror=False,
        is_contested=False,
        strength=STRONG,
        since=AT,
        until=None,
        recorded_at=AT,
        evidence=[FACT],
        endings=[],
    )


def said(predicate: str, label: str, **fields: bool) -> dict[str, Any]:
    return {"predicate": predicate, "subject": USER, "object": label, **fields}


def counted(missed: int = 0, wrong: int = 0, not_ended: int = 0) -> RelationFaults:
    return RelationFaults(missed=missed, wrong=wrong, not_ended=not_ended)


def test_a_relation_that_holds_is_right_and_a_symmetric_one_in_both_directions() -> None:
    assert faults([said("spouse", "ana")], stated(BEN, "spouse", ANA)) == counted()
    assert faults([said("spouse", "ana")], stated(ANA, "spouse", BEN)) == counted()


def test_one_that_is_not_there_or_does_not_hold_is_missed() -> None:
    assert faults([said("spouse", "ana")]) == counted(missed=1)
    assert faults([said("spouse", "ana")], stated(BEN, "spouse", ANA, holds=False)) == counted(missed=1)


def test_the_other_direction_another_predicate_and_another_entity_are_wrong() -> None:
    assert faults([said("son", "tom")], stated(TOM, "parent", BEN)) == counted()
    assert faults([said("son", "tom")], stated(BEN, "parent", TOM)) == counted(missed=1, wrong=1)
    assert faults([said("spouse", "ana")], stated(BEN, "sibling", ANA)) == counted(missed=1, wrong=1)
    assert faults([said("spouse", "ana")], stated(BEN, "spouse", TOM)) == counted(missed=1, wrong=1)


def test_what_is_out_of_the_case_or_of_the_registry_is_not_wrong() -> None:
    assert faults([], stated(BEN, "spouse", STRANGER)) == counted()
    assert faults([], stated(BEN, "mentor", TOM)) == counted()


def test_what_is_not_sure_may_be_left_out() -> None:
    expected = [said("colleague", "tom", sure=False)]
    assert faults(expected) == faults(expected, stated(BEN, "colleague", TOM)) == counted()


@pytest.mark.parametrize(("seen", "not_ended"), [((), 1), ((True,), 1), ((False,), 0)])
def test_what_has_ended_was_known_and_does_not_hold(seen: tuple[bool, ...], not_ended: int) -> None:
    relations = [stated(BEN, "spouse", ANA, holds=holds) for holds in seen]
    assert faults([said("spouse", "ana", holds=False)], *relations) == counted(not_ended=not_ended)


def test_what_is_challenged_is_not_held() -> None:
    expected = [said("spouse", "ana", holds=False)]
    assert faults(expected, stated(BEN, "spouse", ANA), challenged=frozenset({FACT})) == counted()
