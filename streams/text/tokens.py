"""Splits texts into words, numbers and signs, and reads numbers, dates, units, negations and names from them.

By word lists and capitals, in six languages.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Final

from mnemolog.streams.text.word_lists import (
    AMBIGUOUS_WORDS,
    ARTICLES,
    BEFORE_UNITS,
    DATES,
    ENGLISH,
    NEGATIONS,
    NOT_ENGLISH,
    NUMBERS,
    ONES,
    SENTENCE_STARTERS,
    SMALL_ELSEWHERE,
    SMALL_WORDS,
    TENS,
    UNITS,
)

_PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u00ad": None})
_TOKEN = re.compile(
    r"\d{4}-\d{2}-\d{2}|(?<!\w)[-\u2212]?\d+(?:[.,:]\d+)*|\d+(?:[.,:]\d+)*|°[cfCF]\b"
    r"|[^\W\d_]+(?:[+#]+|(?<=\b[A-Z])[-\u2212](?!\w))?|[%€$£¥]|[.!?…:;,\n]"
)
_TOKEN_OR_SIGN = re.compile(_TOKEN.pattern + r"|[^\s\w\"«»„“”]")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_SMALL_ELSEWHERE = re.compile(rf"\b(?:{'|'.join(SMALL_ELSEWHERE)})\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_OF_SOMEBODY = re.compile(r"\w's ")
_DIGIT = re.compile(r"\d")
_CLITIC = re.compile(r"(?<=[a-z])n't\b", re.IGNORECASE)
_SHORTENED = re.compile(r"\b(ca|wo|sha)(?=n't\b)", re.IGNORECASE)
_WHOLE: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_HAS_TO = re.compile(r"\b(?:has|have|had) to\b", re.IGNORECASE)
_AGE = re.compile(r"(?<=\d) years? old\b", re.IGNORECASE)
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,:-])\d{1,3}(?: \d{3})+(?![\d.,:-])")
_THOUSANDS_OF_K = re.compile(r"(?<![\w.,])(\d{1,4})k\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b(1[0-2]|0?[1-9])(?:[:.]([0-5]\d))? ?([ap])\.?m\b", re.IGNORECASE)
_ELIDED = re.compile(r"\bn'(?=\w)", re.IGNORECASE)
_EIGHTY = re.compile(r"\bquatre-vingts?\b", re.IGNORECASE)
SENTENCE_ENDS: Final = frozenset(".!?…\n")
_BEFORE_FIRST: Final = SENTENCE_ENDS | frozenset(":")
CLAUSE_ENDS: Final = SENTENCE_ENDS | frozenset(",;:")
CONJUNCTIONS: Final = frozenset({"and", "but", "und", "aber", "et", "mais", "y", "pero", "e", "mas", "ma", "и", "но"})
_SHORT_UNITS: Final = frozenset({"m", "g", "l", "h", "s", "c", "f", "k", "t", "b"})
_DEFINITE_ARTICLES: Final = frozenset({"the", "der", "das", "le", "la", "les", "el", "los", "las", "il", "lo"})
_NEGATION_REACH = 8  # words that a negation reaches at the most
_STEM_LENGTH = 4


def plain(text: str) -> str:
    """In one form of its characters, with typewriter apostrophes."""
    return unicodedata.normalize("NFKC", text).translate(_PLAIN)


def tokens_of(text: str) -> list[str]:
    """Words, numbers, signs and ends of clauses; "isn't" is "is not", "n'aime" is "ne aime", "Mira's" is "Mira s"."""
    return _TOKEN.findall(_expanded(in_its_language(text)))


def _expanded(text: str) -> str:
    """With each of several ways to write the same in one of them."""
    said = plain(text)
    if "'" in said:
        said = _SHORTENED.sub(lambda match: _WHOLE[match[1].lower()], said)
        said = _ELIDED.sub("ne ", _CLITIC.sub(" not", said))
    said = _HAS_TO.sub("must", _EIGHTY.sub("huitante", said))
    if _DIGIT.search(said) is None:
        return said
    said = _THOUSANDS_OF_K.sub(r"\g<1>000", _AGE.sub(" old", said))
    return _CLOCK.sub(_of_24_hours, _SPACED_THOUSANDS.sub(lambda match: match[0].replace(" ", ""), said))


def in_its_language(text: str) -> str:
    """With words that English has too as others, where the text is not in English: "hat" is "habe", "son" is "sa"."""
    text = plain(text)
    if not _SMALL_ELSEWHERE.search(text):
        return text
    words = {*_WORD.findall(text.casefold())}
    if words & ENGLISH or _OF_SOMEBODY.search(text) or not words & NOT_ENGLISH:
        return text
    return _SMALL_ELSEWHERE.sub(lambda match: SMALL_ELSEWHERE[match[0].casefold()], text)


def _of_24_hours(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + 12 * (match[3].lower() == "p")
    return f"{hour}:{match[2] or '00'}"


def words_of(text: str) -> tuple[str, ...]:
    """All that a text says, in small letters and its order: also signs, and commas inside; a number in one form.

    Left out are quotes, closing punctuation and the definite article before a word.
    """
    found = _TOKEN_OR_SIGN.findall(_expanded(text).strip().rstrip(" .!?…;,"))
    return tuple(
        _one_form(token.casefold())
        for token, after in zip_longest(found, found[1:], fillvalue="")
        if not (token.lower() in _DEFINITE_ARTICLES and token[1:].islower() and after[:1].isalpha())
    )


def _one_form(word: str) -> str:
    if word[-1].isdigit() and not _ISO_DATE.fullmatch(word):
        return normalised_number(word)
    return word if word in AMBIGUOUS_WORDS else NUMBERS.get(word, word)


def numbers_of(tokens: Sequence[str]) -> Iterator[str]:
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
                yield normalised_number(word)
        elif word in NUMBERS:
            yield NUMBERS[word]
        place += 1


def normalised_number(digits: str) -> str:
    digits = "".join(str(unicodedata.digit(sign, -1)) if sign.isdigit() else sign for sign in digits)
    if _THOUSANDS.fullmatch(digits):
        return re.sub(r"[.,]", "", digits)
    return digits.removesuffix(":00").replace(",", ".").replace("\u2212", "-")


def dates_of(tokens: Sequence[str]) -> Iterator[str]:
    for token in tokens:
        if meaning := DATES.get(token.casefold()):
            yield meaning
        elif token[0].isdigit() and _ISO_DATE.fullmatch(token):
            yield token


def units_of(tokens: Sequence[str]) -> Iterator[str]:
    for before, token in zip(["", *tokens], tokens, strict=False):
        word = token.casefold()
        if word in UNITS and (word not in SMALL_WORDS or _is_counted(word, before.casefold())):
            yield UNITS[word]
        elif word in _SHORT_UNITS and before[-1:].isdigit():
            yield word


def _is_counted(word: str, before: str) -> bool:
    """Whether a unit that is a small word in another language is one here: "par an", "5 mi", not "20 an hour"."""
    return before in BEFORE_UNITS or (before[-1:].isdigit() and word not in ARTICLES)


def negations_of(tokens: Sequence[str]) -> frozenset[frozenset[str]]:
    """The stems of the words that each negation reaches."""
    return frozenset(
        frozenset(_negated_stems(tokens[place + 1 : place + 1 + _NEGATION_REACH]))
        for place, token in enumerate(tokens)
        if token.casefold() in NEGATIONS
    )


def _negated_stems(tokens: Sequence[str]) -> Iterator[str]:
    for token in tokens:
        word = token.casefold()
        if token in CLAUSE_ENDS or word in CONJUNCTIONS:
            return
        if word not in SENTENCE_STARTERS and word not in NEGATIONS:
            yield word[:_STEM_LENGTH]


def names_of(tokens: Sequence[str]) -> Iterator[str]:
    """Words with a capital, in small letters. A first one counts unless sentences begin with it."""
    first = True
    for token in tokens:
        word = token.casefold()
        written_large = token != token.lower() and (len(token) > 1 or not (first or word == "i"))
        if written_large and word not in DATES and word not in NUMBERS and not (first and word in SENTENCE_STARTERS):
            yield word
        first = token in _BEFORE_FIRST


def composed_numbers(tokens: Sequence[str]) -> Iterator[str]:
    """What neighbouring numbers mean together: "three hundred" is 300, "2 thousand 5 hundred" 2500, "20k" 20000."""
    total = part = Decimal(0)
    run = 0
    for token in [*tokens, ""]:
        word = token.casefold()
        is_number = word in NUMBERS or word[-1:].isdigit()
        number = next(numbers_of([token]), None) if is_number else None
        value = _SHORT_SIZES.get(word, number) if run else number
        if value is None or not _PLAIN_NUMBER.fullmatch(value):
            if run > 1:
                yield f"{(total + part).normalize():f}"
            total, part, run = Decimal(0), Decimal(0), run if run and word in CONJUNCTIONS else 0
            continue
        size, run = Decimal(value), run + 1
        if size in _SIZES:
            part = (part or 1) * size
            if size > _HUNDRED:
                total, part = total + part, Decimal(0)
        else:
            part += size


_PLAIN_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,6})?")
_HUNDRED: Final = Decimal(100)
_SIZES: Final = frozenset(map(Decimal, (100, 1000, 1_000_000)))
_SHORT_SIZES: Final = {"k": "1000", "m": "1000000"}
