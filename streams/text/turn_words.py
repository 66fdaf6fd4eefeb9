"""What the text of an extracted fact asserts beyond its turn: amounts, names, days, roles, and turned negations.

Only what is certain is refused: a fact that is left out is lost. Dates, years, times of day and small counts may follow
from what was said ("yesterday", "half past four", "a son and a daughter"), but not another than was said.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from mnemolog.schemas.turn import Turn
from mnemolog.streams.text.assertions import mispaired
from mnemolog.streams.text.pairings import counts_of
from mnemolog.streams.text.readings import Reading, is_number, read
from mnemolog.streams.text.tokens import numbers_of, units_of
from mnemolog.streams.text.word_lists import DATES, ENDINGS, NEGATIONS, NUMBERS, SMALL_NOUNS

_LARGEST_COUNT: Final = 12
"""Up to it a number without a unit may be counted from what was named."""
_LONG: Final = 4  # digits
_CONJUGATED: Final = 3  # letters that forms of a verb have in common
_MEASURES: Final = frozenset(
    {"kg", "g", "mg", "km", "m", "cm", "mm", "mile", "foot", "inch", "litre", "ml", "ounce"}
) | {*("pound", "euro", "dollar", "franc", "yen", "percent", "kcal", "celsius", "fahrenheit")}
_TURNS_AROUND: Final = frozenset({"without", "ohne", "sans", "sin", "senza", "sem"}) | {
    *("until", "till", "bis", "jusque", "jusqu", "hasta", "fino", "até")
}
_NEGATIVE = re.compile(r"\b(?:un|dis|non|nicht|mis|in|im)[-\w]{3,}|\w+(?:less|free|frei)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:I|me|myself|ich|mir|mich|je|moi|yo|io|eu)\b")
_CLOCK_TIME = re.compile(r"\d{1,2}:\d\d")
_HOURS: Final = frozenset({"h", "uhr"})
_TWICE: Final = 2
_YEAR = re.compile(r"(?:1[89]|20|21)\d\d")


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What a turn says, its recalled memory and names included: all that a fact's text can come from.

    `named` are the details of names and of the time of the turn alone, `starts` the beginnings of all words. A turn is
    timeless if it has nothing that a year can be reckoned from.
    """

    details: frozenset[str]
    named: frozenset[str]
    digits: str
    denies: bool
    starts: frozenset[str]
    speaker: str
    is_timeless: bool

    @classmethod
    def of(cls, turn: Turn) -> Self:
        messages = [message.content for message in turn.messages]
        names = [message.name or "" for message in turn.messages]
        named = [*names, turn.speaker or "", f"{turn.occurred_at:%Y %m %d %H %M}"]
        texts = [*messages, *turn.recalled, *named]
        readings = [read(text) for text in texts]
        return cls(
            details=frozenset().union(*(reading.details for reading in readings)),
            named=frozenset().union(*(read(name).details for name in named)),
            digits=re.sub(r"\D", "", " ".join(texts)),
            denies=any(reading.negations or _is_negative(reading) for reading in readings),
            starts=frozenset(_start_of(token) for reading in readings for token in reading.tokens),
            speaker=turn.speaker or "user",
            is_timeless=all(_YEAR.fullmatch(detail) for message in messages for detail in read(message).claimed),
        )


def unsaid(text: str, excerpt: str, turn: TurnWords) -> Iterator[str]:
    """What the text of a fact says and its turn does not, in words for a complaint."""
    own, said = read(text), read(excerpt)
    told = said.details | turn.named if any(_amounts(excerpt)) else turn.details
    yield from (number for number in _amounts(text) if number not in told and not _spelled(number, turn))
    yield from _other_details(own, said, turn)
    yield from (
        name
        for name in sorted(own.names - {token.casefold() for token in own.tokens[:1]})
        if _is_new_name(name, own, turn)
    )
    yield from mispaired([_FIRST_PERSON.sub(turn.speaker, excerpt)], text)
    if not own.negations and not _is_negative(own) and _denied_outright(said, own):
        yield "the contrary of its excerpt, which denies it"
    if not own.is_foreign and not turn.denies and any(reach and reach <= {*said.stems} for reach in own.negations):
        yield "a negation"


