from typing import Any

import pytest

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.vector import Vector
from mnemolog.streams.resolution.turn_state import MAX_EARLIER_FACTS, provisional_fact_id, with_earlier_facts
from tests.support.builders.decisions import LAST_YEAR, TODAY, known_fact
from tests.support.harnesses.resolver_harness import extracted_fact, matched_envelope


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


def test_a_fact_is_compared_with_so_many_before_it() -> None:
    facts = [matched(f"fact {place}") for place in range(MAX_EARLIER_FACTS + 5)]
    assert [len(fact.candidates) for fact in with_earlier_facts(turn_with(*facts), EffectivePolicy())][-3:] == [
        MAX_EARLIER_FACTS
    ] * 3


def test_vectors_of_two_models_are_not_compared() -> None:
    _, second = with_earlier_facts(turn_with(matched("one"), matched("two", 1.0, model="other")), EffectivePolicy())
    assert [candidate.similarity for candidate in second.candidates] == [0.0]
