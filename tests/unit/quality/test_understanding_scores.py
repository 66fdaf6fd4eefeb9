"""What a dialogue left is judged by what its case says has to hold."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from mnemolog.schemas.entities import EntityLink
from tests.quality.scores import Cost
from tests.quality.understanding import baseline
from tests.quality.understanding.case_runner import CaseResult, SeenEntity, SeenFact
from tests.quality.understanding.cases import DialogueCase
from tests.quality.understanding.scores import CaseScore, score

USER, ANA, TOM, OTHER = (UUID(int=number) for number in range(1, 5))
FIRST, SECOND = UUID(int=11), UUID(int=12)


def dialogue(**fields: Any) -> DialogueCase:
    """My wife is called Ana. / My wife works at Bosch."""
    turns = [{"messages": [{"role": "user", "content": said}]} for said in ("My wife is called Ana.", "My wife works.")]
    return DialogueCase.model_validate(
        {"id": "alias-01", "language": "en", "speaker": "Ben", "turns": turns} | (fields or {"entities": WIFE})
    )


def mention(turn: int, *names: str) -> dict[str, Any]:
    return {"turn": turn, "names": names}


WIFE = [{"label": "ana", "mentions": [mention(0, "ana"), mention(1, "wife", "ana")]}]


def left(
    first: Mapping[str, UUID], second: Mapping[str, UUID], *, second_is_held: bool = True, **fields: Any
) -> CaseResult:
    """What two turns left, a fact each, by the names that it is linked by."""
    links = {
        fact_id: tuple(EntityLink(entity_id=one, role="object", name=name, step="exact") for name, one in named.items())
        for fact_id, named in ((FIRST, first), (SECOND, second))
    }
    facts = {
        FIRST: SeenFact(fact_id=FIRST, text="Ben's wife is Ana.", subject="Ben", is_held=True),
        SECOND: SeenFact(fact_id=SECOND, text="Ben: My wife works.", subject="", is_held=second_is_held),
    }
    entities = {
        USER: SeenEntity(names=("Ben",), is_user=False),
        ANA: SeenEntity(names=("Ana", "Ben's wife"), is_user=False),
        TOM: SeenEntity(names=("Tom",), is_user=False),
        OTHER: SeenEntity(names=("Ben's wife",), is_user=False),
    }
    whole: dict[str, Any] = {
        "facts": facts,
        "turns": [frozenset({FIRST}), frozenset({SECOND})],
        "links": links,
        "entities": entities,
        "challenged": frozenset[UUID](),
        "relations": [],
        "cost": Cost(),
    }
    return CaseResult(**(whole | fields))


def test_all_mentions_of_one_entity_are_right() -> None:
    found = score(dialogue(), left({"Ben's wife Ana": ANA}, {"Ben's wife": ANA}))
    assert found.right
    assert not found.harmful


def test_an_entity_beside_the_first_and_a_mention_without_a_link_are_missed_links() -> None:
    assert score(dialogue(), left({"Ana": ANA}, {"Ben's wife": OTHER})).missed_links == 1
    assert score(dialogue(), left({"Ana": ANA}, {"Banana": OTHER})).missed_links == 1


def test_a_mention_is_resolved_where_most_of_them_are_and_nobody_else_is() -> None:
    assert score(dialogue(), left({"Ana": ANA}, {"Ben's wife": ANA})).unresolved == 0
    assert score(dialogue(), left({"Ana": ANA}, {"Ben's wife": OTHER})).unresolved == 1
    assert score(dialogue(), left({"Ana": USER}, {"my wife": USER})).unresolved == 2


def test_a_name_that_the_entity_lacks_is_a_missed_link() -> None:
    named = dialogue(entities=[WIFE[0] | {"names": ["Anastasia"]}])
    assert score(named, left({"Ana": ANA}, {"my wife": ANA})).missed_links == 1


def test_two_labels_of_one_entity_are_a_wrong_merge_and_so_is_one_of_the_user() -> None:
    two = dialogue(entities=[*WIFE, {"label": "tom", "mentions": [mention(1, "tom")]}])
    assert score(two, left({"Ana": ANA}, {"my wife": ANA, "Tom": TOM})).right
    merged = score(two, left({"Ana": ANA}, {"my wife": ANA, "Tom": ANA}))
    assert (merged.wrong_merges, merged.harmful) == (1, True)
    assert score(dialogue(), left({"Ana": USER}, {"my wife": USER})).wrong_merges == 1


def test_who_is_unclear_may_be_left_out_but_is_none_of_the_others() -> None:
    unclear = dialogue(entities=[*WIFE, {"label": "?", "mentions": [mention(1, "tom")], "unclear": True}])
    assert score(unclear, left({"Ana": ANA}, {"wife": ANA})).right
    assert score(unclear, left({"Ana": ANA}, {"wife": ANA, "Tom": ANA})).wrong_merges == 1


def test_a_fact_has_to_be_held_and_about_whom_it_is() -> None:
    def missed(about: str, seen: CaseResult) -> int:
        return score(dialogue(facts=[{"says": ["wife", "works"], "about": [about]}]), seen).missed_facts

    about_wife = EntityLink(entity_id=ANA, role="subject", name="my wife", step="tie")
    seen = left({}, {}, links={SECOND: (about_wife,)})
    assert missed("ana", seen) == 0
    assert missed("tom", seen) == 1
    assert missed("ana", left({}, {}, links={SECOND: (about_wife,)}, second_is_held=False)) == 1


def test_what_a_case_forbids_is_a_false_fact() -> None:
    assert score(dialogue(never=["WIFE works"]), left({}, {})).false_facts == 1
    assert score(dialogue(never=["wife works"]), left({}, {}, second_is_held=False)).right


def test_what_has_ended_is_not_held_but_was_stored() -> None:
    ended = dialogue(ended=[{"turn": 1, "says": ["works"]}])
    assert score(ended, left({}, {})).still_held == 1
    assert score(ended, left({}, {}, challenged=frozenset({SECOND}))).right
    assert score(ended, left({}, {}, second_is_held=False)).right
    assert score(dialogue(ended=[{"turn": 1, "says": ["Bosch"]}]), left({}, {})).missed_facts == 1


def test_a_figure_that_is_worse_than_its_baseline_is_told() -> None:
    known = {"a": CaseScore(id="a", missed_links=1)}
    assert baseline.regressions([CaseScore(id="a", missed_links=1)], known) == []
    assert baseline.regressions([CaseScore(id="a")], known) == []
    assert baseline.regressions([CaseScore(id="a", wrong_merges=1)], known) == ["a: wrong_merges 0 -> 1"]
    assert "1 cases have no baseline" in baseline.regressions([CaseScore(id="b")], known)[0]
