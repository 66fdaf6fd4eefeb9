"""What a text asserts, as far as it can be read: details, content words, and what its negations reach."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mnemolog.streams.text.differences import WORDS_FOR_USER
from mnemolog.streams.text.tokens import (
    ADVERSATIVES,
    AMBIGUOUS_WORDS,
    CLAUSE_ENDS,
    CONJUNCTIONS,
    DATES,
    ENDED,
    ENDINGS,
    NEGATIONS,
    NEVER,
    NUMBERS,
    OTHER_NEGATIONS,
    PREPOSITIONS,
    QUALIFIERS,
    SMALL_WORDS,
    SUBORDINATORS,
    composed_numbers,
    dates_of,
    names_of,
    numbers_of,
    plain,
    tokens_of,
    units_of,
)

_FOREIGN = re.compile(r"[^\W\d_a-zA-Z\u00aa-\u024f\u1e00-\u1eff]")  # letters that are not Latin
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_SIGNS = re.compile(r"[\u30a1-\u30fa\u3400-\u9fff]")  # katakana and ideographs: hiragana are mostly endings
_FOREIGN_NUMERALS = re.compile("[二三四五六七八九十百千万]")
_NOT_ONLY = re.compile(
    r"\b(?:(?:at|after) all|not (?:only|just)|nicht nur|non seulement|no s[oó]lo|no solamente|não só|non solo)\b",
    re.IGNORECASE,
)
_NUMERIC_DATE = re.compile(r"(\d{1,4})[-./](\d{1,2})[-./](\d{2,4})")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_SUFFIX = re.compile(r"(?<=\w{3})(?:ing|ed|en)$")
_AFTER_VERBS: Final = frozenset(
    {
        *("an", "in", "at", "on", "to", "from", "with", "for", "by", "into", "as"),
        *("ein", "eine", "einen", "einem", "im", "bei", "mit", "auf", "aus", "für", "als"),
        *("à", "chez", "dans", "sur", "un", "une"),
    }
)
_CERTAIN_NUMBERS: Final = NUMBERS.keys() - AMBIGUOUS_WORDS
_TELLING_NOTHING: Final = SMALL_WORDS | NEGATIONS | CONJUNCTIONS
_REACH: Final = 8  # words that a negation reaches at the most
_LONGEST_CLAUSE: Final = 40  # words before a negation that are looked at
_STEM_LENGTH: Final = 5
_START_LENGTH: Final = 4


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says.

    `claimed` are its certain numbers, dates, units and qualifiers, `details` also those of words with a second meaning,
    and the parts of dates. `names` are words with a capital, `stems` its content words, in their order. `negations` has
    the stems that each negation reaches; `affirmed` and `negated` stems are certainly so. `signs` are those of a script
    without spaces that tell something. `ending` is the word or phrase that tells that something has ended, or "";
    `is_never` whether something never was so, or is not yet.
    """

    tokens: tuple[str, ...]
    claimed: frozenset[str]
    details: frozenset[str]
    names: frozenset[str]
    stems: tuple[str, ...]
    negations: tuple[frozenset[str], ...]
    negated: frozenset[str]
    affirmed: frozenset[str]
    is_foreign: bool
    is_spaced: bool
    signs: frozenset[str]
    ending: str
    is_never: bool


@lru_cache(maxsize=2048)  # a known fact is compared with several new ones
def read(text: str) -> Reading:
    tokens = tokens_of(_NOT_ONLY.sub(" ", text))
    certain = [token for token in tokens if token.casefold() not in AMBIGUOUS_WORDS]
    reaches = tuple(_negated(tokens))
    negated = frozenset(stem for certainly, _ in reaches for stem in certainly)
    unclear = frozenset(stem for _, unclear in reaches for stem in unclear)
    stems = tuple(stem_of(token) for token in tokens if is_content(token) and not is_number(token))
    form = plain(text)
    is_foreign = _FOREIGN.search(form) is not None
    numerals = _FOREIGN_NUMERALS.findall(text) if is_foreign else []
    found = tuple(frozenset(certainly) for certainly, _ in reaches)
    if is_foreign and not found and any(sign in form.casefold() for sign in OTHER_NEGATIONS):
        found = (*found, frozenset())
    dates = [token for token in tokens if _NUMERIC_DATE.fullmatch(token)]
    details = {*_details(tokens)}
    claimed = details if len(certain) == len(tokens) else {*_details(certain)}
    words = " ".join(tokens).casefold()
    end = ENDED.search(words)
    return Reading(
        tokens=tuple(tokens),
        claimed=frozenset({*claimed, *numerals} - {*dates}),
        details=frozenset({*details, *composed_numbers(tokens), *numerals, *_date_parts(dates)}),
        names=frozenset(names_of(tokens)) - WORDS_FOR_USER - frozenset(_leading_verbs(tokens)),
        stems=stems,
        negations=found,
        negated=negated - unclear,
        affirmed=frozenset(stems) - negated - unclear,
        is_foreign=is_foreign,
        is_spaced=_UNSPACED.search(text) is None,
        signs=frozenset(_SIGNS.findall(form)) - frozenset(OTHER_NEGATIONS),
        ending=end[0] if end else next((token.casefold() for token in tokens if token.casefold() in ENDINGS), ""),
        is_never=not end and NEVER.search(words) is not None,
    )


