"""What a text says, as far as its words show: numbers, dates, units, names, content words, and what it denies."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
_TIME_WORDS: Final = (
    WORDS["time_words"] | DATES.keys() | {word for word, unit in UNITS.items() if unit in WORDS["time_units"]}
)
_HEDGES: Final = WORDS["hedges"] | WORDS["conditions"] | WORDS["unreal"]
_TELLING_NOTHING: Final = SMALL_WORDS | NEGATIONS | CONJUNCTIONS
_REACHING: Final = NEGATIONS | WORDS["endings"] | WORDS["aversions"]
_NEAR: Final = 5  # tokens behind an amount in which its date is named
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


@dataclass(frozen=True)
class Reading:
    """What a text says; each part is worked out once, when it is first asked for.

    `given` are the tokens of a clause, whose sentence was read before.
    """

    text: str
    given: tuple[str, ...] | None = None

    @cached_property
    def form(self) -> str:
        return plain(self.text)

    @cached_property
    def is_spaced(self) -> bool:
        """Whether the text is in a script with spaces between words."""
        return _UNSPACED.search(self.form) is None

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        if self.given is not None:
            return self.given
        form = self.form if self.is_spaced else _BORDER.sub(" ", self.form)
        return tuple(tokens_of(_CANNOT_STAND.sub("hates", PATTERNS["not_denying"].sub(" ", form))))

    @cached_property
    def lower(self) -> tuple[str, ...]:
        """The tokens without capitals."""
        return tuple(map(str.casefold, self.tokens))

    @cached_property
    def lower_set(self) -> frozenset[str]:
        return frozenset(self.lower)

    @cached_property
    def claimed(self) -> frozenset[str]:
        """Its certain numbers, dates, units and qualifiers."""
        certain = [token for token in self.tokens if token.casefold() not in AMBIGUOUS_WORDS]
        return frozenset({*_details(certain), *_numerals(self.form)} - {*self._dates})

    @cached_property
    def details(self) -> frozenset[str]:
        """What it claims, with numbers, dates and units of words with a second meaning, and the parts of dates."""
        numbers = {str(int(number)) for date in self._dates for number in re.findall(r"\d+", date)}
        found = {*_details(self.tokens), *composed_numbers(self.tokens), *_numerals(self.form), *self._dates, *numbers}
        return frozenset(found.union(f"month {one}" for one in numbers))

    @cached_property
    def _dates(self) -> tuple[str, ...]:
        return tuple(token for token in self.tokens if token[0].isdigit() and NUMERIC_DATE.fullmatch(token))

    @cached_property
    def names(self) -> frozenset[str]:
        """Its words with a capital, in small letters."""
        return frozenset(names_of(self.tokens)) - WORDS_FOR_USER - _leading_word(self.tokens)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Its content words without their endings, in their order."""
        return tuple(stem_of(token) for token in self.tokens if is_content(token) and not is_number(token))

    @cached_property
    def starts(self) -> frozenset[str]:
        """The beginnings of its content words, which their forms have in common ("fumo", "fuma"), or its signs."""
        return starts_of(self.stems) if self.is_spaced else self.signs

    @cached_property
    def denials(self) -> tuple[Denial, ...]:
        return tuple(_denials(self.tokens) if self.is_spaced else _sign_denials(self.form))

    @cached_property
    def denies(self) -> bool:
        """Whether it has a negation."""
        return not NEGATIONS.isdisjoint(self.lower) or (not self.is_spaced and bool(self.denials))

    @cached_property
    def is_negative(self) -> bool:
        """Whether it denies, tells an end, or has a word like "hates"."""
        return self.denies or bool(self.ending) or not WORDS["aversions"].isdisjoint(self.lower)

    @cached_property
    def signs(self) -> frozenset[str]:
        """The signs of a script without spaces that tell something."""
        return frozenset() if self.is_spaced else frozenset(_SIGNS.findall(self.form)) - _NO_SIGNS

    @cached_property
    def ending(self) -> str:
        """The words that tell that something has ended, or ""."""
        end = PATTERNS["ended"].search(" ".join(self.lower))
        return end[0] if end else next((word for word in self.lower if word in WORDS["endings"]), "")

    @cached_property
    def left_behind(self) -> frozenset[str]:
        """The beginnings of the words for what was left for something else: "Lima" of "I moved from Lima to Quito"."""
        return self.named_by("left_behind")

    def named_by(self, pattern: str) -> frozenset[str]:
        """The beginnings of the words in the group of a pattern, but for those that stand behind it, too."""
        words = " ".join(self.lower)
        found = PATTERNS[pattern].finditer(words)
        named = (read(one[one.lastindex or 0]).starts - read(words[one.end() :]).starts for one in found)
        return frozenset().union(*named)

    @cached_property
    def clauses(self) -> tuple["Reading", ...]:
        """The parts between commas, conjunctions and ends of sentences."""
        if not self.is_spaced:
            return tuple(read(part) for part in _SIGN_CLAUSES.split(self.form) if part.strip())
        parts: list[list[str]] = [[]]
        for token, word in zip(self.tokens, self.lower, strict=True):
            if token in CLAUSE_ENDS or word in CONJUNCTIONS:
                parts.append([])
            else:
                parts[-1].append(token)
        return tuple(Reading(" ".join(part), tuple(part)) for part in parts if part)

    @cached_property
    def counted(self) -> frozenset[tuple[str, str]]:
        """Each number with what it counts, the word behind it or its unit, else the one before; and with its date."""
        found: set[tuple[str, str]] = set()
        for clause in self.clauses if any(map(is_number, self.tokens)) else ():
            tokens = [token for token in clause.tokens if token.casefold() not in UNITS and token.casefold() != "of"]
            before: list[str] = []
            for place, token in enumerate(tokens):
                is_word = is_content(token) and not is_number(token)
                if is_number(token) and token.casefold() not in DATES:
                    rest = tokens[place + 1 : place + 1 + _NEAR]
                    is_beside = bool(rest) and is_content(rest[0]) and not is_number(rest[0])
                    things = [DATES.get(one.casefold()) or stem_of(one) for one in (rest[:1] if is_beside else before)]
                    things += [date for one in rest if (date := DATES.get(one.casefold()))][:1]
                    found.update((number, thing) for number in numbers_of([token]) for thing in things)
                before = [token] if is_word else before
        return frozenset(found)

    @cached_property
    def told(self) -> frozenset[str]:
        """The stems of the words that tell something, the numbers and dates; of a script without spaces the signs."""
        return (self.signs | self.details).union(self.stems if self.is_spaced else ())

    @cached_property
    def words(self) -> frozenset[str]:
        """What may be found in another text: the stems and beginnings of its content words, or its signs."""
        if not self.is_spaced:
            return self.signs
        return frozenset(self.stems) | {start_of(token) for token in self.tokens if is_content(token)}


