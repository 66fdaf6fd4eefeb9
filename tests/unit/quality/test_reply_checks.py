"""What the checks refuse is wrong, and what they let through is said: both sides, on labelled replies."""

import pytest

from tests.quality.reply_checks import Refused, by_check, by_table, judged

LEAST_RATIO = 9
"""Harmful replies that a check refuses for an honest one; one that refuses none may be rare."""


@pytest.mark.parametrize("found", by_check(), ids=lambda found: found.group)
def test_a_check_refuses_at_least_nine_harmful_replies_for_an_honest_one(found: Refused) -> None:
    assert found.harmful >= LEAST_RATIO * found.honest


def test_honest_merges_and_repetitions_pass_and_the_seeds_own() -> None:
    refused = [one.shown for one in judged() if one.table == "decisions" and one.is_honest and one.checks]
    assert len(refused) <= 5, refused  # of 100
    assert not [one for one in refused if "TypeScript" in one or "Located in Berlin" in one]


@pytest.mark.parametrize(
    ("table", "harmful", "honest"),
    [("facts", 118, 1), ("decisions", 48, 5), ("older facts", 62, 7), ("older decisions", 282, 3)],
)
def test_no_fewer_replies_are_judged_rightly_than_the_page_says(table: str, harmful: int, honest: int) -> None:
    found = next(one for one in by_table() if one.group == table)
    assert (found.harmful >= harmful, found.honest <= honest) == (True, True), found
