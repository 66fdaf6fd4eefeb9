from typing import Any

import pytest

from mnemolog.schemas import ids
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import FactSkipped
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.vector import Vector
from mnemolog.streams.resolution.classify import MAX_EARLIER_FACTS, Conflict, Duplicate, TurnState, with_earlier_facts
from mnemolog.streams.resolution.decide import decide
from tests.support.builders.decisions import (
    LAST_YEAR,
    NEXT_YEAR,
    OWNER,
    SOURCE,
    TODAY,
    PendingOverwrite,
    decide_all,
    decision_context,
    known_fact,
    llm_decision,
    matched_fact,
)
from tests.support.harnesses.resolver_harness import extracted_fact, matched_envelope

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
