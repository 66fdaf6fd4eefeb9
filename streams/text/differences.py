"""Finds differences of two texts that vectors miss: in a number, date, unit, negation, name, or any word.

What is read by word lists and capitals is read in six languages. A wrongly found difference costs an LLM call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.text.subjects import compare_subjects, is_user_word
from mnemolog.streams.text.tokens import (
    dates_of,
    names_of,
    negations_of,
    numbers_of,
    tokens_of,
    units_of,
    words_of,
)

Difference = Literal["number", "date", "unit", "negation", "name"]


@dataclass(frozen=True, slots=True)
class _TextFeatures:
    """The details of a text, in its order: "from 9 to 5" is not "from 5 to 9".

    `negations` are the stems of the words that each negation reaches.
    """

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    units: tuple[str, ...]
    negations: frozenset[frozenset[str]]
    names: tuple[str, ...]


_COMPARED: Final[Mapping[Difference, str]] = {
    "number": "numbers",
    "date": "dates",
    "unit": "units",
    "negation": "negations",
    "name": "names",
}
"""The fields of `_TextFeatures` that are compared as they are."""


def differences(one: str, other: str) -> frozenset[Difference]:
    """In which details two texts differ."""
    left, right = _features(one), _features(other)
    return frozenset(kind for kind, field in _COMPARED.items() if getattr(left, field) != getattr(right, field))


def texts_equivalent(one: str, other: str) -> bool:
    """Whether two texts say the same by their words, in any script and at any length.

    The words are the same in the same order ("the dog bit the man" is not "the man bit the dog"), and so are the names
    by their capitals. They may differ in capitals, closing punctuation, quotes, definite articles, contractions
    ("isn't"), and in how a number is written.
    """
    return words_of(one) == words_of(other) and _features(one).names == _features(other).names


def subjects_differ(
    one: ExtractedFact | Candidate, other: ExtractedFact | Candidate, user_names: Sequence[str] = ()
) -> bool:
    """Whether two texts that name nobody, as "I like tea", have, or may have, different subjects."""
    relation = other.subject_relation if isinstance(other, Candidate) else None
    if relation is not None:
        return relation != "same"
    if compare_subjects(one.subject, other.subject, user_names) == "same":
        return False
    texts = (normalise(one.text), normalise(other.text))
    names = (normalise(subject) for subject in (one.subject, other.subject) if subject and not is_user_word(subject))
    return not any(name in text for name in names for text in texts)


@lru_cache(maxsize=4096)  # a known fact is compared with many new ones
def _features(text: str) -> _TextFeatures:
    tokens = tokens_of(text)
    return _TextFeatures(
        numbers=tuple(numbers_of(tokens)),
        dates=tuple(dates_of(tokens)),
        units=tuple(units_of(tokens)),
        negations=negations_of(tokens),
        names=tuple(names_of(tokens)),
    )
