"""Terms belong to a statement: equal words until another time are news."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.streams.resolution.classify import Conflict, Duplicate, New, classify
from tests.support.builders.decisions import (
    NEXT_YEAR,
    THRESHOLDS,
    TODAY,
    decide_one,
    known_fact,
    llm_decision,
    matched_fact,
)

PERMIT = "Mira has a parking permit."
LATER = NEXT_YEAR + timedelta(days=30)


@pytest.mark.parametrize("similarity", [1.0, 0.99])
@pytest.mark.parametrize(
    ("said", "known", "is_repetition"),
    [
        ({}, {}, True),
        ({"valid_until": NEXT_YEAR}, {"valid_until": NEXT_YEAR}, True),
        ({}, {"true_to": NEXT_YEAR}, True),
        ({"valid_until": LATER}, {"valid_until": NEXT_YEAR}, False),
        ({"valid_until": NEXT_YEAR}, {}, False),
        ({}, {"valid_until": NEXT_YEAR}, False),
    ],
)
def test_equal_words_are_a_repetition_until_the_same_time_only(
    similarity: float, said: dict[str, Any], known: dict[str, Any], *, is_repetition: bool
) -> None:
    candidate = known_fact(text=PERMIT, similarity=similarity, **known)
    matched = matched_fact(candidate, text=PERMIT, **said)
    assert isinstance(
        classify(matched, THRESHOLDS, EffectivePolicy(), infer=True), Duplicate if is_repetition else Conflict
    )
    assert isinstance(
        classify(matched, THRESHOLDS, EffectivePolicy(), infer=False), Duplicate if is_repetition else New
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [(TODAY - timedelta(hours=12), TODAY), (TODAY - timedelta(hours=1), TODAY - timedelta(hours=1))],
    ids=["the day of both", "a time after the beginning"],
)
def test_an_end_on_the_day_of_the_beginning_is_within_it(given: datetime, expected: datetime) -> None:
    old = known_fact(true_from=TODAY - timedelta(hours=3))
    event = decide_one(matched_fact(old, action_hint="update"), llm_decision("REPLACE", old, ended_at=given))
    assert event.end_time == expected
