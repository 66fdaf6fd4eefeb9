"""What a dialogue left is judged by what its case says has to hold."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.queries.entities import EntityRelation
from mnemolog.schemas.entities import EntityLink
from tests.quality.runs import Cost, load_scores
from tests.quality.understanding.cases import USER, DialogueCase, load
from tests.quality.understanding.report import BASELINE, PAGE, ScoredCase, page, regressions
from tests.quality.understanding.scores import (
    CaseResult,
    CaseScore,
    RelationFaults,
    SeenEntity,
    SeenFact,
    relation_faults,
    score,
)

BEN, ANA, TOM, OTHER, STRANGER = (UUID(int=number) for number in range(1, 6))
FIRST, SECOND = UUID(int=11), UUID(int=12)
ENTITIES = {
    BEN: SeenEntity(names=("Ben",), is_user=False),
    ANA: SeenEntity(names=("Ana", "Ben's wife"), is_user=False),
    TOM: SeenEntity(names=("Tom",), is_user=False),
    OTHER: SeenEntity(names=("Ben's wife",), is_user=False),
}


def dialogue(**fields: Any) -> DialogueCase:
    """My wife is called Ana. / My wife works."""
    turns = [{"messages": [{"role": "user", "content": said}]} for said in ("My wife is called Ana.", "My wife works.")]
    return DialogueCase.model_validate({"id": "alias-01", "language": "en", "speaker": "Ben", "turns": turns} | fields)


def mention(turn: int, *names: str) -> dict[str, Any]:
    return {"turn": turn, "names": names}


WIFE = {"label": "ana", "mentions": [mention(0, "ana"), mention(1, "wife", "ana")]}
FRIEND = {"label": "tom", "mentions": [mention(1, "tom")]}


def left(first: Mapping[str, UUID], second: Mapping[str, UUID], *, is_held: bool = True, **fields: Any) -> CaseResult:
    """What two turns left, a fact each, by the names that it is linked by; the second is held, or not."""
    links = {
        fact_id: tuple(EntityLink(entity_id=one, role="object", name=name, step="exact") for name, one in named.items())
        for fact_id, named in ((FIRST, first), (SECOND, second))
    }
    whole: dict[str, Any] = {
        "facts": {
            FIRST: SeenFact(fact_id=FIRST, text="Ben's wife is Ana.", subject="Ben", is_held=True),
            SECOND: SeenFact(fact_id=SECOND, text="Ben: My wife works.", subject="", is_held=is_held),
        },
        "turns": [frozenset({FIRST}), frozenset({SECOND})],
        "links": links,
        "entities": ENTITIES,
        "challenged": frozenset[UUID](),
        "relations": [],
    }
    return CaseResult(**(whole | fields))


ABOUT_WIFE = {SECOND: (EntityLink(entity_id=ANA, role="subject", name="my wife", step="tie"),)}
ONE, TWO = {"entities": [WIFE]}, {"entities": [WIFE, FRIEND]}
UNCLEAR, NAMED = {"entities": [WIFE, FRIEND | {"unclear": True}]}, {"entities": [WIFE | {"names": ["Anastasia"]}]}
OF_ANA, OF_TOM = ({"facts": [{"says": ["wife", "works"], "about": [name]}]} for name in ("ana", "tom"))
ENDED, NEVER = {"ended": [{"turn": 1, "says": ["works"]}]}, {"never": ["WIFE works"]}
# What has to hold, what two turns left, and the faults that this is.
TABLE: dict[str, tuple[dict[str, Any], CaseResult, dict[str, int]]] = {
    "one entity": (ONE, left({"Ben's wife Ana": ANA}, {"Ben's wife": ANA}), {}),
    "a second entity of a label": (ONE, left({"Ana": ANA}, {"my wife": OTHER}), {"missed_links": 1, "unresolved": 1}),
    "a name is a whole word": (ONE, left({"Ana": ANA}, {"Banana": OTHER}), {"missed_links": 1, "unresolved": 1}),
    "everybody is the user": (ONE, left({"Ana": BEN}, {"my wife": BEN}), {"unresolved": 2, "wrong_merges": 1}),
    "a name that the entity lacks": (NAMED, left({"Ana": ANA}, {"my wife": ANA}), {"missed_links": 1}),
    "two labels": (TWO, left({"Ana": ANA}, {"my wife": ANA, "Tom": TOM}), {}),
    "two labels of one entity": (
        *(TWO, left({"Ana": ANA}, {"my wife": ANA, "Tom": ANA})),
        {"wrong_merges": 1, "unresolved": 3},
    ),
    "who is unclear is left out": (UNCLEAR, left({"Ana": ANA}, {"wife": ANA}), {}),
    "who is unclear is taken for somebody": (
        *(UNCLEAR, left({"Ana": ANA}, {"wife": ANA, "Tom": ANA})),
        {"wrong_merges": 1, "unresolved": 2},
    ),
    "a fact": (OF_ANA, left({}, {}, links=ABOUT_WIFE), {}),
    "a fact about somebody else": (OF_TOM, left({}, {}, links=ABOUT_WIFE), {"missed_facts": 1}),
    "a fact that is not held": (OF_ANA, left({}, {}, links=ABOUT_WIFE, is_held=False), {"missed_facts": 1}),
    "a fact that the case forbids": (NEVER, left({}, {}), {"false_facts": 1}),
    "a forbidden fact that is not held": (NEVER, left({}, {}, is_held=False), {}),
    "what has ended is held": (ENDED, left({}, {}), {"still_held": 1}),
    "what has ended is challenged": (ENDED, left({}, {}, challenged=frozenset({SECOND})), {}),
    "what has ended is not held": (ENDED, left({}, {}, is_held=False), {}),
    "what has ended was not stored": ({"ended": [{"turn": 1, "says": ["x"]}]}, left({}, {}), {"missed_facts": 1}),
}


@pytest.mark.parametrize(("case", "seen", "expected"), TABLE.values(), ids=TABLE)
def test_a_case_has_the_figures_of_what_its_dialogue_left(
    case: dict[str, Any], seen: CaseResult, expected: dict[str, int]
) -> None:
    found = score(dialogue(**case), seen)
    assert found == CaseScore.model_validate({"id": "alias-01"} | expected)
    assert found.right == (not expected)
    assert found.harmful == (not {"wrong_merges", "false_facts"}.isdisjoint(expected))


def stated(subject_id: UUID, predicate: str, object_id: UUID, *, holds: bool = True) -> EntityRelation:
    scope: dict[str, Any] = {"tenant": "default", "user_id": "b", "agent_id": None, "app_id": None, "run_id": None}
    at = datetime(2026, 3, 2, tzinfo=UTC)
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
        strength=0.8,
        since=at,
        until=None,
        recorded_at=at,
        evidence=[FIRST],
        endings=[],
    )


def said(predicate: str, label: str, **fields: bool) -> list[dict[str, Any]]:
    return [{"predicate": predicate, "subject": USER, "object": label, **fields}]


SPOUSE, SON, NO_SPOUSE = said("spouse", "ana"), said("son", "tom"), said("spouse", "ana", holds=False)
UNSURE = said("colleague", "tom", sure=False)
MARRIED, DIVORCED = stated(BEN, "spouse", ANA), stated(BEN, "spouse", ANA, holds=False)
# What was said, what is in memory, and how much is missed, wrong, and has not ended.
RELATIONS: dict[str, tuple[list[dict[str, Any]], list[EntityRelation], tuple[int, int, int]]] = {
    "it holds": (SPOUSE, [MARRIED], (0, 0, 0)),
    "it is symmetric": (SPOUSE, [stated(ANA, "spouse", BEN)], (0, 0, 0)),
    "its word is reversed": (SON, [stated(TOM, "parent", BEN)], (0, 0, 0)),
    "it is not there": (SPOUSE, [], (1, 0, 0)),
    "it holds no more": (SPOUSE, [DIVORCED], (1, 0, 0)),
    "the other direction": (SON, [stated(BEN, "parent", TOM)], (1, 1, 0)),
    "another predicate": (SPOUSE, [stated(BEN, "sibling", ANA)], (1, 1, 0)),
    "another entity": (SPOUSE, [stated(BEN, "spouse", TOM)], (1, 1, 0)),
    "somebody out of the case": ([], [stated(BEN, "spouse", STRANGER)], (0, 0, 0)),
    "a predicate out of the registry": ([], [stated(BEN, "mentor", TOM)], (0, 0, 0)),
    "not sure and left out": (UNSURE, [], (0, 0, 0)),
    "not sure and stated": (UNSURE, [stated(BEN, "colleague", TOM)], (0, 0, 0)),
    "it ended and was never known": (NO_SPOUSE, [], (0, 0, 1)),
    "it ended and still holds": (NO_SPOUSE, [MARRIED], (0, 0, 1)),
    "it ended": (NO_SPOUSE, [DIVORCED], (0, 0, 0)),
}


@pytest.mark.parametrize(("expected", "seen", "faults"), RELATIONS.values(), ids=RELATIONS)
def test_relations_that_a_dialogue_left_are_judged_by_those_of_its_case(
    expected: list[dict[str, Any]], seen: list[EntityRelation], faults: tuple[int, int, int]
) -> None:
    labelled = {USER: frozenset({BEN}), "ana": frozenset({ANA}), "tom": frozenset({TOM})}
    case = dialogue(relations=expected, entities=[WIFE, FRIEND])
    assert relation_faults(case, labelled, left({}, {}, relations=seen)) == RelationFaults(*faults)


def test_a_relation_whose_evidence_is_challenged_is_not_held() -> None:
    labelled = {USER: frozenset({BEN}), "ana": frozenset({ANA})}
    seen = left({}, {}, relations=[stated(BEN, "spouse", ANA)], challenged=frozenset({FIRST}))
    assert relation_faults(dialogue(relations=NO_SPOUSE, entities=[WIFE]), labelled, seen) == RelationFaults(0, 0, 0)


def test_a_figure_that_is_worse_than_its_baseline_is_named() -> None:
    known = {"a": CaseScore(id="a", missed_links=1)}
    assert regressions([CaseScore(id="a", missed_links=1)], known) == []
    assert regressions([CaseScore(id="a")], known) == []
    assert regressions([CaseScore(id="a", wrong_merges=1)], known) == ["a: wrong_merges 0 -> 1"]
    assert "1 cases have no baseline" in regressions([CaseScore(id="b")], known)[0]


def test_the_page_has_the_figures_of_the_baseline() -> None:
    known = load_scores(CaseScore, BASELINE)
    assert PAGE.read_text() == page([ScoredCase(case=case, score=known[case.id], cost=Cost()) for case in load()])
