"""Times that sentences and questions name, counted from a day."""

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from mnemolog.streams.text.tokens import DATE_PARTS, DATES, NUMBERS, UNITS, compiled, tables

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
    is_open: bool = False
    """Whether only the direction told which of several days are meant, as of a weekday."""

    def start(self, at: datetime) -> datetime:
        return datetime.combine(self.first, time(), at.tzinfo)

    def end(self, at: datetime) -> datetime:
        return datetime.combine(self.last + timedelta(days=1), time(), at.tzinfo)


@lru_cache(maxsize=512)  # a sentence and its clauses are looked at several times
def find_times(text: str, at: datetime, direction: Direction = 0) -> tuple[NamedTime, ...]:  # noqa: C901 -- one loop
    """The times that `text` names, in their order; none where something happens again and again.

    A weekday, or a month without a year, is a time only where the text shows whether it is past or ahead, or the
    `direction` is known: 1 is ahead, -1 is past. The first of two that a dash or "to" joins is none alone; neither is a
    time where the last one would come first.
    """
    if _PATTERNS["repeated"].search(text):
        return ()
    matches = [*_PATTERNS["time"].finditer(text)]
    if not matches:
        return ()
    is_planned = is_ahead(text) or _PATTERNS["arranged"].search(text)
    is_past = not is_planned and _PATTERNS["behind"].search(text)
    shown: Direction = 1 if is_planned else -1 if is_past else direction
    found: list[NamedTime] = []
    for match in matches:
        before = text[: match.start()]
        told = text[: match.end()]
        is_length = _PATTERNS["how_many_years"].search(told) or (not is_planned and _PATTERNS["how_long"].search(told))
        if is_length or _PATTERNS["goes_on"].match(text, match.end()):
            continue
        if span := _PATTERNS["span"].search(before):
            start, end = span.span("first" if span["first"] else "alone")
            if days := _span_days(before[start:end], match, at, shown):
                found = [when for when in found if when.span[1] <= start]
                if days[0] > days[1]:
                    continue
                found.append(NamedTime(first=days[0], last=days[1], span=(start, match.end()), role="at"))
                continue
        role: Literal["at", "from", "until"] = "at"
        its_direction = shown
        if _PATTERNS["until_time"].search(before):
            role, its_direction = "until", -1 if _PATTERNS["lasted"].search(before) else 1
        elif _PATTERNS["from_time"].search(before):
            role, its_direction = "from", -1 if _PATTERNS["since_time"].search(before) else 1
        if days := _days(match, at, its_direction):
            is_open = bool(match["weekday"] or match["open_month"]) and not (is_planned or is_past)
            found.append(NamedTime(first=days[0], last=days[1], span=match.span(), role=role, is_open=is_open))
    return tuple(found)


def possible_times(text: str, at: datetime) -> tuple[NamedTime, ...]:
    """The times that a text may name: the last and the next of a weekday that no word shows to be past or ahead."""
    ahead = find_times(text, at, 1)
    return (*ahead, *find_times(text, at, -1)) if any(when.is_open for when in ahead) else ahead


def _span_days(words: str, last: re.Match[str], at: datetime, direction: Direction) -> tuple[date, date] | None:
    """The days of "January" to "March 2024", or of "3" and "5 June": the first time lacks what the last one names."""
    has_month = any(DATES.get(word.casefold(), "").startswith("month") for word in _WORD.findall(words))
    rest = _PATTERNS["year"].search(last[0]) if has_month else _PATTERNS["day"].match(last[0])
    lacks = rest and not (has_month and _PATTERNS["year"].search(words))
    said = f"{words} {rest['rest']}" if rest and lacks else words
    first = _PATTERNS["time"].fullmatch(said)
    begun, ended = (_days(match, at, direction) if match else None for match in (first, last))
    return (begun[0], ended[1]) if begun and ended else None


def is_ahead(text: str) -> bool:
    return bool(_PATTERNS["ahead"].search(text))


def noted(text: str, times: tuple[NamedTime, ...]) -> str:
    """`text` with the dates that its times mean in brackets."""
    for when in reversed(times):
        days = str(when.first) if when.first == when.last else f"{when.first} to {when.last}"
        text = f"{text[: when.span[1]]} ({days}){text[when.span[1] :]}"
    return text


def _days(match: re.Match[str], at: datetime, direction: Direction) -> tuple[date, date] | None:
    """The first and the last day that the words mean; `direction` is 1 ahead, -1 back, 0 unknown."""
    if match["weekday"]:
        direction = -1 if _PATTERNS["last"].search(match[0]) else 1 if _PATTERNS["next"].search(match[0]) else direction
    if not direction and (match["weekday"] or match["open_month"]):
        return None
    from dateparser.date import DateDataParser  # noqa: PLC0415 - the command line loads this module without the extra `server`

    words = match["weekday"] or _WORD.sub(lambda word: NUMBERS.get(word[0].casefold(), word[0]), match[0])
    prefer = "future" if direction > 0 else "past"
    settings = {**_FIXED, "RELATIVE_BASE": at.replace(tzinfo=None), "PREFER_DATES_FROM": prefer}
    found = DateDataParser(languages=_LANGUAGES, try_previous_locales=False, settings=settings).get_date_data(words)
    if found.date_obj is None or found.date_obj.year not in _YEARS:
        return None
    day, monday = found.date_obj.date(), found.date_obj.date() - timedelta(days=found.date_obj.weekday())
    is_now = (day.month, day.day) == (at.month, at.day) or (found.period == "month" and day.month == at.month)
    if direction > 0 and match["open_month"] and is_now:
        day = day.replace(year=at.year)  # what is not yet over, and not the next one
    match found.period:
        case "week":
            return monday, monday + timedelta(days=6)
        case "month":
            return day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1])
        case "year":
            return date(day.year, 1, 1), date(day.year, 12, 31)
        case _:
            return day, day


