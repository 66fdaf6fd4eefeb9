"""What a fact of a reply says that nobody said: words, names, numbers, times, denials, and whom it is about.

Each check refuses at least nine harmful facts for an honest one (`tests/quality/reply_checks.py`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple

from mnemolog.streams.entities.names import has_tie, is_first_name, ties_in
from mnemolog.streams.text.assertions import added_names, are_forms, contrary, moved, shares_no_word
from mnemolog.streams.text.readings import (
    clauses_of,
    has_condition,
    is_english,
    is_supposed,
    main_script,
    read,
    tells_time,
)
from mnemolog.streams.text.short_answers import ShortAnswer
from mnemolog.streams.text.times import MAX_CHARACTERS, find_times
from mnemolog.streams.text.tokens import (
    OWN_SIGNS,
    TIE_SIGNS,
    UNIT_KINDS,
    WORDS,
    comparable_text,
    has_words,
)

_LARGEST_COUNT: Final = 12
"""Up to this a number may be counted from what was named."""
_LONG: Final = 4  # digits of a number that may be written in another form
_LEAST_WORDS: Final = 2
_DAY: Final = timedelta(days=1)
_YEAR: Final = re.compile(r"(?:1[89]|20|21)\d\d")
_QUOTED: Final = re.compile('["“„”](.+?)["“”]|«(.+?)»|「(.+?)」|『(.+?)』|^>(.+?)$', re.DOTALL | re.MULTILINE)
_OPENING: Final = frozenset({"well", ",", "and", "but", "so", "il", "la", "o", "a", "и"})
"""What may stand before the "my" that a sentence begins with."""


class FieldFault(NamedTuple):
    """What is wrong with a field of a fact, or with all of it (`text`): the name of the check, and words for it."""

    field: str
    check: str
    what: str


@dataclass(frozen=True, slots=True)
class Source:
    """What a fact may come from: the sentences of its excerpt, the question that these answer, the turn's `texts`.

    `names` are texts that may tell who "he" is, `speakers` the names of who speaks.
    """

    sentence: str
    asked: str
    texts: tuple[str, ...]
    speakers: tuple[str, ...]
    names: tuple[str, ...]
    at: datetime

    @property
    def _said(self) -> tuple[str, ...]:
        return (*self.texts, self.asked)

    @property
    def _known(self) -> tuple[str, ...]:
        return (*self._said, *self.speakers, *self.names)

    def faults(
        self, text: str, excerpt: str, *, is_answer: bool, is_of_user: bool, **fields: Any
    ) -> Iterator[FieldFault]:
        """What is wrong with a fact; `fields` are those of the reply that are judged beside its text."""
        found = [*self._unsaid(text, excerpt, fields.get("subject") or "")]
        if not is_answer:
            found += self._turned(text, fields.get("certainty"))
            other = other_person(self.sentence, self.speakers) if is_of_user else ""
            of_other, own = read(other), read(text)
            is_in_text = any(are_forms(one, token) for one in of_other.tokens for token in own.tokens) or (
                not of_other.is_spaced and not of_other.signs.isdisjoint(own.signs)
            )
            if other and not is_in_text and not any(has_tie(text, tie) for tie, _ in ties_in(self.sentence)):
                found.append(("subject", f"its excerpt is about somebody else ({other})"))
        yield from (FieldFault("text", check, what) for check, what in found)
        for field in ("key", "value"):
            named = fields.get(field) or ""
            names = self._unsaid_names(named) if field == "value" else ()
            unsaid = [*names, *self._unsaid_numbers(named.replace("_", " "))]
            yield from (FieldFault(field, "value", f"nobody said {one}") for one in unsaid[:1])
        for field in ("event_time", "valid_until"):
            moment = fields.get(field)
            if moment is not None and not self._has_time(moment.date(), moment.date()):
                yield FieldFault(field, "time", "nobody named this time")

    def _unsaid(self, text: str, excerpt: str, subject: str) -> Iterator[tuple[str, str]]:
        """Words, names and amounts of a text that nobody said."""
        bare, source = comparable_text(text), f"{excerpt} {self.asked}"
        without_speakers = text
        for name in self.speakers:
            bare = bare.replace(comparable_text(name), " ")
            # Of "a-long-name@example.org" each part would count as a word.
            without_speakers = without_speakers.replace(name, " ")
        scripts, languages = (main_script(bare), main_script(source)), (is_english(text), is_english(source))
        if (all(scripts) and scripts[0] != scripts[1]) or (None not in languages and languages[0] != languages[1]):
            yield "translation", "it is in another language than its excerpt"
            return
        near, own = read(self.sentence), read(without_speakers)
        is_said_shortly = near.is_spaced and len(near.stems) < _LEAST_WORDS  # one word may be put in others
        is_number_said = own.details & near.details or any(
            one in _digits(self.texts) for one in re.findall(r"\d+", without_speakers)
        )
        if not (is_said_shortly or is_number_said) and shares_no_word(without_speakers, (*self._said, *self.names)):
            yield "words", "it shares no word with what was said"
        claimed, said = near.claimed | read(self.asked).claimed, frozenset[str]()
        said = said.union(*(read(one).claimed for one in self._said))
        units = [one for kind in UNIT_KINDS if claimed & kind for one in sorted(read(text).claimed & kind - said)]
        for check, found in (
            ("name", self._unsaid_names(text)),
            ("name", self._unsaid_names(subject)),
            ("number", self._unsaid_numbers(text)),
            ("unit", units),
            ("moved", moved(self._said, text)),
        ):
            yield from ((check, f"it says {one}, which no message says") for one in found)

    def _unsaid_names(self, text: str) -> Iterator[str]:
        return added_names(text, self._known)

    def _unsaid_numbers(self, text: str) -> Iterator[str]:
        """The numbers and dates that nobody said: small ones may be counted where none is said, years reckoned."""
        times = find_times(text[:MAX_CHARACTERS], self.at)
        rest = text
        for when in reversed(times):
            rest = f"{rest[: when.span[0]]} {rest[when.span[1] :]}"
            if not self._has_time(when.first, when.last):
                yield f"{when.first:%Y-%m-%d}"
        own, near = read(rest), [read(self.sentence), read(self.asked)]
        counts = [one for reading in near for one in reading.details if one[0].isdigit()]
        has_years = any("year" in reading.claimed for reading in (*near, own))
        said, digits = frozenset().union(*(read(one).details for one in self._known)), _digits(self._said)
        for number in sorted(one for one in own.claimed - said if one.lstrip("-")[:1].isdigit()):
            is_counted = number == "1" or (not counts and number.isdigit() and int(number) <= _LARGEST_COUNT)
            is_reckoned = has_years and any(_YEAR.fullmatch(one) for one in (number, *counts))
            is_written_otherwise = len(number) >= _LONG and number in digits  # "5550100" for "555-0100"
            is_clock = ":" in number and bool(counts)
            if not (is_counted or is_reckoned or is_written_otherwise or is_clock):
                yield number

    def _has_time(self, first: date, last: date) -> bool:
        """Whether these days have that of the turn, or one of the sentence, or a time is told that cannot be read."""
        near = (self.sentence[:MAX_CHARACTERS], self.asked[:MAX_CHARACTERS])
        found = [when for one in near for way in (-1, 1) for when in find_times(one, self.at, way)]
        is_near = any(when.first - _DAY <= last and first <= when.last + _DAY for when in found)
        return first <= self.at.date() <= last or is_near or (not found and any(map(tells_time, self._said)))

    def _turned(self, text: str, certainty: str | None) -> Iterator[tuple[str, str]]:
        """What turns the sense of the sentences: what they deny is affirmed, what they suppose is stated."""
        own, names = read(text), frozenset().union(*(read(name).words for name in self.speakers))
        clauses = [*clauses_of(self.sentence), *clauses_of(self.asked)]
        shared = [len(_starts(one.words - names) & _starts(own.words)) for one in clauses]
        near = [one for one, words in zip(clauses, shared, strict=True) if words] or clauses
        # In scripts whose verbs have other forms ("ем", "ест") any word of the denial tells.
        is_foreign = main_script(self.sentence) not in ("LATIN", "CJK", "") and not own.is_negative
        if near and all(
            contrary(one, own)
            or (is_foreign and one.denies and any(not denial.reached.isdisjoint(own.stems) for denial in one.denials))
            for one in near
        ):
            yield "polarity", "it says the contrary of its excerpt"
        nearest = clauses[shared.index(max(shared))] if clauses else own
        is_stated = certainty not in ("weak", "speculation") and not has_condition(text)
        if is_stated and is_supposed(nearest, self.sentence):
            yield "hypothetical", "it states as a fact what was only supposed"


def _digits(texts: tuple[str, ...]) -> str:
    return re.sub(r"\D", "", " ".join(texts))


def _starts(words: frozenset[str]) -> set[str]:
    return {word[:3] for word in words}  # "fumo", "fuma"


def in_first_person(text: str) -> bool:
    """Whether a text has "I", "me", "we" or the like, or "my"."""
    tokens = {token.casefold() for token in read(text).tokens}
    return bool(tokens & (WORDS["first_person"] | WORDS["my"])) or OWN_SIGNS.search(text) is not None


def other_person(sentence: str, speakers: tuple[str, ...] = ()) -> str:
    """Whom a sentence without "I" or "me" is about, in its words: "sister" of "My sister is vegan", "Tom"; or ""."""
    reading = read(sentence)
    if not reading.is_spaced:
        found = TIE_SIGNS.search(sentence)
        return found[1] if found and not OWN_SIGNS.search(TIE_SIGNS.sub(" ", sentence)) else ""
    tokens = [token.casefold() for token in reading.tokens]
    if not WORDS["first_person"].isdisjoint(tokens):
        return ""
    if next((word for word in tokens if word not in _OPENING), "") in WORDS["my"]:
        owned = [next(iter(tokens[at + 1 :]), "") for at, word in enumerate(tokens) if word in WORDS["my"]]
        is_being = any(ties_in(sentence)) or not WORDS["other_ties"].isdisjoint(owned)
        return " ".join(owned) if is_being else ""
    first = next(iter(reading.tokens), "")
    is_name = first[:1].isupper() and is_first_name(first.casefold()) and WORDS["my"].isdisjoint(tokens)
    is_other = is_name and not any(has_words(one, first) for one in speakers)
    return first if is_other or first.casefold() in WORDS["other_ties"] else ""


def is_quotation(content: str, excerpt: str) -> bool:
    """Whether all of an excerpt is quoted in a message whose other words are not in the first person."""
    quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(content)]
    return any(has_words(one, excerpt) for one in quoted) and not in_first_person(_QUOTED.sub(" ", content))


def answer_fault(kind: ShortAnswer, text: str, source: Source) -> str:
    """What is wrong with a fact whose excerpt is a bare answer, or ""."""
    own, asked = read(text), read(source.asked)
    if kind == "open":
        return "it rests on words that neither confirm nor deny"
    if not source.asked:
        return "it rests on a bare answer, and nothing was asked just before"
    told = own.words - frozenset().union(*(read(name).words for name in source.speakers))
    is_comparable = bool(asked.words) and main_script(text) == main_script(source.asked)
    if is_comparable and told.isdisjoint(asked.words):
        return "it says something else than what was asked just before"
    if kind == "no" and not own.is_negative and not asked.is_negative:
        return "it affirms what the answer denies"
    if kind == "yes" and own.denies and not asked.is_negative:
        return "it denies what the answer affirms"
    return ""
