"""What the messages of a turn say, and whether a fact of a model's reply follows from it.

A fact says nothing that nobody said: no other words, names, numbers, units or times. It denies, supposes and ends what
its clause does, and is about whom its clause is about. Each check refuses at least nine harmful facts for an honest one
(`tests/quality/reply_checks.py`). A sentence is read once for all facts that rest on it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import dropwhile, islice, pairwise, takewhile
from typing import Any, Final, NamedTuple

from mnemolog.schemas.base import normalise
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.names import is_first_name, read_name, ties_in
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.text.assertions import UNTIL, contrary, moved, strange_names
from mnemolog.streams.text.differences import USER, WORDS_FOR_USER, copied_texts, is_user_word
from mnemolog.streams.text.readings import (
    Reading,
    has_condition,
    is_content,
    is_english,
    is_number,
    is_supposed,
    main_script,
    read,
    start_of,
    starts_of,
    stem_of,
    tells_time,
)
from mnemolog.streams.text.short_answers import asked_part, begins_sentence, sentences_of, short_answer
from mnemolog.streams.text.times import MAX_CHARACTERS, find_times, possible_times
from mnemolog.streams.text.tokens import (
    CLAUSE_ENDS,
    CONJUNCTIONS,
    DATES,
    NEGATIONS,
    OWN_SIGNS,
    PATTERNS,
    QUOTES,
    SIZES,
    TENSES,
    TIE_SIGNS,
    TOPIC,
    UNITS,
    WORDS,
    comparable_text,
    has_words,
    numbers_of,
    whole_words,
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

    An excerpt may begin with the name before its line.
    """
    head = _SPOKEN_LINE.match(excerpt)
    names: set[str | None] = set()
    for message in said_in:
        parts = list(_spoken(message))
        for name, text in parts:
            is_line = head is not None and name == head[1] and has_words(text, excerpt[head.end() :])
            names |= {name} if len(parts) == 1 or is_line or has_words(text, excerpt) else set()
    name = names.pop() if len(names) == 1 else None
    return name if name and normalise(name) != normalise(turn.speaker or "") else None


def _spoken(message: Message) -> Iterator[tuple[str | None, str]]:
    """What a message says, each part with who says it.

    The lines of a script are of the name before each of them, and so is one alone behind a first name.
    """
    found = list(_SPOKEN_LINE.finditer(message.content)) if message.role == "user" else []
    heads = Counter(line[1] for line in found)
    lines = [line for line in found if line[1][0].isupper() or heads[line[1]] >= MIN_SCRIPT_LINES]
    name = message.name if message.role == "user" else None
    if len(lines) < MIN_SCRIPT_LINES and not any(is_first_name(line[1].casefold()) for line in lines):
        yield name, message.content
        return
    yield name, message.content[: lines[0].start()]
    for line, end in zip(lines, (*(one.start() for one in lines[1:]), len(message.content)), strict=True):
        yield line[1], message.content[line.end() : end]


def shown_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages of the conversation: all but the application's own system prompts."""
    return tuple(message for message in turn.messages if message.role != "system")


