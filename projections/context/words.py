"""Times and states of a fact in English words, for a prompt."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Final

from mnemolog.projections.context.entries import ContextEntry, last_mention
from mnemolog.projections.queries.results import Fact

# Not those of the locale: the same tables and question give the same words on every machine.
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAYS_BY_NAME: Final = 7
_NEAR: Final = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def time_words(fact: Fact, at: datetime) -> Iterator[str]:
    """Since and until when it is so, as seen at `at` and in its zone; or when it was said, if it names no time."""
    if fact.true_from > at:
        yield f"from {moment(fact.true_from, at)} on"
    elif fact.event_time is not None:
        yield f"since {moment(fact.true_from, at)}"
    else:
        yield f"said {_with_preposition(fact.true_from, at)}"
    ends = [end for end in (fact.true_to, fact.valid_until) if end is not None]
    if ends:
        yield f"until {moment(min(ends), at)}"


def state_words(entry: ContextEntry, at: datetime) -> Iterator[str]:
    """What is doubtful about it."""
    for doubt in entry.doubts:
        match doubt:
            case "pending":
                yield "not confirmed"
            case "unresolved":
                yield "in conflict with another fact"
            case "low_confidence":
                yield "uncertain"
            case "old":
                yield f"not mentioned since {moment(last_mention(entry.fact), at)}"


def moment(time: datetime, at: datetime) -> str:
    """A day in words: `2025`, `March 2025`, `5 May 2026`, or near `at` `today`, `yesterday`, `tomorrow`, `Friday`.

    A time at midnight UTC is a date that was said, and the first of a month or year stands for the whole of it.
    """
    said_date = time.astimezone(UTC)
    is_date = (said_date.hour, said_date.minute, said_date.second) == (0, 0, 0)
    day = said_date.date() if is_date else time.astimezone(at.tzinfo).date()
    away = (day - at.date()).days
    if away in _NEAR:
        return _NEAR[away]
    if 0 < away < _DAYS_BY_NAME:
        return _WEEKDAYS[day.weekday()]
    return _date_words(day, is_date=is_date)


def _date_words(day: date, *, is_date: bool) -> str:
    month = f"{_MONTHS[day.month - 1]} {day.year}"
    if not is_date or day.day > 1:
        return f"{day.day} {month}"
    return month if day.month > 1 else str(day.year)


def _with_preposition(time: datetime, at: datetime) -> str:
    words = moment(time, at)
    if words in _NEAR.values():
        return words
    return f"on {words}" if words.count(" ") > 1 else f"in {words}"
