"""Times of facts in words, as seen at an instant."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from mnemolog.projections.context import moment, time_words
from tests.support.builders.hits import known_fact

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)  # a Wednesday


def utc(year: int, month: int = 1, day: int = 1, hour: int = 0) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (utc(2025), "2025"),
        (utc(2025, 3), "March 2025"),
        (utc(2025, 3, 12), "12 March 2025"),
        (utc(2025, 3, 1, 9), "1 March 2025"),
        (utc(2026, 3, 3), "yesterday"),
        (utc(2026, 3, 4, 23), "today"),
        (utc(2026, 3, 5), "tomorrow"),
        (utc(2026, 3, 6), "Friday"),
        (utc(2026, 3, 10), "Tuesday"),
        (utc(2026, 3, 11), "11 March 2026"),
        (utc(2026, 3, 2), "2 March 2026"),
    ],
)
def test_a_day_is_told_as_people_tell_it(time: datetime, words: str) -> None:
    assert moment(time, NOW) == words


def test_a_time_of_the_day_is_seen_in_the_zone_of_the_reader_and_a_date_is_not() -> None:
    tokyo = NOW.astimezone(timezone(timedelta(hours=9)))
    assert moment(utc(2026, 2, 10, 20), tokyo) == "11 February 2026"
    assert moment(utc(2026, 2, 10), NOW.astimezone(timezone(timedelta(hours=-8)))) == "10 February 2026"


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"true_from": utc(2026, 2, 2, 9)}, ["said on 2 February 2026"]),
        ({"true_from": utc(2026, 3, 4, 9)}, ["said today"]),
        ({"true_from": utc(2025, 3), "event_time": utc(2025, 3)}, ["since March 2025"]),
        ({"true_from": utc(2026, 5, 1), "event_time": utc(2026, 5, 1)}, ["from May 2026 on"]),
        ({"true_from": utc(2026, 3, 4, 9), "valid_until": utc(2026, 3, 6)}, ["said today", "until Friday"]),
        (
            {"true_from": utc(2025), "event_time": utc(2025), "true_to": utc(2026, 3, 9), "valid_until": utc(2027)},
            ["since 2025", "until Monday"],
        ),
    ],
)
def test_a_fact_says_since_when_and_until_when(times: dict[str, Any], words: list[str]) -> None:
    assert list(time_words(known_fact("Anna lives in Bern.", **times), NOW)) == words