def evidence_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages that facts may rest on: what the assistant says is none, even where the user agrees to it."""
    return tuple(message for message in shown_messages(turn) if message.role != "assistant")


_LARGEST_COUNT: Final = 12
"""Up to this a number may be said in a language of which the number words are not known."""
_NOTED_DATE: Final = re.compile(r" \(\d{4}-\d\d-\d\d[^)]*\)")
_MOMENT: Final = timedelta(microseconds=1)
_LONG: Final = 4  # digits of a number that may be written in another form
_CAUSE_WORDS: Final = 2  # of a cause are looked at
_CLOSE: Final = 0.05
"""How far an amount in another unit may be from what was said, as a part of that."""
_YEAR: Final = re.compile(r"(?:1[89]|20|21)\d\d")
_LONGEST_QUOTE: Final = 1000  # characters: else each mark without an end would be sought in all that follows
_QUOTED: Final = re.compile(
    "|".join(f"{begin}(.{{1,{_LONGEST_QUOTE}}}?){end}" for begin, end in QUOTES), re.DOTALL | re.MULTILINE
)
_QUOTE_MARKS: Final = " >" + "".join(sign for pair in QUOTES for sign in "".join(pair) if not sign.isascii()) + "\"'"
_STOP: Final = re.compile(r"[.!?…\n\u3002\uff01\uff1f]")
_QUESTION: Final = re.compile(r"^[^.!;:\u3002\uff01]*[?\uff1f\u061f]\W*$")
_OWN_WORDS: Final = WORDS["first_person"] | WORDS["my"]
_PASTS: Final = frozenset().union(*(past for past, _ in TENSES))
_UNITS: Final = frozenset(UNITS.values())
_MEASURES: Final = frozenset(map(stem_of, {*WORDS["habits"], *UNITS, *DATES}))
_ENDS: Final = CLAUSE_ENDS | CONJUNCTIONS | WORDS["alternatives"] | WORDS["contrast"] | {"while", "whereas"}
_STATING: Final = WORDS["first_person"] | WORDS["auxiliaries"] | WORDS["people"] | {"it", "es", "il"}
_IS: Final = frozenset({"is", "are", "am", "was", "were"})
_SKIPPED: Final = frozenset({"well", "and", "but", "so", "и", ","})
_BEFORE_SOMEBODY: Final = WORDS["my"] | WORDS["articles"] | WORDS["quantifiers"]
_AVERSIONS: Final = frozenset(map(stem_of, WORDS["aversions"]))
_ALL: Final = re.compile(r"all|alle[ns]?|(?:any|every)(?:one|body|thing|where)?|jede\w*|tod[oa]s?|tou(?:s|te?s?)")
_PERFECT: Final = re.compile(r"\bhe \w+(?:[ai]do|cho|[iors]to|[lr]to)\b")
"""Spanish "he" is "have"."""
_MARKS: Final = " .!?…,;:\u3002\uff01\uff1f\"'"
_QUESTION_MARKS: Final = frozenset("?\uff1f؟")
CHECKED: Final = ("key", "value", "subject", "event_time", "valid_until", "certainty")
"""The fields of a fact that are judged beside its text."""


class FieldFault(NamedTuple):
    """What is wrong with a field of a fact, or with all of it (`text`): the name of the check, and words for it."""

    field: str
    check: str
    what: str


@dataclass(frozen=True)
class EvidenceMessage:
    """A message that facts may rest on, and the question that it answers, or ""."""

    message: Message
    asked: str

    @cached_property
    def comparable(self) -> str:
        return comparable_text(self.message.content)

    @cached_property
    def sentences(self) -> tuple[tuple[str, str], ...]:
        """Its sentences, each also as a comparable text."""
        return tuple((one, comparable_text(one)) for one in sentences_of(self.message.content))


class Clause(NamedTuple):
    """A clause of a sentence; `head` is the denial before a list that it may go on with ("I avoid" of "and milk").

    `others` are the words for whom it is about, if that is not its speaker; `whom` has also names that are in no list,
    and `USER`; `is_contrast`: "but" stands before it.
    """

    said: Reading
    head: tuple[str, ...]
    others: frozenset[str]
    whom: frozenset[str]
    is_contrast: bool = False

    @property
    def details(self) -> frozenset[str]:
        """What it says of these: the beginnings of its content words and its numbers, but for its verb."""
        about = WORDS["first_person"] if USER in self.whom else self.whom
        begin = next((at for at, word in enumerate(self.said.lower) if word in about), 0)
        lower = tuple(dropwhile(about.__contains__, self.said.lower[begin:]))
        verb = next((at for at, one in enumerate(lower) if one not in WORDS["auxiliaries"] and one[-2:] != "ly"), 0)
        is_verb = len(lower) > 1 and (not verb or lower[verb - 1] not in _IS or lower[verb].endswith("ing"))
        told = self.said.tokens[len(self.said.tokens) - len(lower) + verb + is_verb :]
        return _details(Reading(" ".join(told), told))

    def points_at(self, whom: frozenset[str]) -> bool:
        """Whether it has a word for one of these, or for what was said before."""
        words = WORDS["pronouns"] | whom | (WORDS["first_person"] if USER in whom else frozenset())
        return not words.isdisjoint(self.said.lower)

    def in_list(self, told: frozenset[str]) -> Reading:
        """The clause with the denial before it, if it only goes on with a list for a text that tells this."""
        if self.head and (len(self.said.tokens) == 1 or self.said.starts < told):
            tokens = (*self.head, *self.said.tokens)
            return Reading(" ".join(tokens), tokens)
        return self.said


class Told(NamedTuple):
    """A text of a fact, what it tells but for names of speakers, in stems and their beginnings, and if of the user."""

    own: Reading
    words: frozenset[str]
    starts: frozenset[str]
    is_users: bool


class Source:
    """What a fact may come from: the sentences of its excerpt, the question that these answer, and the whole turn."""

    def __init__(self, turn: "Evidence", said: EvidenceMessage, excerpt: str) -> None:
        self.turn, self.excerpt, self.message, self.answer = turn, excerpt, said.message, short_answer(excerpt)
        words = comparable_text(excerpt)
        found = [
            (one, plain)
            for one, plain in said.sentences
            if _is_within(words, plain) or _is_within(plain.strip(_MARKS), words)
        ]
        self.sentence = " ".join(one for one, _ in found) or said.message.content
        is_answer = self.answer and not PATTERNS["acknowledged"].match(excerpt)
        self.asked = said.asked if is_answer or not _QUESTION_MARKS.isdisjoint(said.asked) else ""
        self.reading, self.question = read(self.sentence.replace(" & ", ", ")), read(self.asked)
        self.near = read(f"{self.sentence}\n{self.asked}") if self.asked else self.reading

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        return tuple(_clauses(self.reading, self.turn.speaker_tokens))

    def _days_in(self, text: str) -> tuple[tuple[date, date], ...]:
        """The days that a text names, in both directions of time."""
        return tuple((when.first, when.last) for when in possible_times(text[:MAX_CHARACTERS], self.turn.at))

    @cached_property
    def _days(self) -> tuple[tuple[date, date], ...]:
        return self._days_in(self.sentence) + (self._days_in(self.asked) if self.asked else ())

    def faults(self, text: str, **fields: Any) -> Iterator[FieldFault]:
        """What is wrong with a fact, as far as its text and the `CHECKED` fields of the reply go.

        A text in the very words of its sentence says nothing contrary; it may only ask or suppose.
        """
        subject = fields.get("subject") or ""
        said = next((text[len(line) :] for line in self.turn.lines if text[: len(line)].casefold() == line), text)
        told = self._told(said, subject)
        is_as_said = comparable_text(_NOTED_DATE.sub("", said)) == comparable_text(self.sentence)
        checks = [self._unsaid_names("subject", read(subject), self.turn.known), self._quoted(told, subject)]
        checks += [] if is_as_said else [self._unsaid(told.own)]
        if self.answer:
            checks.append(self._misread_answer(told.own))
        elif not self.is_wish:
            checks.append(self._turned(told, fields.get("certainty"), is_as_said=is_as_said))
        yield from (FieldFault("text", check, what) for found in checks for check, what in found)
        for field in ("key", "value"):
            named = read((fields.get(field) or "").replace("_", " "))
            others = (f"it says {one}" for one in (*self._unsaid_numbers(named), *self._other_units(named)))
            yield from (FieldFault(field, "value", what) for what in islice(others, 1))
        if what := next(self._unsaid_value(told, fields.get("key"), fields.get("value")), ""):  # a slot without is none
            yield from (FieldFault(field, "value", what) for field in ("key", "value"))
        for field in ("event_time", "valid_until"):
            if (moment := fields.get(field)) is not None:
                day = moment.astimezone(self.turn.at.tzinfo)
                last_moment = day - _MOMENT if field == "valid_until" else day  # until Friday: 00:00 of Saturday
                if not self._has_time(last_moment.date(), day.date()):
                    yield FieldFault(field, "time", "nobody named this time")

    def _unsaid_value(self, told: Told, key: str | None, value: str | None) -> Iterator[str]:
        """What of a value is not of now: only what was known before says it, or it was left, denied or excepted.

        Other words than these for what is said now may be honest: "thief" of who stole.
        """
        named, slot, own = read(value or ""), read((key or "").replace("_", " ")), told.own
        yield from (what for _, what in self._unsaid_names("value", named, self.turn.texts, own))
        if not named.starts:
            return
        said = self.turn.texts.starts | self.question.starts | own.starts
        if named.starts.isdisjoint(said) and named.starts <= self.turn.before:
            yield f"it says {value}, which was said before"
        denying = NEGATIONS.intersection(own.tokens)  # no "Not" of a name
        if named.starts <= self.reading.left_behind:
            yield f"it says {value}, which was left"
        reached = [starts_of(one.reached) for one in own.denials if one.word in denying]
        denied = [one for one in reached if named.starts <= one and len(one - named.starts) <= 1]  # beside a verb
        is_aversion = slot.denies or not _AVERSIONS.isdisjoint(slot.stems)
        if len(denied) % 2 and not (own.ending or named.is_negative or is_aversion or "than" in own.lower):
            yield f"it says {value}, which its text denies"
        if not (own.is_negative or named.claimed) and named.starts <= self._lesser("outdone", "excepted"):
            yield f"it says {value}, which comes after another, or is no part of all"

    def _told(self, text: str, subject: str) -> Told:
        own, turn = read(text), self.turn
        words = frozenset(own.stems) - _MEASURES if own.is_spaced else own.signs
        words = frozenset(one for one in words - turn.speaker_words if not one.startswith(turn.speaker_starts))
        if own.is_spaced:
            named = next((at for at, word in enumerate(own.lower) if word not in turn.speaker_tokens), len(own.lower))
            begins = not turn.speaker_names.isdisjoint(own.lower[:named]) and own.lower[named : named + 1] != ("s",)
            is_subject = is_user_word(subject) or normalise(subject) in turn.speaker_keys
            is_users = begins or (is_subject and turn.speaker_tokens.isdisjoint(own.lower))
        else:
            rests = (text.removeprefix(one).strip() for one in turn.speakers if text.startswith(one))
            is_users = next(rests, "的")[:1] not in ("の", "的")
        return Told(own, words, starts_of(words), is_users)

    def _unsaid_names(self, check: str, own: Reading, *known: Reading) -> Iterator[tuple[str, str]]:
        if own.names or not own.is_spaced:
            said = frozenset(self.question.lower).union(*(one.lower_set for one in known))
            signs = self.turn.signs.union(self.asked)
            for name in strange_names(own, said, signs, self.reading.lower):
                yield check, f"it says {name}, which no message says"

    def _quoted(self, told: Told, subject: str) -> Iterator[tuple[str, str]]:
        """Whether what is said of the user is said by somebody else."""
        is_named = bool(subject) and not is_user_word(subject)
        if is_named and normalise(subject) not in self.turn.speaker_keys:
            return
        speaker = other_speaker(self.turn.task.turn, [self.message], self.excerpt)
        is_of_another = speaker is not None and is_named and normalise(subject) != normalise(speaker)
        if is_of_another or is_quotation(self.message.content, self.excerpt, told.own, self.turn):
            yield "quoted", "its excerpt is what somebody else said"

    def _unsaid(self, own: Reading) -> Iterator[tuple[str, str]]:
        """Words, names, amounts, habits and causes of a text that nobody said."""
        turn, source = self.turn, f"{self.excerpt} {self.asked}"
        bare = " ".join(token for token in own.tokens if stem_of(token) not in turn.speaker_words)
        scripts, languages = (main_script(bare), main_script(source)), (is_english(own.text), is_english(source))
        if (all(scripts) and scripts[0] != scripts[1]) or (None not in languages and languages[0] != languages[1]):
            yield "translation", "it is in another language than its excerpt"
            return
        told = own.words - turn.speaker_words
        is_strange = not self.answer and told.isdisjoint(self.near.words)
        if is_strange and not told & turn.words_of(asked=False) and told & turn.words_of(asked=True):
            yield "words", "only a question or the assistant says this"
        yield from self._unsaid_names("name", own, turn.known)
        causes = PATTERNS["cause"].split(" ".join(own.lower))[1:]
        words = turn.known.words | turn.known.signs | self.question.words
        habits = WORDS["habits"].intersection(own.lower)
        is_once = habits and not self.near.is_negative and WORDS["habits"].isdisjoint(self.near.lower)
        for check, found in (
            ("number", self._unsaid_numbers(own)),
            ("unit", self._other_units(own)),
            ("moved", moved((turn.texts, self.question), own)),
            ("habit", habits if is_once and self._days else ()),
            ("cause", (one for one in causes if words.isdisjoint(map(start_of, read(one).stems[:_CAUSE_WORDS])))),
        ):
            yield from ((check, f"it says {one}, which no message says") for one in found)

    def _unsaid_numbers(self, own: Reading) -> Iterator[str]:
        """The numbers and dates that nobody said: the things of a list may be counted, years and clocks reckoned."""
        times, rest = find_times(own.text[:MAX_CHARACTERS], self.turn.at), own
        if times:
            words = own.text
            for when in reversed(times):
                words = f"{words[: when.span[0]]} {words[when.span[1] :]}"
            rest = read(words)
        yield from (f"{when.first:%Y-%m-%d}" for when in times if not self._has_time(when.first, when.last))
        named = {DATES.get(token.casefold(), "") for token in rest.tokens if token[0].isupper()} - {""}
        strange = rest.claimed | named
        strange = strange and strange - self.turn.known.details - self.question.details
        if not strange:
            return
        counts = [one for one in self.near.details if one[0].isdigit()]
        largest = _LARGEST_COUNT if is_english(self.sentence) is None else len(self.reading.clauses)
        for number in sorted(strange):
            if number.startswith(("month ", "weekday ")):
                is_said = any(self._has_time(*days) for days in self._days_in(own.text))
            else:
                is_said = (
                    not number.lstrip("-")[:1].isdigit()
                    or number == "1"
                    or (not counts and number.isdigit() and int(number) <= largest)
                    or any(_is_since(self.turn.at, *pair) for one in counts for pair in ((number, one), (one, number)))
                    or (len(number) >= _LONG and number in self.turn.digits)  # "5550100" for "555-0100"
                    or (":" in number and bool(counts))
                    or any(number == converted for _, converted in self._converted(own))
                )
            if not is_said:
                yield number

    def _other_units(self, own: Reading) -> Iterator[str]:
        """The units that nobody said where one that was said is lost: "kilometres" of "20 minutes"."""
        near, units = self.near.claimed & _UNITS, own.claimed & _UNITS
        if near - units and not any(self._converted(own)):
            yield from sorted(units - self.turn.texts.claimed - self.question.claimed)

    def _converted(self, own: Reading) -> Iterator[tuple[str, str]]:
        """The amounts of a text that were said in another unit of their kind: "8 km" of "five miles"."""
        for kind, size, number in _amounts(own):
            for other, said, words in _amounts(self.near):
                if kind == other and words != number and abs(size - said) <= _CLOSE * said:
                    yield words, number

    def _has_time(self, first: date, last: date) -> bool:
        """Whether these days have that of the turn, or one of the sentence, or a time is told that cannot be read."""
        if self._days and not first <= self.turn.at.date() <= last:
            return any(begin <= last and first <= end for begin, end in self._days)
        return first <= self.turn.at.date() <= last or tells_time(self.turn.texts) or tells_time(self.question)

    def _turned(self, told: Told, certainty: str | None, *, is_as_said: bool) -> Iterator[tuple[str, str]]:
        """What turns the sense of the clauses with most words of a text: of somebody else, denied, over or supposed."""
        own, said = told.own, [one.in_list(told.starts) for one in self.clauses]
        asked = () if self.reading.is_negative else self.question.clauses
        shared = [(len(one.starts & told.starts), one) for one in (*said, *asked)]
        most = max((words for words, _ in shared), default=0)
        nearest = [one for words, one in shared if words == most]
        if not is_as_said:
            yield from self._of_another(told)
            if self._is_swapped(told):
                yield "swapped", "it says of one what its excerpt says of another"
            if self._ignores_exception(told):
                yield "exception", "it says of all what its excerpt says of all but some"
            is_negative = self.reading.left_behind or own.is_negative or any(one.is_negative for _, one in shared)
            if is_negative and not self._is_elliptic(own):
                yield from self._opposed(told, shared, nearest, most)
        yield from self._unstated(told)
        # Own words: whoever asks may suppose what they like.
        near = next((one for one in nearest if one not in asked), None if most else own)
        if near is not None and certainty not in ("weak", "speculation"):
            if near in said[1:] and any("zu" in word for word in near.lower):  # "versucht, damit aufzuhören"
                near = Reading("", (*said[said.index(near) - 1].tokens, *near.tokens))
            attempt = PATTERNS["attempt"].search(" ".join(near.lower))
            is_attempt = attempt is not None and not any(word.startswith(attempt[0][:_LONG]) for word in own.lower)
            if (is_attempt or is_supposed(near, self.reading)) and not has_condition(own.text):
                yield "hypothetical", "it states as a fact what was only supposed"

    def _unstated(self, told: Told) -> Iterator[tuple[str, str]]:
        """Whether its sentence only asks, requests, greets or thanks, and the text tells no more than that."""
        own, others = told.own, told.starts - self.reading.starts
        if self._is_small_talk and others.isdisjoint(self.turn.texts.starts | self.question.starts):
            yield "small talk", "its excerpt only greets, thanks or praises an answer"
        elif told.is_users and self._is_request:
            yield "request", "its excerpt only asks for something to be done"
        elif self.is_question and WORDS["reports"].isdisjoint(own.lower) and not has_condition(own.text):
            yield "question", "its excerpt only asks"

    @cached_property
    def _is_small_talk(self) -> bool:
        """Whether a sentence greets, thanks or praises an answer, and does nothing else."""
        talk = PATTERNS["small_talk"]
        return bool(self.clauses) and all(talk.fullmatch(" ".join(one.said.lower)) for one in self.clauses)

    @cached_property
    def _is_request(self) -> bool:
        """Whether a sentence asks for something to be done, and tells nothing of its speaker beside."""
        request = PATTERNS["request"].match(words := " ".join(self.reading.lower))
        beside = PATTERNS["to_speaker"].sub(" ", words[request.end() :]) if request else ""
        return request is not None and not _speaks_of_user(read(beside))

    @cached_property
    def is_wish(self) -> bool:
        """Whether a sentence tells by a wish what is so: "I wish I did not work on Sundays"."""
        return self.reading.denies and PATTERNS["wish"].search(" ".join(self.reading.lower)) is not None

    @cached_property
    def is_question(self) -> bool:
        """Whether a sentence asks, and tells nothing of its speaker beside: "Should I get a cat?"."""
        if _QUESTION.search(self.sentence) is None:
            return False
        return not _speaks_of_user(read(PATTERNS["asking"].sub(" ", " ".join(self.reading.lower))))

    def _opposed(
        self, told: Told, shared: Sequence[tuple[int, Reading]], nearest: Sequence[Reading], most: int
    ) -> Iterator[tuple[str, str]]:
        own = told.own
        opposed = [one for words, one in shared if (words or not most) and _is_opposed(one, told)]
        is_said = any(one not in opposed and told.starts <= one.starts for _, one in shared)
        if (opposed and not is_said) or (not own.is_negative and all(_denies(one, told) for one in nearest)):
            yield "polarity", "it says the contrary of its excerpt"
        elif not (own.is_negative or is_past(own)):
            is_left = not told.starts.isdisjoint(self.reading.left_behind) and "from" not in own.lower
            if is_left or (most and all(_is_over(one, told) for one in nearest)):
                yield "over", "it says of today what is over"

    def _of_another(self, told: Told) -> Iterator[tuple[str, str]]:
        """Whether a text says of one what its clauses say of another, or turns around who does what to whom."""
        own, strange = told.own, told.starts - self.near.starts
        theirs = told.starts - starts_of(word for one in self.clauses for word in one.others)
        shared = [(len(one.said.starts & theirs), one) for one in self.clauses]
        most = max((words for words, _ in shared), default=0)
        nearest = [one for words, one in shared if words == most]
        others = frozenset().union(*(one.others for one in nearest))
        if not strange and (self._is_reversed(own) or any(self._is_turned_around(one.said, own) for one in nearest)):
            yield "swapped", "it turns around who does what to whom"
        elif told.is_users and all(one.others for one in nearest) and not _mentions(own, others):
            is_tie = not others.isdisjoint(WORDS["other_ties"]) or any(ties_in(self.sentence))
            if len(strange) <= is_tie and not self._is_elliptic(own):
                yield "subject", f"its excerpt is about somebody else ({', '.join(sorted(others))})"

    def _is_swapped(self, told: Told) -> bool:
        """Whether a text says of one what clauses say of others alone: of "Ana sings and Leo dances", "Leo sings".

        It has nothing of the clauses about those that it names, but for their verbs, and these point at no other one.
        """
        is_plain = told.own.is_spaced and _QUOTED.search(self.sentence) is None
        led = [one for one in self.clauses if one.whom] if is_plain else []
        mine = [one for one in led if (USER in one.whom and told.is_users) or _mentions(told.own, one.whom)]
        whom = frozenset().union(*(one.whom for one in mine))
        others = [one for one in led if one not in mine and not one.points_at(whom)]
        if not (mine and others) or any(not one.details or one.points_at(frozenset()) for one in mine):
            return False
        details, own = _details(told.own) - starts_of(whom), frozenset().union(*(one.details for one in mine))
        theirs = frozenset().union(*(one.details for one in others))
        known = frozenset().union(*(_details(one.said) for one in self.clauses if one not in others))
        # Three letters in common may be chance: "happened", "happiness".
        said = frozenset().union(*((*one.said.stems, *one.said.claimed) for one in others))
        is_said = not said.isdisjoint((*told.own.stems, *told.own.claimed))
        return is_said and details.isdisjoint(own) and not details.isdisjoint(theirs - known)

    def _lesser(self, *patterns: str) -> frozenset[str]:
        return frozenset() if self.reading.denies else frozenset().union(*map(self.reading.named_by, patterns))

    def _ignores_exception(self, told: Told) -> bool:
        """Whether a text says of all, or of what is excepted, what holds for all but that: "anything but beer"."""
        own, excepted = told.own, self._lesser("excepted")
        if not excepted or own.is_negative or not WORDS["exceptions"].isdisjoint(own.lower):
            return False
        return not excepted.isdisjoint(own.starts) or any(map(_ALL.fullmatch, own.lower))

    def _is_reversed(self, own: Reading) -> bool:
        """Whether a text has on the two sides of a word what its sentence has on the other: "from Oslo to Rome"."""
        both = self.reading, own
        for word in WORDS["directed"]:
            if any(one.lower.count(word) != 1 for one in both):
                continue
            before, behind, left, right = (
                [details for token in part if (details := _details(Reading(token, (token,))))]
                for one in both
                for at in [one.lower.index(word)]
                for part in (one.tokens[:at], one.tokens[at + 1 :])
            )
            is_left = any(one in behind and one not in before for one in left)
            if is_left and right and right[0] in before and right[0] not in behind:
                return True
        return False

    def _is_elliptic(self, own: Reading) -> bool:
        """Whether a clause without words of its own says as much of whom a text is about: "so do I", "but Leo did"."""
        for before, after in pairwise(self.clauses):
            is_name_alone = len(after.said.tokens) > len(after.others) and after.said.starts <= starts_of(after.others)
            if is_name_alone and (_is_own(after.said) or _mentions(own, after.others)):
                return own.is_negative == (before.said.is_negative != (after.is_contrast or after.said.denies))
        return False

    def _is_turned_around(self, clause: Reading, own: Reading) -> bool:
        """Whether user and somebody else stand in another order in a text than in its clause ("Nina lent me ...")."""
        people = (clause.names | own.names) - self.turn.speaker_names
        people |= {word for before, word in pairwise(clause.lower) if before in WORDS["my"] and is_content(word)}
        said, told = _place(clause.lower, WORDS["first_person"]), _place(own.lower, self.turn.speaker_names)
        for name in people if min(said, told) >= 0 else ():
            said_of, told_of = _place(clause.lower, {name}), _place(own.lower, {name})
            if min(said_of, told_of) >= 0 and (said < said_of) != (told < told_of):
                places = (clause, said_of), (clause, max(said, said_of)), (own, max(told, told_of))
                before = {word for text, place in places for word in text.lower[max(0, place - 2) : place]}
                return before.isdisjoint(WORDS["prepositions"])
        return False

    def _misread_answer(self, own: Reading) -> Iterator[tuple[str, str]]:
        """What is wrong with a fact whose excerpt is a bare answer."""
        kind, asked = self.answer, self.question
        told = own.words - self.turn.speaker_words
        is_comparable = bool(asked.words) and main_script(own.text) == main_script(self.asked)
        if kind == "open":
            yield "answer", "it rests on words that neither confirm nor deny"
        elif not self.asked:
            yield "answer", "it rests on a bare answer, and nothing was asked just before"
        elif is_comparable and told.isdisjoint(asked.words):
            yield "answer", "it says something else than what was asked just before"
        # "No" denies, whatever was asked; "yes" to a question that denies may mean both.
        elif own.denies and not asked.is_negative if kind == "yes" else not own.is_negative:
            yield "answer", "it denies what the answer affirms, or affirms what that denies"


def _is_since(at: datetime, year: str, count: str) -> bool:
    """Whether a year is so many years before or after a time."""
    return bool(_YEAR.fullmatch(year)) and count.isdigit() and abs(abs(at.year - int(year)) - int(count)) <= 1


def _place(words: Sequence[str], wanted: Collection[str]) -> int:
    """Where a word stands that is not in the genitive ("Rita's"); -1 for nowhere."""
    places = (at for at, word in enumerate(words) if word in wanted and words[at + 1 : at + 2] != ("s",))
    return next(places, -1)


def _is_within(words: str, text: str) -> bool:
    """Whether a comparable text has words that are comparable too."""
    return bool(words) and next(whole_words(words, text), None) is not None


def _parts(sentence: Reading) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The tokens between the ends of clauses, and whether an adversative stands behind them."""
    part: list[str] = []
    for token, word in zip(sentence.tokens, sentence.lower, strict=True):
        is_my = not part and word in WORDS["my"]  # "ma" is "my" and "but"
        if is_my or word not in _ENDS:
            part.append(token)
        else:
            yield tuple(part), word in WORDS["contrast"]
            part = []
    yield tuple(part), False


