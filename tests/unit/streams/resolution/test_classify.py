from typing import Any

import pytest

from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.streams.resolution.classify import (
    MAX_ENDED_CANDIDATES,
    Conflict,
    Duplicate,
    New,
    candidate_query,
    classify,
)
from tests.support.builders.decisions import known_fact, matched_fact, turn_rules

RULES = EffectivePolicy()


@pytest.mark.parametrize(
    ("similarity", "infer", "band"),
    [
        (0.981, True, Conflict),
        (0.65, True, Conflict),
        (0.649, True, New),
        (0.951, False, New),
        (0.70, False, New),
    ],
)
def test_similarity_sorts_a_fact_into_its_band(similarity: float, *, infer: bool, band: type) -> None:
    fact = matched_fact(known_fact(similarity, "Mira has her home in Munich."))
    assert isinstance(classify(fact, turn_rules(infer=infer)), band)


@pytest.mark.parametrize(
    ("similarity", "infer", "band"),
    [(0.981, True, Duplicate), (0.98, True, Conflict), (0.951, False, Duplicate), (0.95, False, New)],
)
def test_equivalent_words_are_a_duplicate_above_the_threshold(similarity: float, *, infer: bool, band: type) -> None:
    fact = matched_fact(known_fact(similarity, "Mira has 2 cats."), text="Mira has two cats.")
    assert isinstance(classify(fact, turn_rules(infer=infer)), band)


@pytest.mark.parametrize("infer", [True, False])
def test_one_other_word_is_no_duplicate_however_alike_the_vectors_are(*, infer: bool) -> None:
    fact = matched_fact(known_fact(0.999, "Mira likes peanuts."), text="Mira likes walnuts.")
    assert isinstance(classify(fact, turn_rules(infer=infer)), Conflict if infer else New)


