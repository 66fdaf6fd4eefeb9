"""What a text says, as far as its words show: numbers, dates, units, names, content words, and what it denies."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final, NamedTuple

from mnemolog.streams.text.differences import WORDS_FOR_USER
from mnemolog.streams.text.tokens import (
    AMBIGUOUS_WORDS,
    CLAUSE_ENDS,
    CONJUNCTIONS,
    DATES,
    NEGATIONS,
    NUMBERS,
    PATTERNS,
    QUALIFIERS,
    SMALL_WORDS,
    UNITS,
    WORDS,
    composed_numbers,
    dates_of,
    names_of,
    numbers_of,
    plain,
    tokens_of,
    units_of,
)

_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_SIGNS = re.compile(r"[\u30a1-\u30fa\u3400-\u9fff]")  # katakana and ideographs: hiragana are mostly endings
_NUMERALS: Final = {sign: str(number) for number, sign in enumerate("二三四五六七八九十", start=2)}
_NUMERAL_RUN = re.compile("[一二三四五六七八九十百千万]+")
_SIGN_CLAUSES = re.compile("[\u3001\u3002\uff0c\uff1b\uff01\uff1f,.;!?\n]")
_BORDER = re.compile(
    r"(?<=[A-Za-z\u00c0-\u024f])(?=[\u3040-\u30ff\u3400-\u9fff])|(?<=[\u3040-\u30ff\u3400-\u9fff])(?=[A-Z])"
)
_CANNOT_STAND = re.compile(r"\b(?:can ?not|can'?t|could not|couldn'?t) (?:stand|bear)\b", re.IGNORECASE)
NUMERIC_DATE: Final = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{2,4}")
_YEAR = re.compile(r"(?:1[89]|20|21)\d\d")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_SUFFIX = re.compile(r"(?<=\w{3})(?:ing|ed|en)$|(?<=\w{2})[аеёиоуыэюяйь]{1,3}$")
_CONDITIONAL: Final = re.compile(r"\w{2,}(?:rai(?:s|t|ent)|rions|ría[ns]?|ríamos|riam?|re(?:i|bbero?))")
_NO_SIGNS: Final = frozenset("".join(WORDS["other_negations"])) | frozenset("我私僕俺")
_CERTAIN_NUMBERS: Final = NUMBERS.keys() - AMBIGUOUS_WORDS
_TELLING_NOTHING: Final = SMALL_WORDS | NEGATIONS | CONJUNCTIONS
_REACHING: Final = NEGATIONS | WORDS["endings"] | WORDS["aversions"]
_REACH: Final = 8  # words that a negation reaches at the most
_LONGEST_CLAUSE: Final = 40  # words before a negation that are looked at
_STEM_LENGTH: Final = 5
_START_LENGTH: Final = 4


class Denial(NamedTuple):
    """A negation, or a word like "hates" or "stopped": what it reaches, and what it may reach, in which clause."""

    word: str
    clause: int
    reached: frozenset[str]
    unclear: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says.

    `claimed` are its certain numbers, dates, units and qualifiers, `details` also those of words with a second meaning,
    and the parts of dates. `names` are words with a capital, `stems` its content words, in their order. `denies`:
    whether it has a negation; `is_negative`: or another word of that kind. `signs` are those of a script without spaces
    that tell something. `ending` tells that something has ended, or is "".
    """

    tokens: tuple[str, ...]
    claimed: frozenset[str]
    details: frozenset[str]
    names: frozenset[str]
    stems: tuple[str, ...]
    denials: tuple[Denial, ...]
    denies: bool
    is_negative: bool
    is_spaced: bool
    signs: frozenset[str]
    ending: str

    @property
    def told(self) -> frozenset[str]:
        """The stems of the words that tell something, the numbers and dates; of a script without spaces the signs."""
        return (self.signs | self.details).union(self.stems if self.is_spaced else ())

    @property
    def words(self) -> frozenset[str]:
        """What may be found in another text: the stems and beginnings of its content words, or its signs."""
        if not self.is_spaced:
            return self.signs
        return frozenset(self.stems) | {start_of(token) for token in self.tokens if is_content(token)}


