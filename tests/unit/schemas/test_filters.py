"""Filters as they are read, without a database."""

from datetime import UTC, date, datetime

import pytest

from mnemolog.schemas.errors import InvalidArgumentError
from mnemolog.schemas.filters import parse_filter, written_filter


@pytest.mark.parametrize("day", ["2026-01-31", " 2026-01-31 ", date(2026, 1, 31)])
def test_a_day_begins_at_midnight_in_utc(day: object) -> None:
    asked = parse_filter({"created_at": {"gte": day, "in": [day]}})
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    assert asked == parse_filter({"created_at": {"gte": midnight, "in": [midnight.isoformat()]}})
    assert written_filter(asked) == {"created_at": {"gte": "2026-01-31T00:00:00Z", "in": ["2026-01-31T00:00:00Z"]}}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("2026-02-30", r"created_at\.gt: is not a day of the calendar"),
        ("0001-01-01", r"created_at\.gt: a time lies in the years 2 to 9998"),
        (date(1, 1, 1), r"created_at\.gt: a time lies in the years 2 to 9998"),
        ("2026-01-31T09:30:00", r"created_at\.gt needs a zone"),
        (datetime(2026, 1, 31), r"created_at\.gt needs a zone"),  # noqa: DTZ001 -- that is what is refused
        (20260131, r"created_at\.gt: must be a time such as 2026-01-31"),
    ],
)
def test_what_is_no_time_is_refused_with_its_place(wrong: object, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        parse_filter({"created_at": {"gt": wrong}})
