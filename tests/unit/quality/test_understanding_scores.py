"""What a dialogue left is judged by what its case says has to hold."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.queries.entities import EntityRelation
from mnemolog.schemas.entities import EntityLink, Strength
from tests.quality.runs import load_scores
from tests.quality.understanding.cases import USER, DialogueCase, load
from tests.quality.understanding.report import BASELINE, PAGE, ScoredCase, page, regressions
from tests.quality.understanding.scores import (
    CaseResult,
    CaseScore,
    Cost,
    RelationFaults,
    SeenEntity,
    SeenFact,
    relation_faults,
    score,
)

BEN, ANA, TOM, OTHER, STRANGER = (UUID(int=number) for number in range(1, 6))
FIRST, SECOND = UUID(int=11), UUID(int=12)
STRONG: Strength = "strong"
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
WORKS = {"turn": 1, "says": ["works"]}


@pytest.mark.parametrize(
    ("case", "seen", "expected"),
    [
        pytest.param({"entities": [WIFE]}, left({"Ben's wife Ana": ANA}, {"Ben's wife": ANA}), {}, id="one entity"),
        pytest.param(
            {"entities": [WIFE]},
            left({"Ana": ANA}, {"Ben's wife": OTHER}),
            {"missed_links": 1, "unresolved": 1},
            id="a second entity of one label",
        ),
        pytest.param(
            {"entities": [WIFE]},
            left({"Ana": ANA}, {"Banana": OTHER}),
            {"missed_links": 1, "unresolved": 1},
            id="a mention without a link: a name is a whole word",
        ),
        pytest.param(
            {"entities": [WIFE]},
            left({"Ana": BEN}, {"my wife": BEN}),
            {"unresolved": 2, "wrong_merges": 1},
            id="everybody is the user",
        ),
        pytest.param(
            {"entities": [WIFE | {"names": ["Anastasia"]}]},
            left({"Ana": ANA}, {"my wife": ANA}),
            {"missed_links": 1},
            id="a name that the entity lacks",
        ),
        pytest.param(
            {"entities": [WIFE, FRIEND]}, left({"Ana": ANA}, {"my wife": ANA, "Tom": TOM}), {}, id="two labels"
        ),
        pytest.param(
            {"entities": [WIFE, FRIEND]},
            left({"Ana": ANA}, {"my wife": ANA, "Tom": ANA}),
            {"wrong_merges": 1, "unresolved": 3},
            id="two labels of one entity",
        ),
        pytest.param(
            {"entities": [WIFE, FRIEND | {"unclear": True}]},
            left({"Ana": ANA}, {"wife": ANA}),
            {},
            id="who is unclear may be left out",
        ),
        pytest.param(
            {"entities": [WIFE, FRIEND | {"unclear": True}]},
            left({"Ana": ANA}, {"wife": ANA, "Tom": ANA}),
            {"wrong_merges": 1, "unresolved": 2},
            id="who is unclear is nobody who is known",
        ),
        pytest.param(
            {"facts": [{"says": ["wife", "works"], "about": ["ana"]}]}, left({}, {}, links=ABOUT_WIFE), {}, id="a fact"
        ),
        pytest.param(
            {"facts": [{"says": ["wife", "works"], "about": ["tom"]}]},
            left({}, {}, links=ABOUT_WIFE),
            {"missed_facts": 1},
            id="a fact about somebody else",
        ),
        pytest.param(
            {"facts": [{"says": ["wife", "works"], "about": ["ana"]}]},
            left({}, {}, links=ABOUT_WIFE, is_held=False),
            {"missed_facts": 1},
            id="a fact that is not held",
        ),
        pytest.param({"never": ["WIFE works"]}, left({}, {}), {"false_facts": 1}, id="what a case forbids"),
        pytest.param({"never": ["wife works"]}, left({}, {}, is_held=False), {}, id="what a case forbids has ended"),
        pytest.param({"ended": [WORKS]}, left({}, {}), {"still_held": 1}, id="what has ended is held"),
        pytest.param({"ended": [WORKS]}, left({}, {}, challenged=frozenset({SECOND})), {}, id="it is challenged"),
        pytest.param({"ended": [WORKS]}, left({}, {}, is_held=False), {}, id="it is not held"),
        pytest.param(
            {"ended": [{"turn": 1, "says": ["Bosch"]}]},
            left({}, {}),
            {"missed_facts": 1},
            id="what has ended was never stored",
        ),
    ],
)
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
        strength=STRONG,
        since=at,
        until=None,
        recorded_at=at,
        evidence=[FIRST],
        endings=[],
    )


def said(predicate: str, label: str, **fields: bool) -> list[dict[str, Any]]:
    return [{"predicate": predicate, "subject": USER, "object": label, **fields}]


ENDED = said("spouse", "ana", holds=False)


@pytest.mark.parametrize(
    ("expected", "seen", "faults"),
    [
        pytest.param(said("spouse", "ana"), [stated(BEN, "spouse", ANA)], (0, 0, 0), id="it holds"),
        pytest.param(said("spouse", "ana"), [stated(ANA, "spouse", BEN)], (0, 0, 0), id="it is symmetric"),
        pytest.param(said("son", "tom"), [stated(TOM, "parent", BEN)], (0, 0, 0), id="its word is reversed"),
        pytest.param(said("spouse", "ana"), [], (1, 0, 0), id="it is not there"),
        pytest.param(
            said("spouse", "ana"), [stated(BEN, "spouse", ANA, holds=False)], (1, 0, 0), id="it holds no more"
        ),
        pytest.param(said("son", "tom"), [stated(BEN, "parent", TOM)], (1, 1, 0), id="the other direction"),
        pytest.param(said("spouse", "ana"), [stated(BEN, "sibling", ANA)], (1, 1, 0), id="another predicate"),
        pytest.param(said("spouse", "ana"), [stated(BEN, "spouse", TOM)], (1, 1, 0), id="another entity"),
        pytest.param([], [stated(BEN, "spouse", STRANGER)], (0, 0, 0), id="somebody out of the case"),
        pytest.param([], [stated(BEN, "mentor", TOM)], (0, 0, 0), id="a predicate out of the registry"),
        pytest.param(said("colleague", "tom", sure=False), [], (0, 0, 0), id="not sure, left out"),
        pytest.param(
            said("colleague", "tom", sure=False), [stated(BEN, "colleague", TOM)], (0, 0, 0), id="not sure, stated"
        ),
        pytest.param(ENDED, [], (0, 0, 1), id="it ended and was never known"),
        pytest.param(ENDED, [stated(BEN, "spouse", ANA)], (0, 0, 1), id="it ended and still holds"),
        pytest.param(ENDED, [stated(BEN, "spouse", ANA, holds=False)], (0, 0, 0), id="it ended"),
    ],
)
def test_relations_that_a_dialogue_left_are_judged_by_those_of_its_case(
    expected: list[dict[str, Any]], seen: list[EntityRelation], faults: tuple[int, int, int]
) -> None:
    labelled = {USER: frozenset({BEN}), "ana": frozenset({ANA}), "tom": frozenset({TOM})}
    case = dialogue(relations=expected, entities=[WIFE, FRIEND])
    assert relation_faults(case, labelled, left({}, {}, relations=seen)) == RelationFaults(*faults)


def test_a_relation_whose_evidence_is_challenged_is_not_held() -> None:
    labelled = {USER: frozenset({BEN}), "ana": frozenset({ANA})}
    seen = left({}, {}, relations=[stated(BEN, "spouse", ANA)], challenged=frozenset({FIRST}))
    assert relation_faults(dialogue(relations=ENDED, entities=[WIFE]), labelled, seen) == RelationFaults(0, 0, 0)


def test_a_figure_that_is_worse_than_its_baseline_is_named() -> None:
    known = {"a": CaseScore(id="a", missed_links=1)}
    assert regressions([CaseScore(id="a", missed_links=1)], known) == []
    assert regressions([CaseScore(id="a")], known) == []
    assert regressions([CaseScore(id="a", wrong_merges=1)], known) == ["a: wrong_merges 0 -> 1"]
    assert "1 cases have no baseline" in regressions([CaseScore(id="b")], known)[0]


def test_the_page_has_the_figures_of_the_baseline() -> None:
    known = load_scores(CaseScore, BASELINE)
    assert PAGE.read_text() == page([ScoredCase(case=case, score=known[case.id], cost=Cost()) for case in load()])
