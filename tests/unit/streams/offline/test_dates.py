from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.offline.dates import find_time

MONDAY = datetime(2023, 5, 8, 13, 57, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "first", "days", "words"),
    [
        ("today", (2023, 5, 8), 1, "on 2023-05-08"),
        ("last night", (2023, 5, 7), 1, "on 2023-05-07"),
        ("the day before yesterday", (2023, 5, 6), 1, "on 2023-05-06"),
        ("the day after tomorrow", (2023, 5, 10), 1, "on 2023-05-10"),
        ("3 days ago", (2023, 5, 5), 1, "on 2023-05-05"),
        ("in two weeks", (2023, 5, 22), 7, "in the week of 2023-05-22"),
        ("a couple of months ago", (2023, 3, 1), 31, "in March 2023"),
        ("last weekend", (2023, 5, 6), 2, "on the weekend of 2023-05-06"),
        ("this month", (2023, 5, 1), 31, "in May 2023"),
        ("next year", (2024, 1, 1), 366, "in 2024"),
        ("last Monday", (2023, 5, 1), 1, "on 2023-05-01"),
        ("on the 5th of June, 2021", (2021, 6, 5), 1, "on 2021-06-05"),
        ("since May 2020", (2020, 5, 1), 31, "since May 2020"),
        ("by 2023-12-24", (2023, 12, 24), 1, "by 2023-12-24"),
        ("starting on 2023-05-09", (2023, 5, 9), 1, "since 2023-05-09"),
        ("as of tomorrow", (2023, 5, 9), 1, "since 2023-05-09"),
        ("at the end of the month", (2023, 5, 31), 1, "on 2023-05-31"),
        ("until the end of February 2024", (2024, 2, 29), 1, "until 2024-02-29"),
        ("for the next two weeks", (2023, 5, 8), 15, "until 2023-05-22"),
    ],
)
def test_a_time_is_found_and_named(text: str, first: tuple[int, int, int], days: int, words: str) -> None:
    when = find_time(f"I went {text} with Bo", MONDAY, future=False)
    assert when is not None
    assert when.start == datetime(*first, tzinfo=UTC)
    assert when.end - when.start == timedelta(days=days)
    assert when.words == words


@pytest.mark.parametrize(
    ("text", "past", "future"),
    [
        ("on Friday", date(2023, 5, 5), date(2023, 5, 12)),
        ("on Monday", date(2023, 5, 1), date(2023, 5, 15)),
        ("in March", date(2023, 3, 1), date(2024, 3, 1)),
        ("in May", date(2023, 5, 1), date(2023, 5, 1)),
        ("in October", date(2022, 10, 1), date(2023, 10, 1)),
        ("on May 3", date(2023, 5, 3), date(2024, 5, 3)),
        ("on May 30", date(2022, 5, 30), date(2023, 5, 30)),
    ],
)
def test_a_time_without_a_year_is_sought_on_the_side_that_is_meant(text: str, past: date, future: date) -> None:
    for ahead, expected in ((False, past), (True, future)):
        when = find_time(text, MONDAY, future=ahead)
        assert when is not None
        assert when.start.date() == expected


@pytest.mark.parametrize(
    "text", ["I may go", "every Monday", "on Mondays", "for two years", "2024-02-30", "", "at 25 today"]
)
def test_what_is_no_time_is_not_found(text: str) -> None:
    assert find_time(text, MONDAY, future=True) is None


def test_the_day_is_that_of_the_speakers_zone() -> None:
    late = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    when = find_time("tomorrow at 12:15 am", late, future=True)
    assert when is not None
    assert when.start.isoformat() == "2023-05-09T00:15:00-05:00"


@given(
    st.lists(st.sampled_from(["in", "999", "9999", "31", "days", "years", "ago", "May", "Feb", "last", "on", "at"])),
    st.datetimes(timezones=st.just(UTC)),
)
def test_no_words_break_the_calendar(words: list[str], at: datetime) -> None:
    find_time(" ".join(words), at, future=True)


def test_how_long_tells_an_end_only_of_what_is_to_come() -> None:
    when = find_time("I am in Rome for three days", MONDAY, future=True)
    assert when is not None
    assert when.words == "until 2023-05-11"
    assert find_time("I was in Rome for three days", MONDAY, future=False) is None


def test_what_holds_since_a_day_began_with_it() -> None:
    when = find_time("we meet at 11 starting today", MONDAY, future=True)
    assert when is not None
    assert when.start == datetime(2023, 5, 8, tzinfo=UTC)
