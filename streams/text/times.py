"""Times that sentences name ("yesterday", "bis Freitag", "il y a deux jours"), counted from when they were said."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from dateparser.date import DateDataParser

from mnemolog.streams.text.patterns import DATE_PARTS, compiled, tables
from mnemolog.streams.text.word_lists import NUMBERS

_PATTERNS: Final = {
    name: compiled(text, DATE_PARTS) for name, text in tables(Path(__file__).with_name("times.toml")).items()
}
_LANGUAGES: Final = ["en", "de", "fr", "es", "pt", "it"]
_YEARS: Final = range(3, 9998)  # those of a fact, without the days before and after that are counted from a date
_FIXED: Final = {"TIMEZONE": "UTC", "PREFER_DAY_OF_MONTH": "first", "DATE_ORDER": "DMY"}
Direction = Literal[-1, 0, 1]
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTime:
    """The days from `first` to `last`, the place of their words, and whether what is said begins or ends with them."""

    first: date
    last: date
    span: tuple[int, int]
    role: Literal["at", "from", "until"]

    def start(self, at: datetime) -> datetime:
        return datetime.combine(self.first, time(), at.tzinfo)

    def end(self, at: datetime) -> datetime:
        return datetime.combine(self.last + timedelta(days=1), time(), at.tzinfo)


@lru_cache(maxsize=512)  # a sentence and its clauses are looked at several times
def find_times(text: str, at: datetime, direction: Direction = 0) -> tuple[NamedTime, ...]:
    """The times that `text` names, in their order; none where it tells of what happens again and again.

    A weekday, or a month without a year, is a time only where the text shows whether it is past or ahead, or the
    `direction` is known: 1 is ahead, -1 is past.
    """
    return () if _PATTERNS["repeated"].search(text) else tuple(_found(text, at, direction))


def is_ahead(text: str) -> bool:
    """Whether a text speaks of what is planned or still to come."""
    return bool(_PATTERNS["ahead"].search(text))


def noted(text: str, times: tuple[NamedTime, ...]) -> str:
    """`text` with the dates that its times mean in brackets."""
    for when in reversed(times):
        days = str(when.first) if when.first == when.last else f"{when.first} to {when.last}"
        text = f"{text[: when.span[1]]} ({days}){text[when.span[1] :]}"
    return text


def _found(text: str, at: datetime, known_direction: Direction) -> Iterator[NamedTime]:
    is_past = bool(_PATTERNS["behind"].search(text))
    for match in _PATTERNS["time"].finditer(text):
        before = text[: match.start()]
        role: Literal["at", "from", "until"] = "at"
        direction: Direction = 1 if is_ahead(text) else -1 if is_past else known_direction
        if _PATTERNS["until_time"].search(before):
            role, direction = "until", 1
        elif _PATTERNS["from_time"].search(before):
            role, direction = "from", -1 if _PATTERNS["since_time"].search(before) else 1
        if days := _days(match, at, direction):
            yield NamedTime(first=days[0], last=days[1], span=match.span(), role=role)


def _days(match: re.Match[str], at: datetime, direction: Direction) -> tuple[date, date] | None:
    """The first and the last day that the words mean; `direction` is 1 ahead, -1 back, 0 unknown."""
    if match["weekday"]:
        direction = -1 if _PATTERNS["last"].search(match[0]) else 1 if _PATTERNS["next"].search(match[0]) else direction
    if not direction and (match["weekday"] or match["open_month"]):
        return None
    words = match["weekday"] or _WORD.sub(lambda word: NUMBERS.get(word[0].casefold(), word[0]), match[0])
    prefer = "future" if direction > 0 else "past"
    settings = {**_FIXED, "RELATIVE_BASE": at.replace(tzinfo=None), "PREFER_DATES_FROM": prefer}
    found = DateDataParser(languages=_LANGUAGES, try_previous_locales=False, settings=settings).get_date_data(words)
    if found.date_obj is None or found.date_obj.year not in _YEARS:
        return None
    day, monday = found.date_obj.date(), found.date_obj.date() - timedelta(days=found.date_obj.weekday())
    match found.period:
        case "week":
            return monday, monday + timedelta(days=6)
        case "month":
            return day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1])
        case "year":
            return date(day.year, 1, 1), date(day.year, 12, 31)
        case _:
            return day, day


def names_end(text: str, at: datetime) -> bool:
    """Whether `text`, said at `at`, says until when something holds."""
    return any(when.role == "until" for when in find_times(text, at))