@lru_cache(maxsize=2048)  # a known fact is compared with several new ones
def read(text: str) -> Reading:
    return Reading(text)


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


def tells_time(said: Reading) -> bool:
    """Whether a text has a word, a sign or a year that tells when."""
    return (
        not said.lower_set.isdisjoint(_TIME_WORDS)
        or any(_YEAR.fullmatch(word) for word in said.lower if word[0].isdigit())
        or any(sign in said.text for sign in WORDS["time_signs"])
    )


def is_supposed(clause: Reading, sentence: Reading) -> bool:
    """Whether a clause is about what is not so, or not certainly: "if I lived", "maybe", "I would" beside an "if"."""
    if not clause.is_spaced:
        return any(sign in sentence.text for sign in WORDS["supposed_signs"])
    is_unreal = not WORDS["unreal"].isdisjoint(clause.lower) or any(map(_CONDITIONAL.fullmatch, clause.lower))
    if is_unreal and not WORDS["conditions"].isdisjoint(sentence.lower):
        return True
    return PATTERNS["supposed"].search(" ".join(clause.lower)) is not None


def has_condition(text: str) -> bool:
    reading = read(text)
    return is_supposed(reading, reading) or not _HEDGES.isdisjoint(reading.lower)


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


def starts_of(stems: Iterable[str]) -> frozenset[str]:
    """The first letters of words, which their forms have in common; a syllable of Korean."""
    return frozenset(stem[: 3 if stem < "가" else 1] for stem in stems)


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
    yield from (DATES[token.casefold()] for token in tokens if token.casefold() in DATES)
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
