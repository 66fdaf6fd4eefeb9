from typing import Any

import pytest

from mnemolog.schemas import ids
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import FactSkipped
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.vector import Vector
from mnemolog.streams.resolution.classify import (
    MAX_EARLIER_FACTS,
    MAX_ENDED_CANDIDATES,
    Conflict,
    Duplicate,
    New,
    TurnState,
    classify,
    with_earlier_facts,
)
from mnemolog.streams.resolution.decide import decide
from tests.support.builders.decisions import (
    LAST_YEAR,
    NEXT_YEAR,
    OWNER,
    SOURCE,
    THRESHOLDS,
    TODAY,
    PendingOverwrite,
    decide_all,
    decision_context,
    known_fact,
    llm_decision,
    matched_fact,
)
from tests.support.harnesses.resolver_harness import extracted_fact, matched_envelope

RULES = EffectivePolicy()


@pytest.mark.parametrize(
    ("similarity", "infer", "band"),
    [(0.981, True, Conflict), (0.65, True, Conflict), (0.649, True, New), (0.951, False, New), (0.70, False, New)],
)
def test_similarity_sorts_a_fact_into_its_band(similarity: float, *, infer: bool, band: type) -> None:
    fact = matched_fact(known_fact(similarity, "Mira has her home in Munich."))
    assert isinstance(classify(fact, THRESHOLDS, RULES, infer=infer), band)


@pytest.mark.parametrize(
    ("similarity", "infer", "band"),
    [(0.981, True, Duplicate), (0.98, True, Conflict), (0.951, False, Duplicate), (0.95, False, New)],
)
def test_equivalent_words_are_a_duplicate_above_the_threshold(similarity: float, *, infer: bool, band: type) -> None:
    fact = matched_fact(known_fact(similarity, "Mira has 2 cats."), text="Mira has two cats.")
    assert isinstance(classify(fact, THRESHOLDS, RULES, infer=infer), band)


@pytest.mark.parametrize("rules", [RULES, EffectivePolicy(add_only=True)])
@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize(("subject", "is_repetition"), [("Ann", True), ("Bob", False)])
def test_what_somebody_else_says_of_himself_is_no_repetition(
    rules: EffectivePolicy, subject: str, *, infer: bool, is_repetition: bool
) -> None:
    fact = matched_fact(known_fact(1.0, "I like tea.", subject="Ann"), text="I like tea!", subject=subject)
    assert isinstance(classify(fact, THRESHOLDS, rules, infer=infer), Duplicate) == is_repetition


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("Mira likes walnuts.", "Mira likes peanuts."),
        ("Mira owns 3 cats.", "Mira owns 2 cats."),
        ("Mira is allergic to nuts.", "Mira isn't allergic to nuts."),
        ("Mira lives in Bern.", "Mira lives in Berlin."),
        ("x" * 1001, "x" * 1000 + "y"),
    ],
)
def test_a_vector_proves_nothing_about_words_numbers_names_and_denials(said: str, before: str) -> None:
    fact = matched_fact(known_fact(0.999, before), known_fact(0.7), text=said)
    assert isinstance(classify(fact, THRESHOLDS, RULES, infer=True), Conflict)
    assert isinstance(classify(fact, THRESHOLDS, RULES, infer=False), New)


def test_the_nearest_equivalent_fact_is_the_duplicate() -> None:
    two, cats = known_fact(0.999, "Mira has 2 cats."), known_fact(0.99, "Mira has three cats.")
    classification = classify(matched_fact(two, cats, text="Mira has 3 cats."), THRESHOLDS, RULES, infer=True)
    assert isinstance(classification, Duplicate)
    assert classification.candidate == cats


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("rules", [RULES, EffectivePolicy(add_only=True)])
def test_equal_words_are_a_duplicate_whatever_the_similarity(rules: EffectivePolicy, *, infer: bool) -> None:
    fact = matched_fact(known_fact(0.1, "mira  LIVES in Munich"))
    assert classify(fact, THRESHOLDS, rules, infer=infer) == Duplicate(fact, fact.candidates[0], "hash")