def _clauses(sentence: Reading, speakers: Collection[str]) -> Iterator[Clause]:
    """The clauses of a sentence; an adversative ends the list that a denial begins ("no meat, only fish")."""
    if not sentence.is_spaced:
        yield from (Clause(one, (), _others_by_signs(one.text), frozenset()) for one in sentence.clauses)
        return
    head: tuple[str, ...] = ()
    listed: frozenset[str] = frozenset()
    is_own = is_behind = False
    for part, is_contrast in _parts(sentence):
        if part:
            said = Reading(" ".join(part), part)
            is_statement = not _STATING.isdisjoint(said.lower)
            others = _others(said, speakers)
            is_name_alone = bool(others) and _details(said) <= starts_of(others)  # "Ana, Tom and Leo live ..."
            is_own = _is_own(said) or (is_own and is_name_alone)
            others = frozenset() if is_own else others | listed
            whom = frozenset({USER}) if is_own else others | _names_behind(said, others, sentence.names)
            yield Clause(said, () if is_statement or said.denials else head, others, whom, is_behind)
            listed = others if is_name_alone else frozenset()
            if said.denials:
                denying = {one.word for one in said.denials}
                last = max((at for at, one in enumerate(said.lower, 1) if one in denying), default=0)
                head = said.tokens[:last]
            elif is_statement:
                head = ()
        is_behind = is_contrast or (is_behind and not part)
        head = () if is_contrast else head


