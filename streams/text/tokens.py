"""Words, numbers and signs of texts, in forms that can be compared; and patterns from TOML files.

The lists of words are from CLDR (`cldr_words.json`, `cldr_places.json`) and written by hand (`words.toml`).
"""

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import count, product, takewhile, zip_longest
from pathlib import Path
from typing import Any, Final

from mnemolog.schemas.base import normalise

_STRAIGHT: Final = str.maketrans("\u2018\u2019\u02bc\u201c\u201d\u201e", "'''" + '"""')
_PLAIN: Final = _STRAIGHT | str.maketrans("\u2013\u2014", "--", "\u00ad")
_WORD_SIGN: Final = r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
"""Of scripts that put spaces between words, or a digit."""
_SPACED_WORD: Final = re.compile(rf"{_WORD_SIGN}+")
_INSIDE_WORD: Final = re.compile(rf"{_WORD_SIGN}{{2}}")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")  # of Latin, Greek and Cyrillic letters; the signs of others are letters
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i", "ħ": "h", "ŧ": "t"}
)
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, and what Unicode calls default ignorable: readers see a name without them."""
_SHORTEST_COPY: Final = 6  # a word counts as two, a sign of a script without spaces as one


def plain(text: str) -> str:
    """In one form of its characters, with the quotes and dashes of a typewriter: models retype them when they copy."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_PLAIN)


def comparable_text(text: str) -> str:
    """`normalise` of the plain text."""
    return normalise(plain(text))


def typewriter_quotes(text: str) -> str:
    """A text with these quotes alone, character for character."""
    return text if text.isascii() else text.translate(_STRAIGHT)


