from typing import Any

import pytest

from mnemolog.schemas.policy import Rules
from mnemolog.streams.stages.weighing import MAX_ENDINGS, Contested, Duplicate, Fresh, weigh
from tests.verdicts import THRESHOLDS, known, matched

RULES = Rules()


@pytest.mark.parametrize(
    ("similarity", "infer", "band"),
    [
        (0.981, True, Duplicate),
        (0.98, True, Contested),
        (0.65, True, Contested),
        (0.649, True, Fresh),
        (0.951, False, Duplicate),
        (0.95, False, Fresh),
        (0.70, False, Fresh),
    ],
)
def test_similarity_sorts_a_fact_into_its_band(similarity: float, *, infer: bool, band: type) -> None:
    fact = matched(known(similarity, "Mira has her home in Munich."))
    assert isinstance(weigh(fact, THRESHOLDS, RULES, infer=infer), band)


@pytest.mark.parametrize("rules", [RULES, Rules(add_only=True)])
@pytest.mark.parametrize("infer", [True, False])
def test_what_somebody_else_says_of_himself_is_no_repetition(rules: Rules, *, infer: bool) -> None:
    anns = known(1.0, "I like tea.", subject="Ann")
    assert not isinstance(
        weigh(matched(anns, text="I like tea.", subject="Bob"), THRESHOLDS, rules, infer=infer), Duplicate
    )
    assert isinstance(
        weigh(matched(anns, text="I like tea!", subject="Ann"), THRESHOLDS, rules, infer=infer), Duplicate
    )


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("Mira owns 3 cats.", "Mira owns 2 cats."),
        ("The train leaves at 17:45.", "The train leaves at 17:15."),
        ("Mira is allergic to nuts.", "Mira isn't allergic to nuts."),
        ("It takes 3 weeks.", "It takes 3 months."),
        ("Mira swims on Mondays.", "Mira swims on Fridays."),
        ("Mira lives in Bern.", "Mira lives in Berlin."),
        ("x" * 1001, "x" * 1000 + "y"),
    ],
)
def test_a_vector_vouches_for_no_other_number_name_or_denial_and_for_no_end_of_a_long_text(
    said: str, before: str
) -> None:
    fact = matched(known(0.999, before), known(0.7), text=said)
    assert isinstance(weigh(fact, THRESHOLDS, RULES, infer=True), Contested)
    assert isinstance(weigh(fact, THRESHOLDS, RULES, infer=False), Fresh)


def test_the_nearest_that_a_vector_vouches_for_is_the_duplicate() -> None:
    two, cats = known(0.999, "Mira owns 2 cats."), known(0.99, "Mira has 3 cats.")
    weight = weigh(matched(two, cats, text="Mira owns 3 cats."), THRESHOLDS, RULES, infer=True)
    assert isinstance(weight, Duplicate)
    assert weight.candidate == cats


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("rules", [RULES, Rules(add_only=True)])
def test_equal_words_are_a_duplicate_whatever_the_similarity(rules: Rules, *, infer: bool) -> None:
    weight = weigh(matched(known(0.1, "mira  LIVES in Munich")), THRESHOLDS, rules, infer=infer)
    assert isinstance(weight, Duplicate)
    assert weight.by == "hash"


def test_equal_words_that_are_held_come_before_those_that_are_pending() -> None:
    text = "Mira lives in Munich."
    pending, held = known(1.0, text, status="pending_confirmation"), known(1.0, text)
    weight = weigh(matched(pending, held, text=text), THRESHOLDS, RULES, infer=True)
    assert isinstance(weight, Duplicate)
    assert weight.candidate == held


def test_only_candidates_in_the_conflict_zone_are_contested() -> None:
    near, far = known(0.7), known(0.3)
    assert weigh(matched(near, far), THRESHOLDS, RULES, infer=True) == Contested(matched(near, far), (near,))


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("similarity", [0.7, 0.99])
def test_where_facts_are_only_added_nothing_near_is_looked_at(similarity: float, *, infer: bool) -> None:
    fact = matched(known(similarity, "Mira has her home in Munich."))
    assert weigh(fact, THRESHOLDS, Rules(add_only=True), infer=infer) == Fresh(fact, "add_only")
    assert weigh(matched(), THRESHOLDS, Rules(add_only=True), infer=infer) == Fresh(matched())


@pytest.mark.parametrize(
    ("new", "old", "contested"),
    [
        ({"key": "home_city"}, {"key": "home_city"}, True),
        ({"key": "favourite_tea"}, {"key": "favourite_tea"}, True),
        ({"key": "pet"}, {"key": "pet"}, False),
        ({"key": "pet", "single_valued": True}, {"key": "pet"}, True),
        ({"key": "pet"}, {"key": "pet", "single_valued": True}, True),
        ({"key": "locker"}, {"key": "locker"}, True),
        ({"key": "home_city"}, {"key": "employer"}, False),
        ({"key": None, "single_valued": True}, {"key": None, "single_valued": True}, False),
        ({"key": "home_city", "subject": "Mira"}, {"key": "home_city", "subject": "mira "}, True),
        ({"key": "home_city", "subject": "Mira"}, {"key": "home_city", "subject": "Bob"}, False),
        ({"key": "home_city", "subject": "Mira"}, {"key": "home_city", "subject": "the user"}, True),
        ({"key": "home_city", "subject": "Mira"}, {"key": "home_city"}, True),
    ],
)
def test_a_slot_that_holds_one_value_is_contested_whatever_the_similarity(
    new: dict[str, Any], old: dict[str, Any], *, contested: bool
) -> None:
    weight = weigh(matched(known(0.1, **old), **new), THRESHOLDS, Rules(single_valued=("locker",)), infer=True)
    assert isinstance(weight, Contested) == contested


def test_what_is_of_the_same_slot_is_the_likeliest_conflict() -> None:
    near, slot = known(0.9), known(0.2, key="home_city")
    weight = weigh(matched(near, slot, key="home_city"), THRESHOLDS, RULES, infer=True)
    assert isinstance(weight, Contested)
    assert weight.candidates == (slot, near)


@pytest.mark.parametrize(("hint", "contested"), [("new", False), ("update", True), ("retract", True)])
def test_a_statement_that_ends_something_is_held_against_what_is_less_near(hint: str, *, contested: bool) -> None:
    fact = matched(*map(known, (0.39, 0.40, 0.45, 0.55, 0.50)), action_hint=hint)
    weight = weigh(fact, THRESHOLDS, RULES, infer=True)
    assert isinstance(weight, Contested) == contested
    if isinstance(weight, Contested):
        assert [candidate.similarity for candidate in weight.candidates] == [0.55, 0.50, 0.45]
        assert len(weight.candidates) == MAX_ENDINGS