@lru_cache(maxsize=2048)  # a known fact is compared with several new ones
def read(text: str) -> Reading:
    tokens = tokens_of(_CANNOT_STAND.sub("hates", PATTERNS["not_denying"].sub(" ", _BORDER.sub(" ", plain(text)))))
    certain = [token for token in tokens if token.casefold() not in AMBIGUOUS_WORDS]
    stems = tuple(stem_of(token) for token in tokens if is_content(token) and not is_number(token))
    form = plain(text)
    is_spaced = _UNSPACED.search(form) is None
    signs = frozenset(_SIGNS.findall(form)) - _NO_SIGNS
    denials = (*(_denials(tokens) if is_spaced else _sign_denials(form)),)
    dates = [token for token in tokens if NUMERIC_DATE.fullmatch(token)]
    numbers = {str(int(number)) for date in dates for number in re.findall(r"\d+", date)}
    numerals = {*_numerals(form)}
    words = [token.casefold() for token in tokens]
    end = PATTERNS["ended"].search(" ".join(words))
    ending = end[0] if end else next((word for word in words if word in WORDS["endings"]), "")
    denies = not NEGATIONS.isdisjoint(words) or (not is_spaced and bool(denials))
    return Reading(
        tokens=tuple(tokens),
        claimed=frozenset({*_details(certain)} - {*dates} | numerals),
        details=frozenset(
            {
                *_details(tokens),
                *composed_numbers(tokens),
                *numerals,
                *dates,
                *numbers,
                *(f"month {one}" for one in numbers),
            }
        ),
        names=frozenset(names_of(tokens)) - WORDS_FOR_USER - _leading_word(tokens),
        stems=stems,
        denials=denials,
        denies=denies,
        is_negative=denies or bool(ending) or not WORDS["aversions"].isdisjoint(words),
        is_spaced=is_spaced,
        signs=signs,
        ending=ending,
    )


def main_script(text: str) -> str:
    """The script of most letters of a text, as Unicode names it; Japanese and Chinese are one."""
    found = Counter(unicodedata.name(sign, "").partition(" ")[0] for sign in plain(text) if sign.isalpha())
    signs = found.pop("HIRAGANA", 0) + found.pop("KATAKANA", 0) + found.pop("CJK", 0)
    found["CJK"] = 3 * signs  # a sign says as much as several letters
    return max(found, key=found.__getitem__) if found.total() else ""


def is_english(text: str) -> bool | None:
    """Whether a text of Latin letters is in English, by its small words; None where they do not tell."""
    words = {token.casefold() for token in tokens_of(text)}
    english, other = (not words.isdisjoint(WORDS[name]) for name in ("english", "not_english"))
    return None if english == other else english


def tells_time(text: str) -> bool:
    """Whether a text has a word, a sign or a year that tells when."""
    words = [token.casefold() for token in read(text).tokens]
    return (
        any(word in WORDS["time_words"] or word in DATES or _YEAR.fullmatch(word) for word in words)
        or any(UNITS.get(word) in WORDS["time_units"] for word in words)
        or any(sign in text for sign in WORDS["time_signs"])
    )


def is_supposed(clause: Reading, sentence: str) -> bool:
    """Whether a clause is about what is not so, or not certainly: "if I lived", "maybe", "I would" beside an "if"."""
    words = [token.casefold() for token in clause.tokens]
    is_unreal = (not WORDS["unreal"].isdisjoint(words) or any(map(_CONDITIONAL.fullmatch, words))) and not WORDS[
        "conditions"
    ].isdisjoint(map(str.casefold, read(sentence).tokens))
    if not clause.is_spaced and any(sign in sentence for sign in WORDS["supposed_signs"]):
        return True
    return is_unreal or PATTERNS["supposed"].search(" ".join(words)) is not None


def has_condition(text: str) -> bool:
    reading = read(text)
    hedges = WORDS["hedges"] | WORDS["conditions"] | WORDS["unreal"]
    return is_supposed(reading, text) or not hedges.isdisjoint(token.casefold() for token in reading.tokens)


def is_content(token: str) -> bool:
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
    word = word.removeprefix("ال")
    word = word.removesuffix("s") if len(word) > len("has") and not word.endswith("ss") else word
    return _SUFFIX.sub("", word).removesuffix("e")[:_STEM_LENGTH] or word


def start_of(token: str) -> str:
    """What the forms of a long word have in common: "teaches", "taught" have not, "hospital", "hospitals" have."""
    return token.casefold()[:_START_LENGTH] if len(token) >= _START_LENGTH else token.casefold()


