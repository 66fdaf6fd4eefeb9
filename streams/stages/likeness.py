"""What two vectors cannot tell: whether two texts differ in a number, a date, a unit, a negation or a name.

By word lists and capitals, in six languages. It may see a difference where there is none: that costs a question.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from streams.stages.likeness_words import AMBIGUOUS, DATES, NEGATIONS, NUMBERS, STARTERS, TENS, UNITS, UNITS_OF_TEN

READ_CHARACTERS: Final = 1000
"""An embedding model reads the beginning of a text: all-MiniLM-L6-v2 256 tokens, of some four characters each."""
Difference = Literal["number", "date", "unit", "negation", "name", "length"]

_PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u00ad": None})
_TOKEN = re.compile(r"\d{4}-\d{2}-\d{2}|\d+(?:[.,:]\d+)*|°[cf]\b|[^\W\d_]+|[%€$£¥]|[.!?…:;,\n]", re.IGNORECASE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_CLITIC = re.compile(r"(?<=[a-z])n't\b", re.IGNORECASE)
_ELIDED = re.compile(r"\bn'(?=\w)", re.IGNORECASE)
_GERMAN = re.compile(r"(ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und(\w+)")
_ENDS: Final = frozenset(".!?…\n")
_CLAUSES: Final = _ENDS | frozenset(",;:")
_LINKS: Final = frozenset({"and", "but", "und", "aber", "et", "mais", "y", "pero", "e", "mas", "ma"})
_SHORT_UNITS: Final = frozenset({"m", "g", "l", "h", "s", "c", "f", "k", "t", "b"})
_SCOPE = 8  # words that a negation reaches at the most
_STEM = 4


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a text tells beside its drift. `negations` are the stems of what each negation reaches."""

    numbers: frozenset[str]
    dates: frozenset[str]
    units: frozenset[str]
    negations: frozenset[frozenset[str]]
    names: frozenset[str]


def differences(one: str, other: str) -> frozenset[Difference]:
    """In what two texts differ that a reader would mind; `length` where one is too long to have been embedded whole."""
    if max(len(one), len(other)) > READ_CHARACTERS:
        return frozenset({"length"})
    left, right = _read(one), _read(other)
    found: list[Difference] = []
    if left.numbers != right.numbers:
        found.append("number")
    if left.dates != right.dates:
        found.append("date")
    if left.units != right.units:
        found.append("unit")
    if left.negations != right.negations:
        found.append("negation")
    if left.names != right.names:
        found.append("name")
    return frozenset(found)


def vouched(one: str, other: str) -> bool:
    """Whether likeness of vectors may stand for sameness of the texts."""
    return not differences(one, other)


def lost(parents: Iterable[str], merged: str) -> frozenset[str]:
    """The numbers, dates, names and negations that `parents` tell and `merged` does not, as they are to be told of.

    Words that may mean something else are overlooked: nobody is blamed for what is not certain.
    """
    kept, folded = _tokens(merged), _plain(merged).casefold()
    told, negated = {*_numbers(kept), *_dates(kept)}, _negates(kept)
    gone: set[str] = set()
    for parent in parents:
        tokens = _tokens(parent)
        certain = [token for token in tokens if token.casefold() not in AMBIGUOUS]
        gone |= {*_numbers(certain), *_dates(certain)} - told
        gone |= {name for name in _names(tokens) if name not in folded}
        if _negates(certain) and not negated:
            gone.add("its negation")
    return frozenset(gone)


@lru_cache(maxsize=4096)  # a fact's candidates are read once for each, and known facts again and again
def _read(text: str) -> _Reading:
    tokens = _tokens(text)
    return _Reading(
        numbers=frozenset(_numbers(tokens)),
        dates=frozenset(_dates(tokens)),
        units=frozenset(_units(tokens)),
        negations=frozenset(_negations(tokens)),
        names=frozenset(_names(tokens)),
    )


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_PLAIN)


def _tokens(text: str) -> list[str]:
    """Words, numbers, signs and ends of clauses; "isn't" is "is not", "n'aime" is "ne aime", "Mira's" is "Mira s"."""
    return _TOKEN.findall(_ELIDED.sub("ne ", _CLITIC.sub(" not", _plain(text))))


def _numbers(tokens: list[str]) -> Iterator[str]:
    """Numbers in one form: "1,000" and "a thousand" are 1000, "twenty-one" is 21, "10:00" is 10."""
    place = 0
    while place < len(tokens):
        word = tokens[place].casefold()
        after = tokens[place + 1].casefold() if place + 1 < len(tokens) else ""
        if word in TENS and after in UNITS_OF_TEN:
            yield str(int(TENS[word]) + int(UNITS_OF_TEN[after]))
            place += 1
        elif word[0].isdigit():
            if not _ISO_DATE.fullmatch(word):
                yield _figure(word)
        elif word in NUMBERS:
            yield NUMBERS[word]
        elif (compound := _GERMAN.fullmatch(word)) and compound[2] in TENS:
            yield str(int(TENS[compound[2]]) + int(UNITS_OF_TEN.get(compound[1], "1")))
        place += 1


def _figure(digits: str) -> str:
    digits = "".join(str(unicodedata.digit(sign, -1)) if sign.isdigit() else sign for sign in digits)
    if _THOUSANDS.fullmatch(digits):
        return re.sub(r"[.,]", "", digits)
    return digits.removesuffix(":00").replace(",", ".")


def _dates(tokens: list[str]) -> Iterator[str]:
    for token in tokens:
        if _ISO_DATE.fullmatch(token):
            yield token
        elif meaning := DATES.get(token.casefold()):
            yield meaning


def _units(tokens: list[str]) -> Iterator[str]:
    for before, token in zip(["", *tokens], tokens, strict=False):
        word = token.casefold()
        if word in UNITS:
            yield UNITS[word]
        elif word in _SHORT_UNITS and before[:1].isdigit():
            yield word


def _negates(tokens: list[str]) -> bool:
    return any(token.casefold() in NEGATIONS for token in tokens)


def _negations(tokens: list[str]) -> Iterator[frozenset[str]]:
    for place, token in enumerate(tokens):
        if token.casefold() in NEGATIONS:
            yield frozenset(_reached(tokens[place + 1 : place + 1 + _SCOPE]))


def _reached(tokens: list[str]) -> Iterator[str]:
    for token in tokens:
        word = token.casefold()
        if token in _CLAUSES or word in _LINKS:
            return
        if word not in STARTERS and word not in NEGATIONS:
            yield word[:_STEM]


def _names(tokens: list[str]) -> Iterator[str]:
    """Words with a capital, in small letters. A first word counts unless it is one that sentences begin with."""
    first = True
    for token in tokens:
        word = token.casefold()
        written_large = token != token.lower() and len(token) > 1
        if written_large and word not in DATES and word not in NUMBERS and not (first and word in STARTERS):
            yield word
        first = token in _ENDS
