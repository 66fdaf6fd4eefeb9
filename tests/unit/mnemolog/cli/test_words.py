"""Counts, times and ages as people read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from mnemolog.cli.tables import ago, cell, counted, ends_by_status

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("number", "shown"), [(0, "no facts"), (1, "1 fact"), (2, "2 facts")])
def test_a_noun_follows_its_number(number: int, shown: str) -> None:
    assert counted(number, "fact") == shown


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    assert counted(2, "try", "tries") == "2 tries"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (0.956, "0.96"),
        (datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))), "2026-02-28 23:30 UTC"),
        (timedelta(days=7), "7 days"),
        (timedelta(days=45), "1 month"),
        (timedelta(hours=1, minutes=59), "1 hour"),
        (timedelta(minutes=5, seconds=3), "5 minutes"),
        (timedelta(microseconds=694093), "less than a second"),
        (3, "3"),
    ],
)
def test_values_are_shown_as_people_read_them(value: object, shown: str) -> None:
    assert cell(value) == shown


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (NOON - timedelta(minutes=3), "3 minutes ago"),
        (NOON - timedelta(days=1, hours=5), "1 day ago"),
        (NOON + timedelta(days=400), "in 1 year"),
        (NOON, "less than a second ago"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(time: datetime, shown: str) -> None:
    assert ago(time, NOON) == shown


def test_ends_are_counted_by_status() -> None:
    assert ends_by_status({"facts": 1, "failed": 2}) == "facts: 1, failed: 2"
    assert ends_by_status({}) == "none"