def _names_behind(clause: Reading, others: Collection[str], names: Collection[str]) -> frozenset[str]:
    """The names right behind the words for whom a clause is about, or else at its beginning."""
    lower = [word for word in clause.lower if word not in _SKIPPED]
    at = next((at for at, word in enumerate(lower) if word in others), -1)
    return frozenset(takewhile(names.__contains__, lower[at + 1 :]))


def _is_own(clause: Reading) -> bool:
    """Whether a clause speaks of its speaker, and not only to: "Eva told me she is vegan"."""
    return not WORDS["first_person"].isdisjoint(clause.lower) and not WORDS["first_person"].isdisjoint(
        PATTERNS["told_me"].sub(" ", " ".join(clause.lower)).split()
    )


def _others(clause: Reading, speakers: Collection[str]) -> frozenset[str]:
    """The words for whom a clause begins with, that does not speak of "me": "sister" of "My sister is vegan", "Tom"."""
    lower = clause.lower
    at = next((at for at, word in enumerate(lower) if word not in _SKIPPED), len(lower))
    first = lower[at : at + 1]
    is_person = bool(first) and first[0] not in speakers and clause.tokens[at][0].isupper() and is_first_name(first[0])
    is_owner = int(is_person and lower[at + 1 : at + 2] == ("s",) and any(map(is_content, lower[at + 2 : at + 3])))
    if is_person and not is_owner:
        return frozenset(first)
    if is_owner or not _BEFORE_SOMEBODY.isdisjoint(first):
        behind = range(at + 1 + is_owner, len(lower))
        place = next((one for one in behind if is_content(lower[one]) and not is_number(lower[one])), None)
        if place is None or (lower[place] in WORDS["attributes"] and first[0] in WORDS["my"]):
            return frozenset()
        return frozenset({lower[place]})
    if not WORDS["other_ties"].isdisjoint(first):
        return frozenset(first)
    if generic := WORDS["people"].intersection(lower):
        is_spanish = generic == {"he"} and (is_english(clause.text) is False or _PERFECT.search(" ".join(lower)))
        return frozenset() if is_spanish else generic
    is_plural = at == 0 and clause.tokens[0].istitle() and lower[0].endswith("s") and is_content(lower[0])
    return frozenset(first) if is_plural and is_english(clause.text) else frozenset()


