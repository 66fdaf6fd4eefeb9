"""How sure it is that a call is at fault, from its failures and those of others."""

import random

import pytest

from mnemolog.common.suspicion import Suspicion


def attempts_until_conclusive(*, successes: int, failures: int) -> int:
    suspicion, attempts = Suspicion(), 0
    while not suspicion.is_conclusive:
        suspicion.add_failure(successes=successes, failures=failures)
        attempts += 1
        assert attempts < 10_000
    return attempts


@pytest.mark.parametrize(
    ("successes", "failures", "attempts"),
    [(9, 0, 6), (1000, 0, 6), (1, 0, 20), (4, 4, 24), (50, 50, 21), (10, 90, 133)],
)
def test_the_number_of_attempts_adapts_to_the_failures_of_others(successes: int, failures: int, attempts: int) -> None:
    assert attempts_until_conclusive(successes=successes, failures=failures) == attempts


def test_failures_among_failures_are_no_suspicion() -> None:
    suspicion = Suspicion()
    for _ in range(10_000):
        suspicion.add_failure(successes=0, failures=3)
    assert not suspicion.is_conclusive


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.9])
def test_the_expected_weight_of_a_period_is_at_most_one(share: float) -> None:
    """What makes the product of the weights a bound for the chance: a healthy call gains nothing on average."""
    chance = random.Random(3)
    weights = []
    for _ in range(50_000):
        outcomes = [chance.random() < share for _ in range(8)]
        failures = sum(outcomes[1:])
        suspicion = Suspicion()
        if outcomes[0]:
            suspicion.add_failure(successes=7 - failures, failures=failures)
        weights.append(10**suspicion.powers_of_ten if outcomes[0] else 0.0)
    assert sum(weights) / len(weights) < 1.02