MAX_CHARACTERS: Final = 400
"""Of a longer text the first ones are read: if all of them name times it takes 0.2 s, as a rule 1 ms."""
_TABLES: Final[dict[str, Any]] = tables(Path(__file__).with_name("asked_period.toml"))
_SEASONS: Final = {word: season for season, words in _TABLES.pop("seasons").items() for word in words.split("\n")}
_PERIOD_PATTERNS: Final = {
    name: compiled(text, {**DATE_PARTS, "season": "|".join(_SEASONS)}) for name, text in _TABLES.items()
}
_FIRST_MONTHS: Final = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}

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
        return (EARLIEST, at) if self.relation == "before" else (at, LATEST)


def asked_period(question: str, at: datetime) -> Period | None:
    """The time that a question names, from the first to the last of several; None where it names none.

    Of "before" and "after" one end is open. A month or a weekday without a year is the last one, unless the question
    speaks of what is ahead. Seasons are those of the northern half of the world, by whole months.
    """
    text = question[:MAX_CHARACTERS]
    periods = [_bounded(text[: when.span[0]], (when.first, when.last), at) for when in find_times(text, at, -1)]
    named = [
        _season(match, at.date()) if match["season"] else _weekend(match, at.date())
        for match in _PERIOD_PATTERNS["period"].finditer(text)
    ]
    years = [int(match["year"]) for match in _PERIOD_PATTERNS["year"].finditer(text)]
    named += [(date(year, 1, 1), date(year, 12, 31)) for year in years]
    periods += [_whole(days, at) for days in named if days]
    if not periods:
        return None
    return min(start for start, _ in periods), max(end for _, end in periods)


def asked_event(question: str) -> PeriodEvent | None:
    """The event in "before I moved to Bern", of which only a search finds the time; None where there is no event.

    Ask for it where `asked_period` finds nothing.
    """
    text = question[:MAX_CHARACTERS]
    for relation in ("before", "after"):
        match = _PERIOD_PATTERNS[f"{relation}_event"].search(text)
        if match and any(letter.isalnum() for letter in match["event"]):
            return PeriodEvent(words=match["event"].strip(), relation=relation)
    return None


def _bounded(before: str, days: Days, at: datetime) -> Period:
    """The days as a period; the words `before` them may open an end: "before", "after", "two weeks before"."""
    start, end = _whole(days, at)
    if _PERIOD_PATTERNS["after"].search(before):
        return start, LATEST
    if (match := _PERIOD_PATTERNS["before"].search(before)) is None:
        return start, end
    if (unit := UNITS.get((match["unit"] or "").casefold())) is None:
        return EARLIEST, end
    digits = NUMBERS.get(match["count"].casefold(), match["count"])
    count = int(digits) if digits.isdecimal() else 1  # articles mean one
    length = timedelta(days=count * _DAYS[unit.split()[0]])
    return max(start, EARLIEST + length) - length, start


def _season(match: re.Match[str], today: date) -> Days | None:
    """The season of the year that is named; else the last one, this one, or the next one."""
    if (season := _SEASONS.get(match["season"].casefold())) is None:  # Turkish letters match "i"
        return None
    month = _FIRST_MONTHS[season]
    if match["year"]:
        return _season_days(int(match["year"]), month) if int(match["year"]) in _YEARS else None
    seasons = [_season_days(today.year + shift, month) for shift in (-2, -1, 0, 1, 2)]
    if _PERIOD_PATTERNS["coming"].search(match[0]):
        return next(days for days in seasons if days[0] > today)
    if _PERIOD_PATTERNS["past"].search(match[0]):
        return next(days for days in reversed(seasons) if days[1] < today)
    return next(days for days in reversed(seasons) if days[0] <= today)


def _season_days(year: int, month: int) -> Days:
    years, month_after = divmod(month + 2, 12)
    return date(year, month, 1), date(year + years, month_after + 1, 1) - timedelta(days=1)


def _weekend(match: re.Match[str], today: date) -> Days:
    is_next, is_last = (_PERIOD_PATTERNS[name].search(match[0]) for name in ("coming", "past"))
    weeks = 1 if is_next else -1 if is_last else 0
    saturday = today + timedelta(days=calendar.SATURDAY - today.weekday(), weeks=weeks)
    return saturday, saturday + timedelta(days=1)


def _whole(days: Days, at: datetime) -> Period:
    first, last = days
    return datetime.combine(first, time(), at.tzinfo), datetime.combine(last + timedelta(days=1), time(), at.tzinfo)