def _others_by_signs(clause: str) -> frozenset[str]:
    """As `_others`, for Chinese and Japanese: a tie to the speaker, or a topic that is no time."""
    if OWN_SIGNS.search(TIE_SIGNS.sub(" ", clause)):
        return frozenset()
    found = TIE_SIGNS.search(clause) or TOPIC.match(clause)
    return frozenset({found[1]}) if found else frozenset()


def _details(text: Reading) -> frozenset[str]:
    """The beginnings of the content words of a text, and its numbers."""
    return text.starts.union(one for one in text.claimed if one[0].isdigit())


def _mentions(own: Reading, others: Collection[str]) -> bool:
    """Whether a text has one of some words, in a form of it; of signs one."""
    if not own.is_spaced:
        return any(not own.signs.isdisjoint(word) for word in others)
    starts = {start_of(word) for word in own.lower}
    return any(start_of(word) in starts for word in others)


def _speaks_of_user(text: Reading) -> bool:
    """Whether a text has a word of the first person."""
    return not _OWN_WORDS.isdisjoint(text.lower) or OWN_SIGNS.search(text.text) is not None


def _amounts(text: Reading) -> Iterator[tuple[int, float, str]]:
    """The amounts of a text: the kind of their unit, their size in one unit of it, and their number."""
    tokens = [word for word in text.lower if word not in WORDS["articles"]]
    for number, word in pairwise(tokens):
        for kind, sizes in enumerate(SIZES):
            if (size := sizes.get(UNITS.get(word, word))) and (said := next(numbers_of([number]), "")):
                count = 0.5 if said == "½" else float(said) if said.replace(".", "", 1).isdecimal() else 0
                yield kind, count * float(size), said


