"""The time that a question asks about ("last summer", "in March", "before 3 June"), counted from when it is asked."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final, Literal

from mnemolog.streams.text.patterns import DATE_PARTS, compiled, tables
from mnemolog.streams.text.times import find_times
from mnemolog.streams.text.word_lists import NUMBERS, UNITS

MAX_CHARACTERS: Final = 400
"""Of a longer text the first ones are read: if all of them name times it takes 0.2 s, as a rule 1 ms."""
_TABLES: Final[dict[str, Any]] = tables(Path(__file__).with_name("asked_period.toml"))
_SEASONS: Final = {word: season for season, words in _TABLES.pop("seasons").items() for word in words.split("\n")}
_PATTERNS: Final = {
    name: compiled(text, {**DATE_PARTS, "season": "|".join(_SEASONS)}) for name, text in _TABLES.items()
}
_FIRST_MONTHS: Final = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}
_SATURDAY: Final = 5
_YEARS: Final = range(3, 9997)

EARLIEST: Final = datetime(1, 1, 2, tzinfo=UTC)
LATEST: Final = datetime(9999, 12, 30, tzinfo=UTC)
"""Where a period is open: no zone moves them out of the years that there are."""

Period = tuple[datetime, datetime]
"""The times from the first up to, but not at, the second."""
Days = tuple[date, date]
"""The first and the last day of a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodEvent:
    """What a question counts its time from, in its words; it asks about before or after that."""

    words: str
    relation: Literal["before", "after"]

    def period_from(self, at: datetime) -> Period:
        """The time that is asked about, where the event was at `at`."""
        return (EARLIEST, at) if self.relation == "before" else (at, LATEST)


def asked_period(question: str, at: datetime) -> Period | None:
    """The time that a question names, from the first to the last of several; None where it names none.

    Of "before" and "after" one end is open. A month or a weekday without a year is the last one, unless the question
    speaks of what is ahead. Seasons are those of the northern half of the world, by whole months.
    """
    text = question[:MAX_CHARACTERS]
    periods = [*_dated(text, at), *_named(text, at)]
    if not periods:
        return None
    return min(start for start, _ in periods), max(end for _, end in periods)


def asked_event(question: str) -> PeriodEvent | None:
    """The event in "before I moved to Bern": only a search can tell when it was. None where there is no such one.

    Ask for it where `asked_period` finds nothing.
    """
    text = question[:MAX_CHARACTERS]
    for relation in ("before", "after"):
        match = _PATTERNS[f"{relation}_event"].search(text)
        if match and any(letter.isalnum() for letter in match["event"]):
            return PeriodEvent(words=match["event"].strip(), relation=relation)
    return None


def _dated(text: str, at: datetime) -> Iterator[Period]:
    """What sentences name too; what stands before it may open an end."""
    for named in find_times(text, at, -1):
        yield _bounded(text[: named.span[0]], (named.first, named.last), at)


def _named(text: str, at: datetime) -> Iterator[Period]:
    """Seasons, weekends and years."""
    for match in _PATTERNS["period"].finditer(text):
        if days := _season(match, at.date()) if match["season"] else _weekend(match, at.date()):
            yield _whole(days, at)
    for match in _PATTERNS["year"].finditer(text):
        yield _whole((date(int(match["year"]), 1, 1), date(int(match["year"]), 12, 31)), at)


def _bounded(before: str, days: Days, at: datetime) -> Period:
    start, end = _whole(days, at)
    if _PATTERNS["after"].search(before):
        return start, LATEST
    if (match := _PATTERNS["before"].search(before)) is None:
        return start, end
    if match["unit"] is None:
        return EARLIEST, end
    if (unit := UNITS.get(match["unit"].casefold())) is None:
        return EARLIEST, end
    length = timedelta(days=_number(match["count"]) * _DAYS[unit.split()[0]])
    return max(start, EARLIEST + length) - length, start


def _number(word: str) -> int:
    """The number that a word means; articles mean one."""
    digits = NUMBERS.get(word.casefold(), word)
    return int(digits) if digits.isdecimal() else 1


def _season(match: re.Match[str], today: date) -> Days | None:
    """The season of the year that is named; else the last one, this one, or the next one."""
    if (season := _SEASONS.get(match["season"].casefold())) is None:  # Turkish letters match "i"
        return None
    month = _FIRST_MONTHS[season]
    if match["year"]:
        return _season_days(int(match["year"]), month) if int(match["year"]) in _YEARS else None
    seasons = [_season_days(today.year + shift, month) for shift in (-2, -1, 0, 1, 2)]
    if _PATTERNS["coming"].search(match[0]):
        return next(days for days in seasons if days[0] > today)
    if _PATTERNS["past"].search(match[0]):
        return next(days for days in reversed(seasons) if days[1] < today)
    return next(days for days in reversed(seasons) if days[0] <= today)


def _season_days(year: int, month: int) -> Days:
    last_year, last_month = divmod(month + 1, 12)
    last_year, last_month = year + last_year, last_month + 1
    return date(year, month, 1), date(last_year, last_month, calendar.monthrange(last_year, last_month)[1])


def _weekend(match: re.Match[str], today: date) -> Days:
    """The one of this week, the one before or the one after."""
    weeks = 1 if _PATTERNS["coming"].search(match[0]) else -1 if _PATTERNS["past"].search(match[0]) else 0
    saturday = today + timedelta(days=_SATURDAY - today.weekday(), weeks=weeks)
    return saturday, saturday + timedelta(days=1)


def _whole(days: Days, at: datetime) -> Period:
    """Whole days in the zone of the question."""
    first, last = days
    return datetime.combine(first, time(), at.tzinfo), datetime.combine(last + timedelta(days=1), time(), at.tzinfo)
