"""Times as people say them ("yesterday", "next Monday", "in May"), counted from when they were said."""

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

_DAYS = tuple(name.lower() for name in calendar.day_name)
_MONTHS = tuple(name.lower() for name in calendar.month_name)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "a few": 3, "four": 4, "five": 5}
_COUNTS |= {"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}

_COMING = re.compile(r"\b(?:next|another)\b", re.IGNORECASE)
_DAYS_OF = {"day": 1, "night": 1, "week": 7, "month": 30}
_DAY = rf"(?P<day>{'|'.join(_DAYS)})\b"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS[1:])})\b"
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_PART = r"(?: (?:morning|afternoon|evening|night))?"
_BEFORE = r"(?P<before>(?:starting|as of|on|in|by|until|till|since|before|for|from|at)(?: on)? )?(?:the )?"
_CLOCK = re.compile(r"\bat (?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>am|pm|a\.m\.?|p\.m\.?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A stretch of time [start, end) in the speaker's zone, and the place of its words in the text."""

    start: datetime
    end: datetime
    preposition: str
    label: str
    span: tuple[int, int]

    @property
    def words(self) -> str:
        return f"{self.preposition} {self.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    first: date
    last: date
    label: str
    preposition: str


_Reading = Callable[[re.Match[str], date, bool], _Stretch]


def find_time(text: str, at: datetime, *, future: bool) -> When | None:
    """The first time that `text` names; `future` tells "on Monday" and "in May" which way to look.

    Returns None where none is named, or where the words give no date of the calendar.
    """
    found = [(match, read) for pattern, read in _READINGS if (match := pattern.search(text))]
    if not found:
        return None
    match, read = min(found, key=lambda pair: (pair[0].start(), -pair[0].end()))
    try:
        stretch = read(match, at.date(), future)
        return _located(stretch, match, text, at)
    except (ValueError, OverflowError):
        return None


def _located(stretch: _Stretch, match: re.Match[str], text: str, at: datetime) -> When:
    said = (match.groupdict().get("before") or "").strip()
    said = {"starting": "since", "as of": "since"}.get(said.lower().removesuffix(" on"), said)
    preposition = said if said in ("by", "until", "till", "since", "before", "from") else stretch.preposition
    start = datetime.combine(stretch.first, time(), at.tzinfo)
    began = preposition in ("since", "from")  # "at 10 since Monday" began with the day
    if stretch.first == stretch.last and not began and (clock := _clock(text)):
        start = datetime.combine(stretch.first, clock, at.tzinfo)
    return When(
        start=start,
        end=datetime.combine(stretch.last + timedelta(days=1), time(), at.tzinfo),
        preposition=preposition,
        label=stretch.label,
        span=match.span(),
    )


def _clock(text: str) -> time | None:
    match = _CLOCK.search(text)
    if not match:
        return None
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower().startswith("p") else 0)
    return time(hour, int(match["minute"] or 0))


def _on(day: date) -> _Stretch:
    return _Stretch(first=day, last=day, label=day.isoformat(), preposition="on")


def _week(day: date) -> _Stretch:
    monday = day - timedelta(days=day.weekday())
    label = f"the week of {monday.isoformat()}"
    return _Stretch(first=monday, last=monday + timedelta(days=6), label=label, preposition="in")


def _weekend(day: date) -> _Stretch:
    saturday = day - timedelta(days=day.weekday()) + timedelta(days=5)
    label = f"the weekend of {saturday.isoformat()}"
    return _Stretch(first=saturday, last=saturday + timedelta(days=1), label=label, preposition="on")


def _month(year: int, month: int) -> _Stretch:
    last = date(year, month, calendar.monthrange(year, month)[1])
    return _Stretch(
        first=date(year, month, 1), last=last, label=f"{calendar.month_name[month]} {year}", preposition="in"
    )


def _year(year: int) -> _Stretch:
    return _Stretch(first=date(year, 1, 1), last=date(year, 12, 31), label=str(year), preposition="in")