def _is_opposed(clause: Reading, told: Told) -> bool:
    """Whether a clause denies a text; or affirms what that denies, and says little else of it.

    Of "My cat ran away" it may be said that there is no cat, of "Cats make me sneeze" that they are avoided.
    """
    own = told.own
    if not contrary(clause, own):
        return False
    if not own.is_negative or (clause.is_negative and clause.denies != own.denies):
        return True
    others = (starts_of(set(clause.stems) - _MEASURES) if clause.is_spaced else clause.signs) - told.starts
    return not clause.is_negative and len(others) <= (0 if own.ending else 1)


def _denies(clause: Reading, told: Told) -> bool:
    """Whether a clause has all words of a text, in some form, and denies one of them and none twice."""
    shared = told.starts & clause.starts
    both = told.words, clause.stems if clause.is_spaced else clause.signs
    added, left = ([word for word in some if starts_of([word]).isdisjoint(shared)] for some in both)
    if not told.words or len(added) > 1 or not UNTIL.isdisjoint(clause.lower):
        return False
    # A verb may have only one letter in common: "tengo", "tiene"; "أحب", "تحب".
    verbs = [word for word in left for one in added if word[0] == one[0] or word[-2:] == one[-2:]]
    if added and not verbs:
        return False
    negations = [one for one in clause.denials if not clause.is_spaced or one.word in NEGATIONS]
    reached = Counter(
        word for one in negations for word in one.reached if word in verbs or not starts_of([word]).isdisjoint(shared)
    )
    return bool(reached) and all(times % 2 for times in reached.values())