@pytest.mark.parametrize("rules", [RULES, EffectivePolicy(add_only=True)])
@pytest.mark.parametrize("infer", [True, False])
def test_what_somebody_else_says_of_himself_is_no_repetition(rules: EffectivePolicy, *, infer: bool) -> None:
    anns = known_fact(1.0, "I like tea.", subject="Ann")
    assert not isinstance(
        classify(matched_fact(anns, text="I like tea.", subject="Bob"), turn_rules(rules, infer=infer)), Duplicate
    )
    assert isinstance(
        classify(matched_fact(anns, text="I like tea!", subject="Ann"), turn_rules(rules, infer=infer)), Duplicate
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
def test_a_vector_proves_nothing_about_numbers_names_denials_and_ends_of_long_texts(said: str, before: str) -> None:
    fact = matched_fact(known_fact(0.999, before), known_fact(0.7), text=said)
    assert isinstance(classify(fact, turn_rules()), Conflict)
    assert isinstance(classify(fact, turn_rules(infer=False)), New)


def test_the_nearest_equivalent_fact_is_the_duplicate() -> None:
    two, cats = known_fact(0.999, "Mira has 2 cats."), known_fact(0.99, "Mira has three cats.")
    classification = classify(matched_fact(two, cats, text="Mira has 3 cats."), turn_rules())
    assert isinstance(classification, Duplicate)
    assert classification.candidate == cats


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("rules", [RULES, EffectivePolicy(add_only=True)])
def test_equal_words_are_a_duplicate_whatever_the_similarity(rules: EffectivePolicy, *, infer: bool) -> None:
    classification = classify(matched_fact(known_fact(0.1, "Mira  lives in Munich!")), turn_rules(rules, infer=infer))
    assert isinstance(classification, Duplicate)


def test_words_that_only_their_capitals_tell_apart_are_no_duplicate() -> None:
    turkey = matched_fact(known_fact(1.0, "Mira likes turkey."), text="Mira likes Turkey.")
    assert isinstance(classify(turkey, turn_rules()), Conflict)
    assert isinstance(classify(turkey, turn_rules(infer=False)), New)


def test_equal_words_that_are_held_come_before_those_that_are_pending() -> None:
    text = "Mira lives in Munich."
    pending, held = known_fact(1.0, text, status="pending_confirmation"), known_fact(1.0, text)
    classification = classify(matched_fact(pending, held, text=text), turn_rules())
    assert isinstance(classification, Duplicate)
    assert classification.candidate == held


def test_only_candidates_in_the_conflict_zone_are_contested() -> None:
    near, far = known_fact(0.7), known_fact(0.3)
    assert classify(matched_fact(near, far), turn_rules()) == Conflict(matched_fact(near, far), (near,))


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("similarity", [0.7, 0.99])
def test_where_facts_are_only_added_nothing_near_is_looked_at(similarity: float, *, infer: bool) -> None:
    fact = matched_fact(known_fact(similarity, "Mira has her home in Munich."))
    assert classify(fact, turn_rules(EffectivePolicy(add_only=True), infer=infer)) == New(fact, "add_only")
    assert classify(matched_fact(), turn_rules(EffectivePolicy(add_only=True), infer=infer)) == New(matched_fact())


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
    classification = classify(
        matched_fact(known_fact(0.1, **old), **new), turn_rules(EffectivePolicy(single_valued=("locker",)))
    )
    assert isinstance(classification, Conflict) == contested


def test_what_is_of_the_same_slot_is_the_likeliest_conflict() -> None:
    near, slot = known_fact(0.9), known_fact(0.2, key="home_city")
    classification = classify(matched_fact(near, slot, key="home_city"), turn_rules())
    assert isinstance(classification, Conflict)
    assert classification.candidates == (slot, near)


@pytest.mark.parametrize(("hint", "contested"), [("new", False), ("update", True), ("retract", True)])
def test_a_statement_that_ends_something_is_held_against_what_is_less_near(hint: str, *, contested: bool) -> None:
    fact = matched_fact(*map(known_fact, (0.39, 0.40, 0.45, 0.55, 0.50)), action_hint=hint)
    classification = classify(fact, turn_rules())
    assert isinstance(classification, Conflict) == contested
    if isinstance(classification, Conflict):
        assert [candidate.similarity for candidate in classification.candidates] == [0.55, 0.50, 0.45]
        assert len(classification.candidates) == MAX_ENDED_CANDIDATES


@pytest.mark.parametrize("denial", ["said", "known"])
@pytest.mark.parametrize(
    ("said", "known", "is_compared"),
    [
        ("nuts", "nuts", True),
        (None, "nuts", True),
        ("nuts", None, True),
        ("nuts", "milk", False),
        (None, None, False),
    ],
)
def test_a_denial_is_compared_with_what_it_denies_however_unlike_their_vectors_are(
    denial: str, said: str | None, known: str | None, *, is_compared: bool
) -> None:
    hints = {"said": "retract" if denial == "said" else "new", "known": "retract" if denial == "known" else "new"}
    slot: dict[str, Any] = {"key": "allergy", "subject": "Mira"}
    stored = known_fact(0.01, "Mira reacts to nuts.", **slot, value=known, action_hint=hints["known"])
    fact = matched_fact(stored, text="Mira eats whatever she likes.", **slot, value=said, action_hint=hints["said"])
    found = classify(fact, turn_rules())
    assert isinstance(found, Conflict if is_compared else New)
    same = stored.model_copy(update={"action_hint": hints["said"]})
    assert isinstance(classify(fact.model_copy(update={"candidates": (same,)}), turn_rules()), New)


@pytest.mark.parametrize(
    ("key", "hint", "ends_only"),
    [("allergy", "new", True), ("allergy", "retract", False), ("home_city", "new", False), (None, "new", True)],
)
def test_what_is_looked_up_of_a_key(key: str | None, hint: str, *, ends_only: bool) -> None:
    query = candidate_query(matched_fact(key=key, action_hint=hint), turn_rules())
    assert (query.key, query.ends_only) == (key, ends_only)