def dates_in(reading: Reading) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The dates in digits, each with its numbers."""
    for token in reading.tokens:
        if match := _NUMERIC_DATE.fullmatch(token):
            yield token, tuple(str(int(number)) for number in match.groups())


def is_content(token: str) -> bool:
    """Whether a token is a word that tells something alone."""
    word = token.casefold()
    return word not in _TELLING_NOTHING and word[0].isalpha()


def is_number(token: str) -> bool:
    return token[-1].isdigit() or token.casefold() in _CERTAIN_NUMBERS


@lru_cache(maxsize=8192)  # the words of a text are met many times
def stem_of(token: str) -> str:
    """The beginning of a word without its inflection: of "likes", "liked" and "like" the same."""
    word = token.casefold()
    if not word[0].isalpha():
        return word
    word = word.removesuffix("s") if len(word) > len("has") and not word.endswith("ss") else word
    return _SUFFIX.sub("", word).removesuffix("e")[:_STEM_LENGTH] or word


def start_of(token: str) -> str:
    """What the forms of a long word have in common: "teaches", "taught" have not, "hospital", "hospitals" have."""
    return token.casefold()[:_START_LENGTH] if len(token) >= _START_LENGTH else token.casefold()


def clauses_of(tokens: Sequence[str]) -> Iterator[list[str]]:
    """The tokens between commas, conjunctions and words that begin a clause."""
    clause: list[str] = []
    for token in tokens:
        if token in CLAUSE_ENDS or token.casefold() in CONJUNCTIONS:
            yield clause
            clause = []
        else:
            clause.append(token)
    yield clause


def _leading_verbs(tokens: Sequence[str]) -> Iterator[str]:
    """The verb that begins a text without a subject ("Owns a dog", "Lives in Rome"): what follows cannot follow a name.

    In French it can: "Tom a un chien".
    """
    if len(tokens) > len(("verb", "a")) and tokens[0] not in tokens[1:]:
        first, second, third = (token.casefold() for token in tokens[:3])
        is_article = second == "a" and first.endswith(("s", "ed")) and third not in PREPOSITIONS
        if second in _AFTER_VERBS or is_article:
            yield first


def _details(tokens: Sequence[str]) -> Iterator[str]:
    for number in numbers_of(tokens):
        match = _ORDINAL.fullmatch(number)
        yield match[1] if match else number
    yield from (date for date in dates_of(tokens) if not _NUMERIC_DATE.fullmatch(date))
    yield from units_of(tokens)
    yield from (QUALIFIERS[token.casefold()] for token in tokens if token.casefold() in QUALIFIERS)


def _date_parts(dates: Sequence[str]) -> Iterator[str]:
    for date in dates:
        yield date
        for number in re.findall(r"\d+", date):
            yield from (str(int(number)), f"month {int(number)}")


def _negated(tokens: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """For each negation the stems that it certainly reaches, and those before it or after a conjunction that it may."""
    for place, token in enumerate(tokens):
        if token.casefold() not in NEGATIONS:
            continue
        before = list(_before(tokens[max(0, place - _LONGEST_CLAUSE) : place]))
        certainly: list[str] = []
        unclear, may_end = before[:1], False  # "eats no meat" may deny the eating too
        for after in tokens[place + 1 : place + 1 + _REACH]:
            word = after.casefold()
            if after in CLAUSE_ENDS or word in ADVERSATIVES or word in SUBORDINATORS:
                break
            may_end = may_end or word in CONJUNCTIONS
            if is_content(after) and word not in DATES:
                (unclear if may_end else certainly).append(stem_of(after))
        yield certainly or before[:-1] or before, unclear if certainly else []


def _before(tokens: Sequence[str]) -> Iterator[str]:
    """The clause before a negation, backwards: one at its end denies it all but the first word ("raucht nicht")."""
    for token in reversed(tokens):
        if token in CLAUSE_ENDS or token.casefold() in CONJUNCTIONS:
            return
        if is_content(token) and token.casefold() not in DATES:
            yield stem_of(token)
