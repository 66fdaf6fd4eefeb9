"""Finds differences of two texts that vectors miss: in a number, date, unit, negation or name.

By word lists and capitals, in six languages. A wrongly found difference costs an LLM call. What cannot be read, or is
too long for a vector, is the same only in the same words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.text.subjects import compare_subjects, is_user_word
from mnemolog.streams.text.word_lists import (
    AMBIGUOUS_WORDS,
    DATES,
    NEGATIONS,
    NUMBERS,
    ONES,
    SENTENCE_STARTERS,
    TENS,
    UNITS,
)

MAX_COMPARED_CHARACTERS: Final = 1000
"""An embedding model reads the beginning of a text: all-MiniLM-L6-v2 256 tokens, of some four characters each."""
MAX_COMPARED_WORDS: Final = 20
"""In a longer text one word more or less drowns: "early" for "late" in 41 words is .996 for all-MiniLM-L6-v2."""
Difference = Literal["number", "date", "unit", "negation", "name", "length", "script"]

_PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u00ad": None})
_TOKEN = re.compile(
    r"\d{4}-\d{2}-\d{2}|(?<!\w)[-\u2212]?\d+(?:[.,:]\d+)*|\d+(?:[.,:]\d+)*|°[cfCF]\b"
    r"|[^\W\d_]+(?:[+#]+|(?<=\b[A-Z])[-\u2212](?!\w))?|[%€$£¥]|[.!?…:;,\n]"
)
_NON_LATIN = re.compile(r"[^\W\d_a-zA-Z\u00aa-\u024f\u1e00-\u1eff]")  # letters that are not Latin
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_CLITIC = re.compile(r"(?<=[a-z])n't\b", re.IGNORECASE)
_ELIDED = re.compile(r"\bn'(?=\w)", re.IGNORECASE)
_SENTENCE_ENDS: Final = frozenset(".!?…\n")
_CLAUSE_ENDS: Final = _SENTENCE_ENDS | frozenset(",;:")
_CONJUNCTIONS: Final = frozenset({"and", "but", "und", "aber", "et", "mais", "y", "pero", "e", "mas", "ma"})
_SHORT_UNITS: Final = frozenset({"m", "g", "l", "h", "s", "c", "f", "k", "t", "b"})
_NEGATION_REACH = 8  # words that a negation reaches at the most
_STEM_LENGTH = 4


@dataclass(frozen=True, slots=True)
class _TextFeatures:
    """The details of a text, in its order: "from 9 to 5" is not "from 5 to 9".

    `negations` are the stems of the words that each negation reaches. `is_latin`: all letters are Latin.
    """

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    units: tuple[str, ...]
    negations: frozenset[frozenset[str]]
    names: tuple[str, ...]
    is_latin: bool


_COMPARED: Final[Mapping[Difference, str]] = {
    "number": "numbers",
    "date": "dates",
    "unit": "units",
    "negation": "negations",
    "name": "names",
}
"""The fields of `_TextFeatures` that are compared as they are."""


def differences(one: str, other: str) -> frozenset[Difference]:
    """In what two texts differ that matters.

    `length`: one is too long for each of its words to count in its vector; `script`: one has letters that the word
    lists do not have. Texts of equal words have neither.
    """
    if max(len(one), len(other)) > MAX_COMPARED_CHARACTERS:
        return frozenset({"length"})
    left, right = _features(one), _features(other)
    found: set[Difference] = set()
    if sorted(left.words) != sorted(right.words):
        if max(len(left.words), len(right.words)) > MAX_COMPARED_WORDS:
            found.add("length")
        if not (left.is_latin and right.is_latin):
            found.add("script")
    found.update(kind for kind, field in _COMPARED.items() if getattr(left, field) != getattr(right, field))
    return frozenset(found)


def texts_equivalent(one: str, other: str) -> bool:
    """Whether two texts whose vectors are alike may be taken to say the same."""
    return not differences(one, other)


def subjects_differ(
    one: ExtractedFact | Candidate, other: ExtractedFact | Candidate, user_names: Sequence[str] = ()
) -> bool:
    """Whether two texts that name nobody, as "I like tea", have, or may have, different subjects."""
    if compare_subjects(one.subject, other.subject, user_names) == "same":
        return False
    texts = (normalise(one.text), normalise(other.text))
    names = (normalise(subject) for subject in (one.subject, other.subject) if subject and not is_user_word(subject))
    return not any(name in text for name in names for text in texts)


def missing_details(parents: Iterable[str], merged: str) -> frozenset[str]:
    """The numbers, dates, names and negations of `parents` that `merged` lacks, as a complaint can name them.

    Words that may mean something else are ignored.
    """
    kept, folded = _tokens(merged), _plain(merged).casefold()
    stated, negated = {*_numbers(kept), *_dates(kept)}, _negates(kept)
    gone: set[str] = set()
    for parent in parents:
        tokens = _tokens(parent)
        certain = [token for token in tokens if token.casefold() not in AMBIGUOUS_WORDS]
        gone |= {*_numbers(certain), *_dates(certain)} - stated
        gone |= {name for name in _names(tokens) if name not in folded}
        if _negates(certain) and not negated:
            gone.add("its negation")
    return frozenset(gone)


@lru_cache(maxsize=4096)  # a known fact is compared with many new ones
def _features(text: str) -> _TextFeatures:
    tokens = _tokens(text)
    return _TextFeatures(
        words=tuple(token.casefold() for token in tokens if token not in _CLAUSE_ENDS),
        numbers=tuple(_numbers(tokens)),
        dates=tuple(_dates(tokens)),
        units=tuple(_units(tokens)),
        negations=frozenset(
            frozenset(_negated_stems(tokens[place + 1 : place + 1 + _NEGATION_REACH]))
            for place, token in enumerate(tokens)
            if token.casefold() in NEGATIONS
        ),
        names=tuple(_names(tokens)),
        is_latin=_NON_LATIN.search(_plain(text)) is None,
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
        if word in TENS and after in ONES:
            yield str(int(TENS[word]) + int(ONES[after]))
            place += 1
        elif word[-1].isdigit():
            if not _ISO_DATE.fullmatch(word):
                yield _normalised_number(word)
        elif word in NUMBERS:
            yield NUMBERS[word]
        place += 1


def _normalised_number(digits: str) -> str:
    digits = "".join(str(unicodedata.digit(sign, -1)) if sign.isdigit() else sign for sign in digits)
    if _THOUSANDS.fullmatch(digits):
        return re.sub(r"[.,]", "", digits)
    return digits.removesuffix(":00").replace(",", ".").replace("\u2212", "-")


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
        elif word in _SHORT_UNITS and before[-1:].isdigit():
            yield word


def _negates(tokens: list[str]) -> bool:
    return any(token.casefold() in NEGATIONS for token in tokens)


def _negated_stems(tokens: list[str]) -> Iterator[str]:
    for token in tokens:
        word = token.casefold()
        if token in _CLAUSE_ENDS or word in _CONJUNCTIONS:
            return
        if word not in SENTENCE_STARTERS and word not in NEGATIONS:
            yield word[:_STEM_LENGTH]


def _names(tokens: list[str]) -> Iterator[str]:
    """Words with a capital, in small letters. A first word counts unless it is one that sentences begin with."""
    first = True
    for token in tokens:
        word = token.casefold()
        written_large = token != token.lower() and (len(token) > 1 or not (first or word == "i"))
        if written_large and word not in DATES and word not in NUMBERS and not (first and word in SENTENCE_STARTERS):
            yield word
        first = token in _SENTENCE_ENDS