def _is_over(clause: Reading, told: Told) -> bool:
    """Whether a clause says that something with a word of a text has ended ("I left Acme", "my dog Rex died")."""
    if not clause.ending:
        return False
    reached = frozenset().union(*(one.reached for one in clause.denials if one.word not in NEGATIONS))
    return not told.starts.isdisjoint(starts_of(reached or clause.words))


def is_past(own: Reading) -> bool:
    """Whether a text tells what has happened, by the form of a word."""
    words = own.lower_set - WORDS["linking"]
    return not _PASTS.isdisjoint(words) or PATTERNS["past"].search(" ".join(words)) is not None


def is_quotation(content: str, excerpt: str, own: Reading, turn: "Evidence") -> bool:
    """Whether a fact rests on words in quotes, and the words around these are of somebody else than the speaker.

    The excerpt is quoted as a whole, or the fact has words of the quotes in it and none that only stand around these.
    Around a quote is its sentence, or all of the message where the sentence is in the quote.
    """
    words = excerpt.strip(_QUOTE_MARKS)
    start = content.find(words)
    end = start + len(words)
    quotes = [
        one
        for one in _QUOTED.finditer(content)
        if (one.start() < end and start < one.end() if start >= 0 else has_words(one[0], words))
    ]
    if not quotes or has_words(rest := _QUOTED.sub(lambda one: " " * len(one[0]), content), words):
        return False
    first, last = quotes[0].start(), quotes[-1].end()
    begin = max((one.end() for one in _STOP.finditer(rest, 0, first)), default=0)
    is_sentence = _STOP.search(content[last - 2 : last]) and content[last:].lstrip()[:1].isupper()
    stop = _STOP.search(rest, last)
    around = rest[min(max(start, 0), begin) : max(end, last if is_sentence else stop.start() if stop else len(rest))]
    frame = read(PATTERNS["to_speaker"].sub(" ", around if read(around).tokens else rest))
    if _speaks_of_user(frame) and not any(one.others for one in islice(_clauses(frame, turn.speaker_tokens), 1)):
        return False
    quoted = frozenset().union(*(read(one[0]).told for one in quotes))
    told = own.told - turn.speaker_words
    is_whole = any(has_words(one[0], words) for one in quotes)
    return is_whole or not (told.isdisjoint(quoted) or told & frame.told - quoted)