def _moved(today: date, unit: str, count: int) -> _Stretch:
    """`count` days, weeks, months or years from today: as exact as the unit is."""
    match unit:
        case "day":
            return _on(today + timedelta(days=count))
        case "week":
            return _week(today + timedelta(weeks=count))
        case "weekend":
            return _weekend(today + timedelta(weeks=count))
        case "month":
            months = today.year * 12 + today.month - 1 + count
            return _month(months // 12, months % 12 + 1)
        case _:
            return _year(today.year + count)


def _weekday(today: date, name: str, *, future: bool) -> _Stretch:
    """The nearest such weekday that is not today."""
    ahead = (_DAYS.index(name.lower()) - today.weekday()) % 7
    days = (ahead or 7) if future else ahead - 7
    return _on(today + timedelta(days=days))


def _count(match: re.Match[str]) -> int:
    said = match["count"].lower()
    return _COUNTS[said] if said in _COUNTS else int(said)


def _read_named(match: re.Match[str], today: date, _: bool) -> _Stretch:
    said = match[0].lower()
    if "day before" in said:
        return _moved(today, "day", -2)
    if "day after" in said:
        return _moved(today, "day", 2)
    if "yesterday" in said or "last night" in said:
        return _moved(today, "day", -1)
    return _moved(today, "day", 1 if "tomorrow" in said else 0)


def _read_nth(match: re.Match[str], today: date, future: bool) -> _Stretch:
    which, unit = match["which"].lower(), match["what"].lower()
    if unit in _DAYS:
        return _weekday(today, unit, future=which == "next" or (which == "this" and future))
    return _moved(today, unit, {"last": -1, "past": -1, "this": 0, "next": 1}[which])


def _read_weekday(match: re.Match[str], today: date, future: bool) -> _Stretch:
    return _weekday(today, match["day"], future=future)


def _read_month(match: re.Match[str], today: date, future: bool) -> _Stretch:
    month = _MONTHS.index(match["month"].lower())
    if match["year"]:
        return _month(int(match["year"]), month)
    ahead = month > today.month
    return _month(today.year + (not ahead and future and month != today.month) - (ahead and not future), month)


def _read_date(match: re.Match[str], today: date, future: bool) -> _Stretch:
    month, number = _MONTHS.index(match["month"].lower()), int(match["number"])
    if match["year"]:
        return _on(date(int(match["year"]), month, number))
    day = date(today.year, month, number)
    if future and day < today:
        day = day.replace(year=today.year + 1)
    if not future and day > today:
        day = day.replace(year=today.year - 1)
    return _on(day)


def _read_end(match: re.Match[str], today: date, future: bool) -> _Stretch:
    """The last day of a month or a year; without a name, of this one."""
    if not match["month"]:
        return _on(_moved(today, match["unit"].lower(), 0).last)
    return _on(_read_month(match, today, future).last)


def _read_span(match: re.Match[str], today: date, future: bool) -> _Stretch:
    """From today on for so long; of what is past no time can be told."""
    if not future and not _COMING.search(match[0]):
        raise ValueError("how long something took does not tell when it was")
    last = today + timedelta(days=_count(match) * _DAYS_OF[match["unit"].lower()])
    return _Stretch(first=today, last=last, label=last.isoformat(), preposition="until")


def _pattern(expression: str) -> re.Pattern[str]:
    return re.compile(rf"\b{expression}", re.IGNORECASE)


_NUMBER = r"(?P<number>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_READINGS: tuple[tuple[re.Pattern[str], _Reading], ...] = (
    (
        _pattern(_BEFORE + r"(?P<iso>\d{4}-\d\d-\d\d)\b"),
        lambda match, _today, _future: _on(date.fromisoformat(match["iso"])),
    ),
    (
        _pattern(
            rf"{_BEFORE}(?:day before yesterday|day after tomorrow|yesterday{_PART}|tomorrow{_PART}|today|tonight"
            r"|last night|this (?:morning|afternoon|evening))\b"
        ),
        _read_named,
    ),
    (
        _pattern(rf"{_COUNT} {_UNIT} ago\b"),
        lambda match, today, _future: _moved(today, match["unit"].lower(), -_count(match)),
    ),
    (
        _pattern(rf"in {_COUNT} {_UNIT}\b"),
        lambda match, today, _future: _moved(today, match["unit"].lower(), _count(match)),
    ),
    (
        _pattern(
            rf"{_BEFORE}end of (?:{_MONTH}(?: (?P<year>(?:19|20)\d\d))?|(?:the |this )?(?P<unit>week|month|year)\b)"
        ),
        _read_end,
    ),
    (
        _pattern(rf"for (?:the next |another )?{_COUNT} (?P<unit>day|week|month|night)s?\b(?! (?:now|already))"),
        _read_span,
    ),
    (
        _pattern(rf"{_BEFORE}(?P<which>last|past|this|next) (?P<what>weekend|week|month|year|{'|'.join(_DAYS)})\b"),
        _read_nth,
    ),
    (_pattern(rf"(?:(?<!every ){_BEFORE}){_DAY}{_PART}"), _read_weekday),
    (_pattern(rf"{_BEFORE}{_MONTH} {_NUMBER}(?:,? {_YEAR})?\b"), _read_date),
    (_pattern(rf"{_BEFORE}{_NUMBER}(?: of)? {_MONTH}(?:,? {_YEAR})?"), _read_date),
    (_pattern(rf"(?P<before>(?:in|by|until|since|from|for|before) ){_MONTH}(?: {_YEAR})?"), _read_month),
    (
        _pattern(rf"(?P<before>(?:in|by|until|since|from|before) ){_YEAR}\b"),
        lambda match, _today, _future: _year(int(match["year"])),
    ),
)
