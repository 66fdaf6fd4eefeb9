"""What the messages of a turn say, and whether a fact of a model's reply follows from it.

Checks find what nobody said: words, names, numbers, times, denials, and whom it is about. Each refuses at least nine
harmful facts for an honest one (`tests/quality/reply_checks.py`).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from operator import itemgetter
from typing import Any, Final, NamedTuple

from mnemolog.schemas.base import normalise
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.names import has_tie, is_first_name, read_name, ties_in
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.text.assertions import added_names, contrary, moved, shares_no_word
from mnemolog.streams.text.differences import copied_texts, is_user_word
from mnemolog.streams.text.readings import (
    clauses_of,
    has_condition,
    is_english,
    is_supposed,
    main_script,
    read,
    stem_of,
    tells_time,
)
from mnemolog.streams.text.short_answers import ShortAnswer, asked_part, begins_sentence, sentences_of, short_answer
from mnemolog.streams.text.times import MAX_CHARACTERS, find_times
from mnemolog.streams.text.tokens import (
    OWN_SIGNS,
    TIE_SIGNS,
    UNIT_KINDS,
    WORDS,
    comparable_text,
    has_words,
    without_texts,
)

MIN_SCRIPT_LINES: Final = 2
"""How many lines of a message begin with a name and a colon if it is a script: one alone may be "Note: ..."."""
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t]*(?:\[[^\]\n]{1,40}\][ \t]*)?([^\W\d_][\w.'-]*(?: [^\W\d_a-z][\w.'-]*){0,2})"
    r"(?:[ \t]*\([^)\n]{1,30}\))?:[ \t]+(?=\S)",
    re.MULTILINE,
)
"""A name, perhaps with a time before or after it, and a colon."""


def other_speaker(turn: Turn, said_in: Collection[Message], excerpt: str) -> str | None:
    """Who says the words of `excerpt` in these messages, if that is one named person and not the turn's speaker.

    The lines of a script are of the name before each of them; an excerpt may begin with that name.
    """
    names: set[str | None] = set()
    head = _SPOKEN_LINE.match(excerpt)
    for message in said_in:
        found = list(_SPOKEN_LINE.finditer(message.content)) if message.role == "user" else []
        heads = [line[1] for line in found]
        lines = [line for line in found if line[1][0].isupper() or heads.count(line[1]) >= MIN_SCRIPT_LINES]
        spoken = [(message.content, message.name if message.role == "user" else None)]
        if len(lines) >= MIN_SCRIPT_LINES:
            ends = [line.start() for line in lines[1:]] + [len(message.content)]
            spoken = [(message.content[: lines[0].start()], message.name)]
            spoken += [(message.content[line.end() : end], line[1]) for line, end in zip(lines, ends, strict=True)]
            if head is not None:
                own = [text for text, name in spoken if name == head[1]]
                names |= {head[1] for text in own if has_words(text, excerpt[head.end() :])}
        names |= {name for text, name in spoken if has_words(text, excerpt)}
    name = names.pop() if len(names) == 1 else None
    return name if name and normalise(name) != normalise(turn.speaker or "") else None


def shown_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages of the conversation: all but the application's own system prompts."""
    return tuple(message for message in turn.messages if message.role != "system")