def test_equal_words_that_are_held_come_before_those_that_are_pending() -> None:
    text = "Mira lives in Munich."
    pending, held = known_fact(1.0, text, status="pending_confirmation"), known_fact(1.0, text)
    classification = classify(matched_fact(pending, held, text=text), THRESHOLDS, RULES, infer=True)
    assert isinstance(classification, Duplicate)
    assert classification.candidate == held


@pytest.mark.parametrize("infer", [True, False])
def test_where_facts_are_only_added_nothing_near_is_looked_at(*, infer: bool) -> None:
    fact, rules = matched_fact(known_fact(0.99, "Mira has her home in Munich.")), EffectivePolicy(add_only=True)
    assert classify(fact, THRESHOLDS, rules, infer=infer) == New(fact, "add_only")
    assert classify(matched_fact(), THRESHOLDS, rules, infer=infer) == New(matched_fact())


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
        matched_fact(known_fact(0.1, **old), **new), THRESHOLDS, EffectivePolicy(single_valued=("locker",)), infer=True
    )
    assert isinstance(classification, Conflict) == contested


def test_what_is_near_or_of_the_same_slot_is_contested_the_slot_first() -> None:
    near, slot, far = known_fact(0.9), known_fact(0.2, key="home_city"), known_fact(0.3)
    classification = classify(matched_fact(near, slot, far, key="home_city"), THRESHOLDS, RULES, infer=True)
    assert isinstance(classification, Conflict)
    assert classification.candidates == (slot, near)


@pytest.mark.parametrize(("hint", "contested"), [("new", False), ("update", True), ("retract", True)])
def test_a_statement_that_ends_something_is_held_against_what_is_less_near(hint: str, *, contested: bool) -> None:
    fact = matched_fact(*map(known_fact, (0.39, 0.40, 0.45, 0.55, 0.50)), action_hint=hint)
    classification = classify(fact, THRESHOLDS, RULES, infer=True)
    assert isinstance(classification, Conflict) == contested
    if isinstance(classification, Conflict):
        assert [candidate.similarity for candidate in classification.candidates] == [0.55, 0.50, 0.45]
        assert len(classification.candidates) == MAX_ENDED_CANDIDATES


@pytest.mark.parametrize("similarity", [1.0, 0.99])
@pytest.mark.parametrize(
    ("said", "known", "is_repetition"),
    [
        ({}, {}, True),
        ({"valid_until": NEXT_YEAR}, {"valid_until": NEXT_YEAR}, True),
        ({}, {"true_to": NEXT_YEAR}, True),
        ({"valid_until": NEXT_YEAR}, {"valid_until": TODAY}, False),
        ({"valid_until": NEXT_YEAR}, {}, False),
        ({}, {"valid_until": NEXT_YEAR}, False),
    ],
)
def test_equal_words_are_a_repetition_until_the_same_time_only(
    similarity: float, said: dict[str, Any], known: dict[str, Any], *, is_repetition: bool
) -> None:
    permit = "Mira has a parking permit."
    fact = matched_fact(known_fact(text=permit, similarity=similarity, **known), text=permit, **said)
    assert isinstance(classify(fact, THRESHOLDS, RULES, infer=True), Duplicate if is_repetition else Conflict)
    assert isinstance(classify(fact, THRESHOLDS, RULES, infer=False), Duplicate if is_repetition else New)


# Facts of one turn


MUNICH = known_fact(0.9, "Mira lives in Munich.", status="pending_confirmation")


def turn_with(*facts: MatchedFact) -> MatchedFacts:
    return matched_envelope(at=TODAY).model_copy(update={"facts": facts})


def matched(text: str, *values: float, candidates: Any = (), model: str = "m", **fields: Any) -> MatchedFact:
    vector = Vector.from_values(model, list(values or (1.0, 0.0)))
    return MatchedFact(fact=extracted_fact(text, **fields), vector=vector, candidates=candidates)