@lru_cache(maxsize=512)
def _words_of_speakers(names: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """What may be found of speakers in another text, the longer ones of it, and the words of their names."""
    words = frozenset().union(*(read(name).words for name in names))
    own = frozenset(word for name in names for word in read(name).lower) - {"the"}
    return words, tuple(word for word in words if len(word) > 1), own


class Evidence:
    """What the messages of a turn say, but for recalled memory, and what they answer."""

    def __init__(self, task: ExtractionTask) -> None:
        self.task, self.at = task, task.turn.occurred_at
        turn, background = task.turn, task.background
        found = with_questions(turn, background.messages)
        self.said = tuple(EvidenceMessage(message, asked) for message, asked in found)
        named = (turn.speaker, turn.scope.user_id, *(one.name for one in turn.messages), "the user")
        self.speakers = tuple(dict.fromkeys(filter(None, named)))
        self.speaker_words, self.speaker_starts, self.speaker_names = _words_of_speakers(self.speakers)
        self.speaker_tokens = self.speaker_names | WORDS_FOR_USER  # with which a text about a speaker may begin
        # Of a line of a transcript a name with digits in it states no number.
        self.lines = tuple(f"{' '.join(name.casefold().split())}: " for name in self.speakers)
        self.speaker_keys = frozenset(map(normalise, self.speakers))
        earlier = (one for one in background.messages if one.role != "assistant")
        self.names = (  # which may say who "he" is
            *turn.recalled,
            *(text for one in earlier for text in (one.content, one.name or "")),
            *background.names,
            *(name for entity in background.entities for name in (entity.name, *entity.names)),
        )
        self.texts = Reading("\n".join(one.message.content for one in self.said))
        self.known = Reading("\n".join((self.texts.text, *self.speakers, *self.names)))
        self._sources: dict[tuple[str, str], Source] = {}

    @cached_property
    def signs(self) -> frozenset[str]:
        return frozenset(self.known.text)

    @cached_property
    def before(self) -> frozenset[str]:
        """The beginnings of the words of earlier messages and known facts."""
        shown = self.task.background
        return read("\n".join(one.content for one in shown.messages)).starts.union(
            *(read(f"{one.text} {one.value or ''}").starts for one in shown.facts)
        )

    @cached_property
    def digits(self) -> str:
        return re.sub(r"\D", "", " ".join(text for one in self.said for text in (one.message.content, one.asked)))

    def words_of(self, *, asked: bool) -> frozenset[str]:
        """The words of questions and of the assistant; else of what is said or known beside."""
        said = [one for message in self.said for one, _ in message.sentences]
        found = [one for one in said if _QUESTION_MARKS.isdisjoint(one) != asked]
        others: list[Message | EarlierMessage] = [*self.task.turn.messages, *self.task.background.messages]
        found += [one.content for one in others if one.role == "assistant"] if asked else self.names
        text = Reading("\n".join(found))
        return text.words | text.signs

    def support(self, text: str, excerpt: str, **fields: Any) -> tuple[Sequence[Message], list[FieldFault]]:
        """The messages that say the excerpt and from which a fact follows, and what is wrong with its fields.

        Without such a message what is wrong with the fact as a whole. `fields` are those of the reply (`CHECKED`).
        """
        found = [(one, [*self._source(one, excerpt).faults(text, **fields)]) for one in self.messages_of(text, excerpt)]
        sound = [(one, faults) for one, faults in found if not any(fault.field == "text" for fault in faults)]
        return [one.message for one, _ in sound], next((faults for _, faults in sound or found), [])

    def _source(self, said: EvidenceMessage, excerpt: str) -> Source:
        key = said.message.content, excerpt
        if key not in self._sources:
            self._sources[key] = Source(self, said, excerpt)
        return self._sources[key]

    def messages_of(self, text: str, excerpt: str) -> Sequence[EvidenceMessage]:
        """The messages with the excerpt of a fact, not only within recalled text; those with a question come first.

        A bare yes or no begins a sentence there.
        """
        comparable = comparable_text(excerpt)
        if not comparable:
            return ()
        recalled = self.task.turn.recalled
        hiding = copied_texts(recalled, text, comparable) if recalled else ()
        found = [one for one in self.said if _is_within(comparable, without_texts(one.comparable, hiding))]
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