def evidence_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages that facts may rest on: what the assistant says is none, even where the user agrees to it."""
    return tuple(message for message in shown_messages(turn) if message.role != "assistant")


_LARGEST_COUNT: Final = 12
"""Up to this a number may be counted from what was named."""
_LONG: Final = 4  # digits of a number that may be written in another form
_LEAST_WORDS: Final = 2
_DAY: Final = timedelta(days=1)
_YEAR: Final = re.compile(r"(?:1[89]|20|21)\d\d")
_QUOTED: Final = re.compile('["“„”](.+?)["“”]|«(.+?)»|「(.+?)」|『(.+?)』|^>(.+?)$', re.DOTALL | re.MULTILINE)
_QUOTE_MARKS: Final = ' >"“„”«»「」『』'
_STOP: Final = re.compile(r"[.!?…\n\u3002\uff01\uff1f]")
_QUESTION: Final = re.compile(r"^[^.!;:\u3002\uff01]*[?\uff1f\u061f]\W*$")
_OWN_WORDS: Final = WORDS["first_person"] | WORDS["my"]
_FORMER: Final = re.compile(r"\bused to (\w+)", re.IGNORECASE)
_PRESENT: Final = {"be": "is", "have": "has", "do": "does", "go": "goes"}
_TOLD: Final = re.compile(r"\b(?:told|tells|reminded) (?:me|us)\b", re.IGNORECASE)
_TO_SPEAKER: Final = re.compile(
    r"\b(?:told|tells|reminded|wrote|texted|asked|sent|gave|showed|help|give|show|tell|let|for|to|from) (?:me|us)\b",
    re.IGNORECASE,
)
_OPENING: Final = frozenset({"well", ",", "and", "but", "so", "il", "la", "o", "a", "и"})
"""What may stand before the "my" that a sentence begins with."""


class FieldFault(NamedTuple):
    """What is wrong with a field of a fact, or with all of it (`text`): the name of the check, and words for it."""

    field: str
    check: str
    what: str


@dataclass(frozen=True, slots=True)
class Source:
    """What a fact may come from: the sentences of its excerpt, the question that these answer, and the whole turn."""

    sentence: str
    asked: str
    turn: "Evidence"

    @property
    def _said(self) -> tuple[str, ...]:
        return (*self.turn.texts, self.asked)

    @property
    def _known(self) -> tuple[str, ...]:
        return (*self._said, *self.turn.speakers, *self.turn.names)

    def faults(
        self, text: str, excerpt: str, *, is_answer: bool, is_of_user: bool, **fields: Any
    ) -> Iterator[FieldFault]:
        """What is wrong with a fact; `fields` are those of the reply that are judged beside its text."""
        found = [*self._unsaid(text, excerpt, fields.get("subject") or "")]
        if not is_answer:
            found += self._turned(text, fields.get("certainty"))
            other = other_person(self.sentence, self.turn.speakers) if is_of_user else ""
            of_other, own = read(other), read(text)
            is_in_text = not {*map(stem_of, of_other.tokens)}.isdisjoint(map(stem_of, own.tokens)) or (
                not of_other.is_spaced and not of_other.signs.isdisjoint(own.signs)
            )
            if other and not is_in_text and not any(has_tie(text, tie) for tie, _ in ties_in(self.sentence)):
                found.append(("subject", f"its excerpt is about somebody else ({other})"))
        yield from (FieldFault("text", check, what) for check, what in found)
        for field in ("key", "value"):
            named = fields.get(field) or ""
            names = added_names(named, self._known) if field == "value" else ()
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
        for name in self.turn.speakers:
            bare = bare.replace(comparable_text(name), " ")
            # Of "a-long-name@example.org" each part would count as a word.
            without_speakers = without_speakers.replace(name, " ")
        scripts, languages = (main_script(bare), main_script(source)), (is_english(text), is_english(source))
        if (all(scripts) and scripts[0] != scripts[1]) or (None not in languages and languages[0] != languages[1]):
            yield "translation", "it is in another language than its excerpt"
            return
        near, own = read(self.sentence), read(without_speakers)
        is_said_shortly = near.is_spaced and len(near.stems) < _LEAST_WORDS  # one word may be put in others
        digits = re.sub(r"\D", "", " ".join(self.turn.texts))
        is_number_said = own.details & near.details or any(
            one in digits for one in re.findall(r"\d+", without_speakers)
        )
        known = (*self._said, *self.turn.names)
        if not (is_said_shortly or is_number_said) and shares_no_word(without_speakers, known):
            yield "words", "it shares no word with what was said"
        claimed, said = near.claimed | read(self.asked).claimed, frozenset[str]()
        said = said.union(*(read(one).claimed for one in self._said))
        units = [one for kind in UNIT_KINDS if claimed & kind for one in sorted(read(text).claimed & kind - said)]
        for check, found in (
            ("name", added_names(text, self._known)),
            ("name", added_names(subject, self._known)),
            ("number", self._unsaid_numbers(text)),
            ("unit", units),
            ("moved", moved(self._said, text)),
        ):
            yield from ((check, f"it says {one}, which no message says") for one in found)

    def _unsaid_numbers(self, text: str) -> Iterator[str]:
        """The numbers and dates that nobody said: small ones may be counted where none is said, years reckoned."""
        times = find_times(text[:MAX_CHARACTERS], self.turn.at)
        rest = text
        for when in reversed(times):
            rest = f"{rest[: when.span[0]]} {rest[when.span[1] :]}"
            if not self._has_time(when.first, when.last):
                yield f"{when.first:%Y-%m-%d}"
        own, near = read(rest), [read(self.sentence), read(self.asked)]
        counts = [one for reading in near for one in reading.details if one[0].isdigit()]
        has_years = any("year" in reading.claimed for reading in (*near, own))
        said, digits = (
            frozenset().union(*(read(one).details for one in self._known)),
            re.sub(r"\D", "", " ".join(self._said)),
        )
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
        found = [when for one in near for way in (-1, 1) for when in find_times(one, self.turn.at, way)]
        is_near = any(when.first - _DAY <= last and first <= when.last + _DAY for when in found)
        return first <= self.turn.at.date() <= last or is_near or (not found and any(map(tells_time, self._said)))

    def _turned(self, text: str, certainty: str | None) -> Iterator[tuple[str, str]]:
        """What turns the sense of the sentences: what they deny is affirmed, what they suppose is stated."""
        own, names = read(text), frozenset().union(*(read(name).words for name in self.turn.speakers))
        said = [*clauses_of(self.sentence)]
        clauses = [*said, *clauses_of(self.asked)]
        shared = [len(_starts(one.words - names) & _starts(own.words)) for one in clauses]
        # In scripts whose verbs have other forms ("ем", "ест") any word of the denial tells.
        is_foreign = main_script(self.sentence) not in ("LATIN", "CJK", "") and not own.is_negative
        is_denied = is_said = False
        for clause, words in zip(clauses, shared, strict=True):
            if words or not any(shared):
                denied = (word for one in clause.denials if is_foreign and clause.denies for word in one.reached)
                is_contrary = contrary(clause, own) or not frozenset(own.stems).isdisjoint(denied)
                is_denied = is_denied or is_contrary
                is_said = is_said or (not is_contrary and _starts(own.words - names) <= _starts(clause.words))
        if is_denied and not is_said:
            yield "polarity", "it says the contrary of its excerpt"
        former = _FORMER.search(self.sentence)
        if former and not own.is_negative and _PRESENT.get(former[1], f"{former[1]}s") in own.tokens:
            yield "polarity", "it says of today what is over"
        if _QUESTION.search(self.sentence) and not _speaks_of_user(self.sentence):
            yield "question", "its excerpt only asks"
        # Own words: whoever asks may suppose what they like.
        most, nearest = max(zip(shared, said, strict=False), key=itemgetter(0), default=(0, own))
        is_stated = certainty not in ("weak", "speculation") and not has_condition(text)
        if is_stated and (most or not any(shared)) and is_supposed(nearest, self.sentence):
            yield "hypothetical", "it states as a fact what was only supposed"


def _starts(words: frozenset[str]) -> set[str]:
    return {word[:3] for word in words}  # "fumo", "fuma"


def other_person(sentence: str, speakers: tuple[str, ...] = ()) -> str:
    """Whom a sentence without "I" or "me" is about, in its words: "sister" of "My sister is vegan", "Tom"; or ""."""
    reading = read(sentence)
    if not reading.is_spaced:
        found = TIE_SIGNS.search(sentence)
        return found[1] if found and not OWN_SIGNS.search(TIE_SIGNS.sub(" ", sentence)) else ""
    tokens = [token.casefold() for token in reading.tokens]
    if not WORDS["first_person"].isdisjoint(read(_TOLD.sub(" ", sentence.casefold())).tokens):
        return ""
    if next((word for word in tokens if word not in _OPENING), "") in WORDS["my"]:
        owned = [next(iter(tokens[at + 1 :]), "") for at, word in enumerate(tokens) if word in WORDS["my"]]
        is_being = any(ties_in(sentence)) or not WORDS["other_ties"].isdisjoint(owned)
        return " ".join(owned) if is_being else ""
    first = next(iter(reading.tokens), "")
    is_name = first[:1].isupper() and is_first_name(first.casefold()) and WORDS["my"].isdisjoint(tokens)
    is_other = is_name and not any(has_words(one, first) for one in speakers)
    return first if is_other or first.casefold() in WORDS["other_ties"] else ""


def is_quotation(content: str, excerpt: str, text: str, speakers: tuple[str, ...]) -> bool:
    """Whether a fact rests on words in quotes, and the words around these are of somebody else than the speaker.

    The excerpt is quoted as a whole, or the fact has words of the quotes in it and none that only stand around these.
    Around a quote is its sentence, or all of the message where the sentence is in the quote.
    """
    quotes = [*_QUOTED.finditer(content)]
    rest = _QUOTED.sub(lambda one: " " * len(one[0]), content)
    words = excerpt.strip(_QUOTE_MARKS)
    places = [one.span() for one in re.finditer(re.escape(words), content)] or [
        one.span() for one in quotes if has_words(one[0], words)
    ]
    own = read(text).told - frozenset().union(*(read(name).told for name in speakers))
    for start, end in places:
        touched = [one for one in quotes if one.start() < end and start < one.end()]
        if not touched:
            return False
        first, last = touched[0].start(), touched[-1].end()
        begin = max((one.end() for one in _STOP.finditer(rest, 0, first)), default=0)
        is_sentence = _STOP.search(content[last - 2 : last]) and content[last:].lstrip()[:1].isupper()
        stop = _STOP.search(rest, last)
        until = last if is_sentence else stop.start() if stop else len(rest)
        around = rest[min(start, begin) : max(end, until)]
        around = _TO_SPEAKER.sub(" ", around if read(around).tokens else rest)
        if _speaks_of_user(around) and not other_person(around, speakers):
            return False
        quoted = frozenset().union(*(read(one[0]).told for one in touched))
        is_whole = any(has_words(one[0], words) for one in touched)
        if not is_whole and (own.isdisjoint(quoted) or own & read(around).told - quoted):
            return False
    return bool(places)


def _speaks_of_user(text: str) -> bool:
    """Whether a text has a word of the first person."""
    return any(token.casefold() in _OWN_WORDS for token in read(text).tokens) or OWN_SIGNS.search(text) is not None


def answer_fault(kind: ShortAnswer, text: str, source: Source) -> str:
    """What is wrong with a fact whose excerpt is a bare answer, or ""."""
    own, asked = read(text), read(source.asked)
    if kind == "open":
        return "it rests on words that neither confirm nor deny"
    if not source.asked:
        return "it rests on a bare answer, and nothing was asked just before"
    told = own.words - frozenset().union(*(read(name).words for name in source.turn.speakers))
    is_comparable = bool(asked.words) and main_script(text) == main_script(source.asked)
    if is_comparable and told.isdisjoint(asked.words):
        return "it says something else than what was asked just before"
    if kind == "no" and not own.is_negative and not asked.is_negative:
        return "it affirms what the answer denies"
    if kind == "yes" and own.denies and not asked.is_negative:
        return "it denies what the answer affirms"
    return ""


@dataclass(frozen=True, slots=True)
class _EvidenceMessage:
    """A message that facts may rest on, also as a comparable text, and the question that it answers, or ""."""

    message: Message
    comparable: str
    asked: str

    def sentences(self, excerpt: str) -> str:
        found = [
            one
            for one in sentences_of(self.message.content)
            if has_words(one, excerpt) or has_words(excerpt, one.strip(_MARKS))
        ]
        return " ".join(found) or self.message.content


CHECKED: Final = ("key", "value", "subject", "event_time", "valid_until", "certainty")
"""The fields of a fact that are judged beside its text."""
_MARKS: Final = " .!?…,;:\u3002\uff01\uff1f\"'"
_QUESTION_MARKS: Final = frozenset("?\uff1f؟")


class Evidence:
    """What the messages of a turn say, but for recalled memory, and what they answer."""

    def __init__(self, task: ExtractionTask) -> None:
        self.task = task
        self.said = tuple(
            _EvidenceMessage(message, comparable_text(message.content), asked)
            for message, asked in with_questions(task.turn, task.background.messages)
        )
        turn, background = task.turn, task.background
        named = (turn.speaker, turn.scope.user_id, *(one.name for one in turn.messages), "the user")
        self.speakers = tuple(filter(None, named))
        self.texts, self.at = tuple(one.message.content for one in self.said), turn.occurred_at
        earlier = (one for one in background.messages if one.role != "assistant")
        self.names = (  # which may say who "he" is
            *turn.recalled,
            *(text for one in earlier for text in (one.content, one.name or "")),
            *background.names,
            *(name for entity in background.entities for name in (entity.name, *entity.names)),
        )

    def support(self, text: str, excerpt: str, **fields: Any) -> tuple[Sequence[Message], list[FieldFault]]:
        """The messages that say the excerpt and from which a fact follows, and what is wrong with its fields.

        Without such a message what is wrong with the fact as a whole. `fields` are those of the reply: `value`,
        `subject`, `event_time`, `valid_until`, `certainty`.
        """
        said_in = self.messages_of(text, excerpt)
        found = [(one, [*self._faults(text, excerpt, one, **fields)]) for one in said_in]
        sound = [(one, faults) for one, faults in found if not any(fault.field == "text" for fault in faults)]
        return [one.message for one, _ in sound], next((faults for _, faults in sound or found), [])

    def _faults(self, text: str, excerpt: str, message: _EvidenceMessage, **fields: Any) -> Iterator[FieldFault]:
        kind, subject = short_answer(excerpt), fields.get("subject") or ""
        is_named = bool(subject) and not is_user_word(subject)
        is_of_user = not is_named or normalise(subject) in map(normalise, self.speakers)
        is_asked = kind is not None or not _QUESTION_MARKS.isdisjoint(message.asked)
        source = Source(message.sentences(excerpt), message.asked if is_asked else "", self)
        # Of a line of a transcript a name with digits in it states no number.
        lines = (f"{' '.join(name.split())}: " for name in self.speakers)
        own = next((text.removeprefix(line) for line in lines if text.startswith(line)), text)
        if kind is not None and (fault := answer_fault(kind, own, source)):
            yield FieldFault("text", "answer", fault)
        speaker = other_speaker(self.task.turn, [message.message], excerpt)
        is_of_another = speaker is not None and is_named and normalise(subject) != normalise(speaker)
        if is_of_user and (is_of_another or is_quotation(message.message.content, excerpt, own, self.speakers)):
            yield FieldFault("text", "quoted", "its excerpt is what somebody else said")
        yield from source.faults(own, excerpt, is_answer=kind is not None, is_of_user=is_of_user, **fields)

    def messages_of(self, text: str, excerpt: str) -> Sequence[_EvidenceMessage]:
        """The messages with the excerpt of a fact, not only within recalled text; those with a question come first.

        A bare yes or no begins a sentence there.
        """
        comparable = comparable_text(excerpt)
        if not comparable:
            return ()
        hiding = copied_texts(self.task.turn.recalled, text, comparable)
        found = [one for one in self.said if has_words(without_texts(one.comparable, hiding), comparable)]
        if short_answer(excerpt):
            found = [one for one in found if begins_sentence(one.comparable, comparable)]
        return sorted(found, key=lambda one: not one.asked)

    def absence_reason(self, excerpt: str) -> str:
        comparable = comparable_text(excerpt)
        if comparable and any(comparable in one.comparable for one in self.said):
            return "is recalled memory, which is no evidence" if self.task.turn.recalled else "is only a part of a word"
        others = [one.content for one in self.task.turn.messages if one.role == "assistant"]
        if comparable and any(comparable in comparable_text(content) for content in others):
            return "is what the assistant says: the words of the user are the evidence"
        return "occurs in no message"


def with_questions(turn: Turn, earlier: Sequence[EarlierMessage]) -> Iterator[tuple[Message, str]]:
    """The messages that facts may rest on, each with the question in somebody else's message right before it, or ""."""
    before: Message | EarlierMessage | None = earlier[-1] if earlier else None
    for message in shown_messages(turn):
        if message.role != "assistant":
            can_ask = False
            if before is not None and message.role == "user":
                own, other = (normalise(one.name or turn.speaker or "") for one in (message, before))
                can_ask = before.role == "assistant" or (before.role == "user" and own != other)
            yield message, asked_part(before.content) if before and can_ask else ""
        before = message


def is_said(name: str, said: Sequence[str]) -> bool:
    """Whether the name was said; of "Alice's brother Tom" what was said is "my brother Tom", or "Tom"."""
    if any(has_words(text, name) for text in said):
        return True
    spoken = read_name(name)
    if spoken is None or spoken.tie is None:
        return False
    if spoken.name:
        return any(has_words(text, spoken.name) for text in said)
    return any(spoken.tie == tie for text in said for tie, _ in ties_in(text))