def test_an_earlier_fact_is_a_candidate_of_a_later_one_as_it_was_said() -> None:
    turn = turn_with(
        matched("Mira lives in Bonn.", key="home_city", value="Bonn", category="identity", event_time=LAST_YEAR),
        matched("Mira lives in Ulm.", 0.6, 0.8, key="home_city", candidates=(known_fact(),)),
    )
    first, second = with_earlier_facts(turn, EffectivePolicy(confidence="cautious"))
    assert first.candidates == ()
    _, bonn = second.candidates
    assert bonn.fact_id == provisional_fact_id(turn.owner, turn.source_id, 0)
    assert (bonn.text, bonn.key, bonn.value, bonn.category) == ("Mira lives in Bonn.", "home_city", "Bonn", "identity")
    assert (bonn.true_from, bonn.confidence, bonn.status) == (LAST_YEAR, 0.40, "active")
    assert bonn.similarity == pytest.approx(0.6, abs=1e-3)


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        ({"key": "home_city"}, {"key": "home_city"}, True),
        ({"key": "pet"}, {"key": "pet"}, False),
        ({"key": "pet"}, {"key": "pet", "single_valued": True}, True),
        ({"key": "pet"}, {"key": "hobby"}, False),
        ({}, {}, True),
        ({"key": "pet"}, {"key": "hobby", "action_hint": "retract"}, True),
        ({"key": "pet", "text": "Mira has no pets."}, {"key": "pet"}, True),
        ({"key": "pet", "text": "same"}, {"key": "hobby", "text": "Same."}, True),
    ],
)
def test_only_what_may_clash_is_asked_about(before: dict[str, Any], after: dict[str, Any], *, may: bool) -> None:
    facts = (matched(**{"text": "Mira has a dog.", **before}), matched(**{"text": "Mira has a cat.", **after}))
    _, second = with_earlier_facts(turn_with(*facts), EffectivePolicy())
    assert bool(second.candidates) == may


def test_a_place_in_a_turn_has_an_id_of_its_own() -> None:
    """A statement with two events moves the ids of those after it: what is "place 1" is event 2."""
    facts = [matched_fact(MUNICH, text="one"), matched_fact(text="two"), matched_fact(text="three")]
    case = PendingOverwrite(fact_id=MUNICH.fact_id, targets=(known_fact().fact_id,))
    first, second = (
        known_fact(fact_id=provisional_fact_id(OWNER, SOURCE, place), text=facts[place].fact.text) for place in (0, 1)
    )
    third = facts[2].model_copy(update={"candidates": (first, second)})
    decisions = {0: llm_decision("MERGE", MUNICH), 1: llm_decision("ADD"), 2: llm_decision("EXTEND", first)}
    _, detail, _, last = decide_all([*facts[:2], third], decisions, decision_context(case))
    assert detail.new_fact is not None
    assert last.affected_ids == (detail.new_fact.fact_id,)
    assert [one.fact_id for one in last.decision.candidates] == [ids.fact_id(OWNER, SOURCE, place) for place in (1, 2)]
    state = TurnState({})
    state.apply([detail], provisional_fact_id(OWNER, SOURCE, 0))
    state.apply([last], provisional_fact_id(OWNER, SOURCE, 1))
    assert state.current_fact(state.current_fact(first)) == state.current_fact(first)


def test_a_fact_is_compared_with_so_many_before_it_but_not_with_the_vectors_of_another_model() -> None:
    facts = [matched(f"fact {place}") for place in range(MAX_EARLIER_FACTS + 2)]
    *_, last = with_earlier_facts(turn_with(*facts), EffectivePolicy())
    assert len(last.candidates) == MAX_EARLIER_FACTS
    _, second = with_earlier_facts(turn_with(matched("one"), matched("two", 1.0, model="other")), EffectivePolicy())
    assert [candidate.similarity for candidate in second.candidates] == [0.0]


def test_equal_words_in_one_turn_repeat_what_is_history() -> None:
    munich = known_fact(0.9, "Mira lives in Munich.", true_from=NEXT_YEAR, said_at=NEXT_YEAR)
    rome = matched_fact(munich, text="Mira lives in Rome.")
    first = known_fact(1.0, rome.fact.text, fact_id=provisional_fact_id(OWNER, SOURCE, 0), true_from=TODAY)
    again = Duplicate(rome.model_copy(update={"candidates": (first,)}), first, "hash")
    replaces = {0: llm_decision("REPLACE", munich)}
    history, repeated = decide([Conflict(rome, (munich,)), again], replaces, decision_context())
    assert (history.event, history.end_time) == ("fact_added", NEXT_YEAR)
    assert isinstance(repeated, FactSkipped)
    assert repeated.of_ended
    assert repeated.target == history.subject_id
