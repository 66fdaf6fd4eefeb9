"""Times are counted from when they were said, in six languages, and only where they are certain."""

import os
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mnemolog.streams.text.times import find_times, noted

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I fell yesterday", "I fell yesterday (2026-03-01)"),
        ("I have an appointment on Friday", "I have an appointment on Friday (2026-03-06)"),
        ("I broke my leg 3 weeks ago", "I broke my leg 3 weeks ago (2026-02-09 to 2026-02-15)"),
        ("I moved in June", "I moved in June (2025-06-01 to 2025-06-30)"),
        ("We met on March 5, 2020", "We met on March 5, 2020 (2020-03-05)"),
        ("I'm away until Friday", "I'm away until Friday (2026-03-06)"),
        ("I start at Bosch in two weeks", "I start at Bosch in two weeks (2026-03-16 to 2026-03-22)"),
        ("Gestern war ich krank", "Gestern (2026-03-01) war ich krank"),
        ("J'ai déménagé il y a deux semaines", "J'ai déménagé il y a deux semaines (2026-02-16 to 2026-02-22)"),
        ("hace dos días fui al cine", "hace dos días (2026-02-28) fui al cine"),
        ("ieri sono caduta", "ieri (2026-03-01) sono caduta"),
        ("ontem fui ao médico", "ontem (2026-03-01) fui ao médico"),
    ],
)
def test_what_a_time_means_is_noted(text: str, expected: str) -> None:
    assert noted(text, find_times(text, AT)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I swim on Monday",  # every one, the last or the next?
        *("I swim every Monday", "My birthday is on June 14", "May I ask", "Ich wohne hier", "I live in March"),
        *("por la mañana desayuno", "on 31 February 2020", "Guten Morgen"),
    ],
)
def test_what_is_not_certain_is_no_time(text: str) -> None:
    assert find_times(text, AT) == ()


def test_what_starts_in_a_month_that_is_over_starts_next_year() -> None:
    said = datetime(2026, 11, 20, tzinfo=UTC)
    (begin,) = find_times("I work at Bosch starting in March", said)
    assert (begin.role, str(begin.first)) == ("from", "2027-03-01")


def test_the_zone_is_that_of_the_turn() -> None:
    zone = timezone(timedelta(hours=-8))
    at = datetime(2026, 3, 1, 23, tzinfo=zone)
    (when,) = find_times("I fell yesterday", at)
    assert when.start(at) == datetime(2026, 2, 28, tzinfo=zone)
    assert when.end(at) == datetime(2026, 3, 1, tzinfo=zone)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "UTC"])
def test_neither_the_machine_s_zone_nor_its_language_matters(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = find_times("I fell yesterday and go back on Friday, I must", AT)
    assert expected
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    time.tzset()
    try:
        assert find_times("I fell yesterday and go back on Friday, I must", AT) == expected
    finally:
        monkeypatch.undo()
        assert os.environ.get("TZ") == before
        time.tzset()
