"""Filters as they are read, without a database."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from mnemolog.schemas.errors import InvalidArgumentError
from mnemolog.schemas.filters import parse_filter, written_filter


@pytest.mark.parametrize("day", ["2026-01-31", " 2026-01-31 ", date(2026, 1, 31)])
def test_a_day_begins_at_midnight_in_utc(day: object) -> None:
    asked = parse_filter({"created_at": {"gte": day, "in": [day]}})
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    assert asked == parse_filter({"created_at": {"gte": midnight, "in": [midnight.isoformat()]}})
    assert written_filter(asked) == {"created_at": {"gte": "2026-01-31T00:00:00Z", "in": ["2026-01-31T00:00:00Z"]}}


def nested(levels: int, *, as_list: bool = False) -> dict[str, Any]:
    wanted: dict[str, Any] = {"metadata": {"a": {"eq": 1}}}
    for _ in range(levels):
        wanted = {"NOT": [wanted] if as_list else wanted}
    return wanted


def any_of(conditions: int) -> dict[str, Any]:
    return {"OR": [{"importance": {"gte": number / 100_000}} for number in range(conditions)]}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"created_at": {"gt": "2026-02-30"}}, r"created_at\.gt: is not a day of the calendar"),
        ({"created_at": {"gt": "0001-01-01"}}, r"created_at\.gt: a time lies in the years 2 to 9998"),
        ({"created_at": {"gt": date(1, 1, 1)}}, r"created_at\.gt: a time lies in the years 2 to 9998"),
        ({"created_at": {"gt": "2026-01-31T09:30:00"}}, r"created_at\.gt needs a zone"),
        ({"created_at": {"gt": datetime(2026, 1, 31)}}, r"created_at\.gt needs a zone"),  # noqa: DTZ001 -- refused
        ({"created_at": {"gt": 20260131}}, r"created_at\.gt: must be a time such as 2026-01-31"),
        ({"created_at": {"gt": "2026"}}, "created_at.gt"),
        ({"created_at": {"gt": "-5"}}, "created_at.gt"),
        ({"created_at": {"gt": 1700000000.5}}, "created_at.gt"),
        ({"nope": 1}, "nope is not a known field"),
        ({"OR": [{"user_id": "a"}, {"importance": {"gte": "x"}}]}, r"OR\.1\.importance\.gte"),
        ({"user_id": {"regex": "a"}}, r"user_id\.regex is not a known field"),
        ({"importance": float("nan")}, "finite"),
        ({"key": {}}, "no operator"),
        ({"key": {"eq": None}}, "compares with null"),
        ({"NOT": None}, "NOT is null"),
        ({"OR": [{"metadata": None}]}, "metadata is null"),
        ({"OR": []}, "OR must have at least 1 item"),
        ({"state": "gone"}, "state.eq must be"),
        ({"memory": "a\x00b"}, "U[+]0000"),
        ([], "an object"),
        (nested(9), "deeper than 8 levels"),
        (nested(9, as_list=True), "deeper than 8 levels"),
        (nested(100_000), "deeper than 8 levels"),
        (any_of(201), "more than 200 conditions"),
        (any_of(100_000), "more than 200 conditions"),
        ({"user_id": {"in": [str(number) for number in range(2000)]}}, "at most 1000 items"),
    ],
    ids=lambda value: value if isinstance(value, str) else "filter",
)
def test_what_is_no_filter_is_refused_with_its_place(wrong: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        parse_filter(wrong)


@pytest.mark.parametrize("largest", [nested(8), nested(8, as_list=True), any_of(200)], ids=["deep", "lists", "wide"])
def test_as_many_levels_and_conditions_as_the_page_says_are_allowed(largest: dict[str, Any]) -> None:
    parse_filter(largest)