def clauses_of(text: str) -> Iterator[Reading]:
    """The parts of a text between commas, conjunctions and ends of sentences."""
    if _UNSPACED.search(text):
        yield from (read(part) for part in _SIGN_CLAUSES.split(plain(text)) if part.strip())
        return
    clause: list[str] = []
    for token in [*tokens_of(text), "."]:
        if token not in CLAUSE_ENDS and token.casefold() not in CONJUNCTIONS:
            clause.append(token)
        elif clause:
            yield read(" ".join(clause))
            clause = []


def _numerals(form: str) -> Iterator[str]:
    """The Chinese numerals of a text as numbers; "一" is often no number."""
    for run in _NUMERAL_RUN.findall(form):
        ten, _, one = run.partition("十")
        if run != "一":
            is_ten = "十" in run and len(ten) <= 1 and len(one) <= 1
            yield f"{_NUMERALS.get(ten, '1')}{_NUMERALS.get(one, '0')}" if is_ten else _NUMERALS.get(run, run)


def _leading_word(tokens: Sequence[str]) -> frozenset[str]:
    """The first word of a text without a subject ("Lives in Rome", "Main editor is Vim"): no verb of a name follows."""
    if len(tokens) < len(("Ann", "sings")) or tokens[0] in tokens[1:]:
        return frozenset()
    first, second, third = (token.casefold() for token in (*tokens, "")[:3])
    is_article = second == "a" and first.endswith(("s", "ed")) and third not in WORDS["articles"]
    is_verb = not is_content(tokens[1]) or (tokens[1].islower() and second.endswith(("s", "ed", "t")))
    return frozenset({first} if second in WORDS["after_verbs"] or is_article or not is_verb else ())


def _details(tokens: Sequence[str]) -> Iterator[str]:
    for number in numbers_of(tokens):
        match = _ORDINAL.fullmatch(number)
        yield match[1] if match else number
    yield from (date for date in dates_of(tokens) if not NUMERIC_DATE.fullmatch(date))
    yield from units_of(tokens)
    yield from (QUALIFIERS[token.casefold()] for token in tokens if token.casefold() in QUALIFIERS)


def _denials(tokens: Sequence[str]) -> Iterator[Denial]:
    """A denial reaches to the end of its clause; a negation at the end the words before it ("raucht nicht").

    What stands behind "and" it may reach. A second negation of a clause is one with the first ("ne ... pas").
    """
    clause, is_open = 0, ""
    for place, token in enumerate(tokens):
        word = token.casefold()
        if token in CLAUSE_ENDS or word in CONJUNCTIONS:
            clause, is_open = clause + 1, ""
        if word not in _REACHING:
            continue
        if word in NEGATIONS:
            if is_open and not WORDS["concord"].isdisjoint((is_open, word)):
                continue
            is_open = word
        stops = CLAUSE_ENDS | WORDS["aims"] if word in WORDS["endings"] else CLAUSE_ENDS  # "left Acme for Initech"
        reached: list[str] = []
        unclear: list[str] = []
        joined = False
        for after in tokens[place + 1 : place + 1 + _REACH]:
            word_after = after.casefold()
            if after in stops:
                break
            joined = joined or word_after in CONJUNCTIONS
            if is_content(after) and word_after not in DATES and word_after not in _REACHING:
                (unclear if joined else reached).append(stem_of(after))
        if not reached and word in NEGATIONS:
            # The clause before it, backwards: one at its end denies it all but the first word ("raucht nicht").
            before = takewhile(
                lambda one: one not in CLAUSE_ENDS and one.casefold() not in CONJUNCTIONS,
                reversed(tokens[max(0, place - _LONGEST_CLAUSE) : place]),
            )
            denied = [stem_of(one) for one in before if is_content(one) and one.casefold() not in DATES]
            reached = denied[:-1] or denied
        yield Denial(word, clause, frozenset(reached), frozenset(unclear))


def _sign_denials(form: str) -> Iterator[Denial]:
    for clause, part in enumerate(_SIGN_CLAUSES.split(form)):
        if negation := next((sign for sign in WORDS["other_negations"] if sign in part), ""):
            yield Denial(negation, clause, frozenset(_SIGNS.findall(part)) - _NO_SIGNS, frozenset())