def plain_letters(text: str) -> str:
    """A text without case, accents, width and what nobody sees.

    Letters that are not made of one with an accent ("ø", "ł") are taken for those that they look like.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).casefold().translate(_LETTERS)


def has_words(text: str, quotation: str) -> bool:
    """Whether a comparable text has the words of another one: "no" is not in "norway"."""
    words = comparable_text(quotation)
    return bool(words) and next(whole_words(words, comparable_text(text)), None) is not None


def without_texts(content: str, texts: Iterable[str]) -> str:
    """A comparable text without copies of whole `texts`, which are comparable too; nothing grows together.

    A text of one or two words ("Berlin") may be an answer as well as a copy, and stays.
    """
    for text in sorted(texts, key=len, reverse=True):
        words = text.rstrip(" .!?…")
        if len(_SPACED_WORD.sub("__", words).replace(" ", "")) >= _SHORTEST_COPY:
            starts = list(whole_words(words, content))
            ends = [0, *(start + len(words) for start in starts)]
            content = "\n".join(content[end:start] for end, start in zip(ends, [*starts, len(content)], strict=True))
    return content


# A pattern for each text would be slower: to compile one with these ranges of signs takes milliseconds.
def whole_words(words: str, text: str) -> Iterator[int]:
    """Where `words` begin in `text` without being a part of longer words; one place does not overlap the next."""
    start = text.find(words)
    while start >= 0:
        end = start + len(words)
        goes_on_before = start > 0 and _INSIDE_WORD.match(text, start - 1)
        is_whole = not (goes_on_before or _INSIDE_WORD.match(text, end - 1))
        if is_whole:
            yield start
        start = text.find(words, end if is_whole else start + 1)


_GENERATED: Final = json.loads(Path(__file__).with_name("cldr_words.json").read_text(encoding="utf-8"))
_PLACES: Final = json.loads(Path(__file__).with_name("cldr_places.json").read_text(encoding="utf-8"))
_BY_HAND: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _meanings(section: str) -> dict[str, str]:
    rows = [*_GENERATED[section].items(), *_BY_HAND[section].items()]
    return {word: meaning for meaning, words in rows for word in words.split()}


def _phrases(name: str) -> re.Pattern[str]:
    """One of the patterns of a list, for tokens in small letters with a space between."""
    lines = _BY_HAND["patterns"][name].strip().splitlines()
    return re.compile(rf"\b(?:{'|'.join(lines)})(?!\w)", re.IGNORECASE)


def _sides(name: str) -> tuple[tuple[frozenset[str], ...], ...]:
    """The lines of a list, each with its two sides."""
    lines = _BY_HAND["words"][name].strip().splitlines()
    return tuple(tuple(frozenset(side.split()) for side in line.split(" | ")) for line in lines)


NUMBERS: Final = _meanings("numbers")
ONES: Final = {word: number for word, number in NUMBERS.items() if number in set("123456789")}
TENS: Final = {word: number for word, number in NUMBERS.items() if number in {f"{ten}0" for ten in range(2, 10)}}
DATES: Final = _meanings("dates")
UNITS: Final = _meanings("units")
QUALIFIERS: Final = {word: meaning for meaning, words in _BY_HAND["qualifiers"].items() for word in words.split()}
"""Words that say how far a statement goes, each with its meaning."""
WORDS: Final = {name: frozenset(words.split()) for name, words in _BY_HAND["words"].items()}
"""The lists of words, by their names in `words.toml`."""
NEGATIONS: Final = WORDS["negations"]
SENTENCE_STARTERS: Final = WORDS["sentence_starters"]
AMBIGUOUS_WORDS: Final = WORDS["ambiguous"]
"""Words with a second meaning. They count when two texts are compared: a false alarm costs no more than a question to
the LLM. They do not count when a text is refused."""
SMALL_WORDS: Final = (SENTENCE_STARTERS | WORDS["small_words"]) - WORDS["other_in_english"]
"""Words that tell little alone: they begin sentences, or are forms of "to be" and the like."""
OWN_SIGNS: Final = re.compile("[我俺僕]|私|わたし")
TIE_SIGNS: Final = re.compile("我?的?((?:妹|姐|哥|弟|妈|爸|母|父|兄|姉|夫|妻|丈夫|老板|同事)[妹姐哥弟妈爸親亲]?)")
TOPIC: Final = re.compile(r"\s*([^\s、。は昨今明日朝昼夜晩週年月時]{1,12})は")
"""The topic of a Japanese sentence, but for a time."""
SIZES: Final[Sequence[Mapping[str, float]]] = tuple(_BY_HAND["sizes"].values())
"""Units of one kind, each with its size in one of them."""
QUOTES: Final = tuple(tuple(line.split(" | ")) for line in _BY_HAND["words"]["quotes"].strip().splitlines())
PATTERNS: Final = {name: _phrases(name) for name in _BY_HAND["patterns"]}
TENSES: Final = _sides("tenses")
"""Forms of one verb in the past and in the present."""
TENSE_ENDINGS: Final = tuple(
    (past, now)
    for pasts, nows in _sides("tense_endings")
    for past, now in product(pasts, (ending.strip("-") for ending in nows))
)
"""Endings of verbs in the past, each with one that the same verb has in the present."""
PLACES: Final[frozenset[str]] = frozenset().union(*_PLACES.values())
"""Countries and cities in small letters; cities only where CLDR has them: those that a time zone is named after."""


_TOKEN = re.compile(
    r"\d{4}-\d{2}-\d{2}|(?<!\w)[-\u2212]?\d+(?:[.,:]\d+)*|\d+(?:[.,:]\d+)*|°[cfCF]\b"
    r"|[^\W\d_]+(?:[\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0971-\u0d7f]+[^\W\d_]*)*(?:[+#]+|(?<=\b[A-Z])[-\u2212](?!\w))?|[%€$£¥]|[.!?…:;,\n]"
)
_TOKEN_OR_SIGN = re.compile(_TOKEN.pattern + r"|[^\s\w\"«»„“”]")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_DIGIT = re.compile(r"\d")
_CLITIC = re.compile(r"(?<=[a-z])n't\b", re.IGNORECASE)
_SHORTENED = re.compile(r"\b(ca|wo|sha)(?=n't\b)", re.IGNORECASE)
_WHOLE: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_HAS_TO = re.compile(r"\b(?:has|have|had) to\b", re.IGNORECASE)
_AGE = re.compile(r"(?<=\d)[ -]years?[ -]old\b", re.IGNORECASE)
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,:-])\d{1,3}(?: \d{3})+(?![\d.,:-])")
_THOUSANDS_OF_K = re.compile(r"(?<![\w.,])(\d{1,4})k\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b(1[0-2]|0?[1-9])(?:[:.]([0-5]\d))? ?([ap])\.?m\b", re.IGNORECASE)
_ELIDED = re.compile(r"\bn'(?=\w)", re.IGNORECASE)
_NEGATED_FORM = re.compile(r"\b(\w{2,20}?)(?:m(?=[iuü\u0131]yor)|지 ?(?:않|못)\w*)")  # of Turkish and Korean verbs
SENTENCE_ENDS: Final = frozenset(".!?…\n")
_BEFORE_FIRST: Final = SENTENCE_ENDS | frozenset(":")
CLAUSE_ENDS: Final = SENTENCE_ENDS | frozenset(",;:")
CONJUNCTIONS: Final = frozenset({"and", "but", "und", "aber", "et", "mais", "y", "pero", "e", "mas", "ma", "и", "но"})
_SHORT_UNITS: Final = frozenset({"m", "g", "l", "h", "s", "c", "f", "k", "t", "b"})
_DEFINITE_ARTICLES: Final = frozenset({"the", "der", "das", "le", "la", "les", "el", "los", "las", "il", "lo"})
_NEGATION_REACH = 8  # words that a negation reaches at the most
_STEM_LENGTH = 4


def tokens_of(text: str) -> list[str]:
    """Words, numbers, signs and ends of clauses; "isn't" is "is not", "n'aime" is "ne aime", "Mira's" is "Mira s"."""
    return _TOKEN.findall(_expanded(text))


def _expanded(text: str) -> str:
    """The text with one of several ways to write the same: "isn't" and "is not", "10k" and "10000"."""
    said = plain(text)
    if "'" in said:
        said = _SHORTENED.sub(lambda match: _WHOLE[match[1].lower()], said)
        said = _ELIDED.sub("ne ", _CLITIC.sub(" not", said))
    said = _HAS_TO.sub("must", said)
    if "yor" in said or "지" in said:
        said = _NEGATED_FORM.sub(r"not \1", said)
    if _DIGIT.search(said) is None:
        return said
    said = _THOUSANDS_OF_K.sub(r"\g<1>000", _AGE.sub(" old", said))
    said = _SPACED_THOUSANDS.sub(lambda match: match[0].replace(" ", ""), said)
    return _CLOCK.sub(
        lambda match: f"{int(match[1]) % 12 + 12 * (match[3].lower() == 'p')}:{match[2] or '00'}",  # of 24 hours
        said,
    )


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
    words = [token.casefold() for token in tokens]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in TENS and after in ONES:
            yield str(int(TENS[word]) + int(ONES[after]))
        elif word[-1].isdigit():
            yield from () if _ISO_DATE.fullmatch(word) else (normalised_number(word),)
        elif word in NUMBERS and not (word in ONES and before in TENS):
            yield NUMBERS[word]


def normalised_number(digits: str) -> str:
    digits = "".join(str(unicodedata.digit(sign, -1)) if sign.isdigit() else sign for sign in digits)
    if _THOUSANDS.fullmatch(digits):
        return re.sub(r"[.,]", "", digits)
    return digits.removesuffix(":00").replace(",", ".").replace("\u2212", "-")


def units_of(tokens: Sequence[str]) -> Iterator[str]:
    for before, token in zip(["", *map(str.casefold, tokens)], tokens, strict=False):
        word, is_behind_number = token.casefold(), before[-1:].isdigit()
        # A unit may be a small word in another language: "par an", "5 mi", not "20 an hour".
        is_counted = before in WORDS["before_units"] or (is_behind_number and word not in WORDS["articles"])
        if word in UNITS and (word not in SMALL_WORDS or is_counted):
            yield UNITS[word]
        elif word in _SHORT_UNITS and is_behind_number:
            yield word


def negations_of(tokens: Sequence[str]) -> frozenset[frozenset[str]]:
    """The stems of the words that each negation reaches, in its clause."""
    found: list[frozenset[str]] = []
    words = [token.casefold() for token in tokens]
    for place in (place for place, word in enumerate(words) if word in NEGATIONS):
        behind = words[place + 1 : place + 1 + _NEGATION_REACH]
        reached = takewhile(lambda word: word not in CLAUSE_ENDS and word not in CONJUNCTIONS, behind)
        found.append(frozenset(word[:_STEM_LENGTH] for word in reached if word not in SENTENCE_STARTERS | NEGATIONS))
    return frozenset(found)


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


_PLACEHOLDER: Final = re.compile(r"\{(?:([a-z]+):)?([a-z_]+)\}")


def tables(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def compiled(text: str, parts: Mapping[str, str]) -> re.Pattern[str]:
    """One pattern for all lines, in small and capital letters. `{v:place}` is a group `v_0` of the part `place`."""
    numbers = count()

    def part(match: re.Match[str]) -> str:
        inner = _PLACEHOLDER.sub(part, parts[match[2]].replace("\n", "|"))
        return f"(?P<{match[1]}_{next(numbers)}>{inner})" if match[1] else f"(?:{inner})"

    return re.compile(_PLACEHOLDER.sub(part, text.replace("\n", "|")), re.IGNORECASE)


def _words(table: Mapping[str, str], *meanings: str) -> str:
    words = [word for word, meaning in table.items() if meaning.split()[0] in meanings]
    return "|".join(sorted(words, key=len, reverse=True))


_UNAMBIGUOUS: Final = {word: DATES[word] for word in DATES if len(word) > len("sun") and word not in AMBIGUOUS_WORDS}
DATE_PARTS: Final[Mapping[str, str]] = {
    "month": _words(DATES, "month"),
    "weekday": _words(_UNAMBIGUOUS, "weekday"),
    "unit": _words(UNITS, "day", "week", "month", "year"),
    "count": rf"\d{{1,3}}|an?|ein(?:em|er|en)?|une?|una?|uma|{_words(NUMBERS, *map(str, range(2, 13)))}",
}
"""Words for months, weekdays, units of time and small numbers, in six languages."""