def _other_details(own: Reading, said: Reading, turn: TurnWords) -> Iterator[str]:
    """Days, times, units and counts of which the excerpt has others, and years out of nowhere."""
    for days in (_weekdays, _clock_times):
        if days(said):
            yield from sorted(days(own) - days(said) - turn.details)
    if said.details & _MEASURES:
        yield from sorted(own.details & _MEASURES - turn.details)
    told = counts_of(said.tokens)
    for thing, numbers in counts_of(own.tokens).items():
        if thing in told and not numbers & told[thing] and said.stems.count(thing) < _TWICE:
            yield from sorted(numbers - turn.details - {"1"})
    years = {number for number in own.details if _YEAR.fullmatch(number)} if turn.is_timeless else frozenset()
    now = next((int(number) for number in turn.named if _YEAR.fullmatch(number)), 0)
    yield from (year for year in sorted(years - turn.details) if abs(int(year) - now) > 1)


def _weekdays(reading: Reading) -> frozenset[str]:
    return frozenset(detail for detail in reading.claimed if detail.startswith("weekday"))


def _clock_times(reading: Reading) -> frozenset[str]:
    return frozenset(token for token in reading.tokens if _CLOCK_TIME.fullmatch(token))


def _is_new_name(name: str, own: Reading, turn: TurnWords) -> bool:
    """Whether a name has no likeness to a word of the turn; in German any noun has a capital."""
    is_short = any(token.casefold() == name and token.isupper() for token in own.tokens)
    words = {token.casefold() for token in own.tokens}
    return not own.is_foreign and not is_short and bool(words & SMALL_NOUNS) and _start_of(name) not in turn.starts


def _start_of(word: str) -> str:
    return word.casefold()[:_CONJUGATED]


def _amounts(text: str) -> Iterator[str]:
    """The numbers that nobody can have counted or reckoned from a day: measures, and what is larger than a count."""
    tokens = read(text).tokens
    for place, token in enumerate(tokens):
        around = [near.casefold() for near in (*tokens[max(0, place - 2) : place], *tokens[place + 1 : place + 3])]
        is_time = _CLOCK_TIME.fullmatch(token) or not _HOURS.isdisjoint(around)
        if not is_number(token) or is_time or any(near in DATES for near in (token.casefold(), *around)):
            continue
        unit = next(iter([*units_of(tokens[place : place + 2]), *units_of(tokens[max(0, place - 1) : place])]), "")
        for number in numbers_of([token]):
            is_told = unit in _MEASURES or not (_YEAR.fullmatch(number) or token.casefold() in NUMBERS)
            is_part = any(is_number(near) for near in (*tokens[place - 1 : place], *tokens[place + 1 : place + 2]))
            is_large = number.isdigit() and int(number) > _LARGEST_COUNT
            if is_told and not is_part and (unit in _MEASURES or is_large):
                yield number


def _spelled(number: str, turn: TurnWords) -> bool:
    """Whether the digits of a long number stand in the turn in another form: "5550100" for "555-0100"."""
    return len(number) >= _LONG and number in turn.digits


def _denied_outright(said: Reading, own: Reading) -> bool:
    words = {token.casefold() for token in said.tokens}
    if not said.negations or "?" in said.tokens or words & _TURNS_AROUND or said.negated & said.affirmed:
        return False
    if not said.is_spaced:
        return bool(said.signs) and said.signs <= own.signs
    reaches = [reach for reach in said.negations if reach and not any(said.stems.count(stem) > 1 for stem in reach)]
    starts = {stem[:_CONJUGATED] for stem in own.stems}  # "no como", "come"
    return bool(reaches) and all(stem[:_CONJUGATED] in starts for reach in reaches for stem in reach)


def _is_negative(reading: Reading) -> bool:
    """Whether a text has a word that means that something is not so, without a negation."""
    words = {token.casefold() for token in reading.tokens}
    return bool(words & (ENDINGS | NEGATIONS)) or any(_NEGATIVE.fullmatch(word) for word in words)
