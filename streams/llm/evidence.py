"""What the messages of a turn say, and whether a fact of a model's reply follows from it.

A fact says nothing that nobody said: no other words, names, numbers, units or times. What its clause of the sentence
denies, supposes or ended it keeps so, and it is about whom the sentence is about. Each check refuses at least nine
harmful facts for an honest one (`tests/quality/reply_checks.py`).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

from mnemolog.schemas.base import normalise
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.names import has_tie, is_first_name, read_name, ties_in
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.text.assertions import UNTIL, added_names, contrary, moved
from mnemolog.streams.text.differences import copied_texts, is_user_word
from mnemolog.streams.text.readings import (
    Reading,
    clauses_of,
    has_condition,
    is_english,
    is_supposed,
    main_script,
    read,
    start_of,
    stem_of,
    tells_time,
)
from mnemolog.streams.text.short_answers import ShortAnswer, asked_part, begins_sentence, sentences_of, short_answer
from mnemolog.streams.text.times import MAX_CHARACTERS, find_times
from mnemolog.streams.text.tokens import (
    DATES,
    NEGATIONS,
    OWN_SIGNS,
    PATTERNS,
    QUOTES,
    SIZES,
    TENSES,
    TIE_SIGNS,
    UNITS,
    WORDS,
    comparable_text,
    has_words,
    numbers_of,
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

    The lines of a script are of the name before each of them, and so is one alone behind a first name; an excerpt may
    begin with that name.
    """
    names: set[str | None] = set()
    head = _SPOKEN_LINE.match(excerpt)
    for message in said_in:
        found = list(_SPOKEN_LINE.finditer(message.content)) if message.role == "user" else []
        heads = [line[1] for line in found]
        lines = [line for line in found if line[1][0].isupper() or heads.count(line[1]) >= MIN_SCRIPT_LINES]
        spoken = [(message.content, message.name if message.role == "user" else None)]
        if len(lines) >= MIN_SCRIPT_LINES or any(is_first_name(line[1].casefold()) for line in lines):
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
_RESULTS: Final = frozenset(map(stem_of, WORDS["results"]))
_OR: Final = re.compile(r"\b(?:or|oder|ou|as well as|sowie)\b|&")
_STATING: Final = WORDS["first_person"] | WORDS["auxiliaries"] | WORDS["third_person"]
_MARKS: Final = " .!?…,;:\u3002\uff01\uff1f\"'"
_QUESTION_MARKS: Final = frozenset("?\uff1f؟")
CHECKED: Final = ("key", "value", "subject", "event_time", "valid_until", "certainty")
"""The fields of a fact that are judged beside its text."""


class FieldFault(NamedTuple):
    """What is wrong with a field of a fact, or with all of it (`text`): the name of the check, and words for it."""

    field: str
    check: str
    what: str


class EvidenceMessage(NamedTuple):
    """A message that facts may rest on, also as a comparable text, and the question that it answers, or ""."""

    message: Message
    comparable: str
    asked: str


class Source:
    """What a fact may come from: the sentences of its excerpt, the question that these answer, and the whole turn."""

    def __init__(self, turn: "Evidence", said: EvidenceMessage, excerpt: str) -> None:
        self.turn, self.excerpt, self.message, self.answer = turn, excerpt, said.message, short_answer(excerpt)
        sentences = (
            one
            for one in sentences_of(said.message.content)
            if has_words(one, excerpt) or has_words(excerpt, one.strip(_MARKS))
        )
        self.sentence = " ".join(sentences) or said.message.content
        is_answer = self.answer and not PATTERNS["acknowledged"].match(excerpt)
        self.asked = said.asked if is_answer or not _QUESTION_MARKS.isdisjoint(said.asked) else ""
        self.said = (*turn.texts, self.asked)
        self.known = (*self.said, *turn.speakers, *turn.names)
        self.near = read(f"{self.sentence}\n{self.asked}")

    @cached_property
    def _details(self) -> frozenset[str]:
        """The numbers, dates and units of all that is known; text, key and value of a fact are compared with them."""
        return frozenset().union(*(read(one).details for one in self.known))

    @cached_property
    def _digits(self) -> str:
        return re.sub(r"\D", "", " ".join(self.said))

    def faults(self, text: str, **fields: Any) -> Iterator[FieldFault]:
        """What is wrong with a fact; `fields` are those of the reply that are judged beside its text."""
        subject = fields.get("subject") or ""
        # Of a line of a transcript a name with digits in it states no number.
        lines = (f"{' '.join(name.split())}: " for name in self.turn.speakers)
        own = next((text.removeprefix(line) for line in lines if text.startswith(line)), text)
        is_as_said = comparable_text(_NOTED_DATE.sub("", own)) == comparable_text(self.sentence)
        found = [("name", f"it says {name}, which no message says") for name in added_names(subject, self.known)]
        found += [*(() if is_as_said else self._unsaid(own)), *self._of_another(own, subject)]
        turned = self._turned(own, fields.get("certainty"), is_as_said=is_as_said)
        found += answer_faults(self.answer, own, self) if self.answer else turned
        yield from (FieldFault("text", check, what) for check, what in found)
        for field in ("key", "value"):
            named = (fields.get(field) or "").replace("_", " ")
            names = added_names(named, self.known) if field == "value" else ()
            unsaid = [*names, *self._unsaid_numbers(named), *self._other_units(named)]
            yield from (FieldFault(field, "value", f"nobody said {one}") for one in unsaid[:1])
        for field in ("event_time", "valid_until"):
            moment = fields.get(field)
            if moment is None:
                continue
            day = moment.astimezone(self.turn.at.tzinfo)
            last_moment = day - _MOMENT if field == "valid_until" else day  # until Friday: 00:00 of Saturday
            if not self._has_time(last_moment.date(), day.date()):
                yield FieldFault(field, "time", "nobody named this time")

    def _of_another(self, text: str, subject: str) -> Iterator[tuple[str, str]]:
        """Whether what is said of the user is said by or of somebody else."""
        is_named = bool(subject) and not is_user_word(subject)
        if is_named and normalise(subject) not in map(normalise, self.turn.speakers):
            return
        speaker = other_speaker(self.turn.task.turn, [self.message], self.excerpt)
        is_of_another = speaker is not None and is_named and normalise(subject) != normalise(speaker)
        if is_of_another or is_quotation(self.message.content, self.excerpt, text, self.turn.speakers):
            yield "quoted", "its excerpt is what somebody else said"
        other = other_person(self.sentence, self.turn.speakers) if not self.answer else ""
        is_in_text = not read(other).words.isdisjoint(read(text).words)
        if other and not is_in_text and not any(has_tie(text, tie) for tie, _ in ties_in(self.sentence)):
            yield "subject", f"its excerpt is about somebody else ({other})"

    def _unsaid(self, text: str) -> Iterator[tuple[str, str]]:
        """Words, names, amounts, habits and causes of a text that nobody said."""
        own, source = read(text), f"{self.excerpt} {self.asked}"
        names = self.turn.speaker_words
        bare = " ".join(token for token in own.tokens if stem_of(token) not in names)
        scripts, languages = (main_script(bare), main_script(source)), (is_english(text), is_english(source))
        if (all(scripts) and scripts[0] != scripts[1]) or (None not in languages and languages[0] != languages[1]):
            yield "translation", "it is in another language than its excerpt"
            return
        known = (*self.said, *self.turn.names)
        words = frozenset().union(*(read(one).words for one in known))
        stated = frozenset().union(*(read(one).words for one in (self.sentence, self.asked, *self.turn.stated)))
        others = frozenset().union(*(read(one).words for one in self.turn.unstated))
        told = own.words - names
        if told.isdisjoint(stated) and not (self.answer or told.isdisjoint(others)):
            yield "words", "only a question or the assistant says this"
        causes = PATTERNS["cause"].split(" ".join(own.tokens).casefold())[1:]
        habits = WORDS["habits"].intersection(map(str.casefold, own.tokens))
        is_once = not self.near.is_negative and WORDS["habits"].isdisjoint(map(str.casefold, self.near.tokens))
        is_event = habits and is_once and find_times(self.sentence[:MAX_CHARACTERS], self.turn.at, -1)
        for check, found in (
            ("name", added_names(text, self.known)),
            ("number", self._unsaid_numbers(text)),
            ("unit", self._other_units(text)),
            ("moved", moved(self.said, text)),
            ("habit", habits if is_event else ()),
            ("cause", (one for one in causes if words.isdisjoint(map(start_of, read(one).stems[:_CAUSE_WORDS])))),
        ):
            yield from ((check, f"it says {one}, which no message says") for one in found)

    def _unsaid_numbers(self, text: str) -> Iterator[str]:
        """The numbers and dates that nobody said: the things of a list may be counted, years reckoned."""
        times = find_times(text[:MAX_CHARACTERS], self.turn.at)
        rest = text
        for when in reversed(times):
            rest = f"{rest[: when.span[0]]} {rest[when.span[1] :]}"
            if not self._has_time(when.first, when.last):
                yield f"{when.first:%Y-%m-%d}"
        counts = [one for one in self.near.details if one[0].isdigit()]
        largest = _LARGEST_COUNT if is_english(self.sentence) is None else len([*clauses_of(self.sentence)])
        converted = {number for _, number in self._converted(text)}
        named = {DATES.get(token.casefold(), "") for token in read(rest).tokens if token[0].isupper()}
        for number in sorted((read(rest).claimed | named) - self._details):
            if number.startswith(("month ", "weekday ")):
                days = (when for way in (-1, 1) for when in find_times(text[:MAX_CHARACTERS], self.turn.at, way))
                if not any(self._has_time(when.first, when.last) for when in days):
                    yield number
            if not number.lstrip("-")[:1].isdigit():
                continue
            is_counted = number == "1" or (not counts and number.isdigit() and int(number) <= largest)
            is_reckoned = any(self._is_since(*pair) for one in counts for pair in ((number, one), (one, number)))
            is_written_otherwise = len(number) >= _LONG and number in self._digits  # "5550100" for "555-0100"
            is_clock = ":" in number and bool(counts)
            if not (is_counted or is_reckoned or is_written_otherwise or is_clock or number in converted):
                yield number

    def _is_since(self, year: str, count: str) -> bool:
        """Whether a year is so many years before or after the turn."""
        is_year = _YEAR.fullmatch(year) is not None and count.isdigit()
        return is_year and abs(abs(self.turn.at.year - int(year)) - int(count)) <= 1

    def _other_units(self, text: str) -> Iterator[str]:
        """The units that nobody said where one that was said is lost: "kilometres" of "20 minutes"."""
        near, own = self.near.claimed & _UNITS, read(text).claimed & _UNITS
        if near - own and not any(self._converted(text)):
            yield from sorted(own.difference(*(read(one).claimed for one in self.said)))

    def _converted(self, text: str) -> Iterator[tuple[str, str]]:
        """The amounts of a text that were said in another unit of their kind: "8 km" of "five miles"."""
        for kind, size, number in _amounts(text):
            for other, said, words in _amounts(f"{self.sentence}\n{self.asked}"):
                if kind == other and words != number and abs(size - said) <= _CLOSE * said:
                    yield words, number

    def _has_time(self, first: date, last: date) -> bool:
        """Whether these days have that of the turn, or one of the sentence, or a time is told that cannot be read."""
        near = (self.sentence[:MAX_CHARACTERS], self.asked[:MAX_CHARACTERS])
        found = [when for one in near for way in (-1, 1) for when in find_times(one, self.turn.at, way)]
        is_near = any(when.first <= last and first <= when.last for when in found)
        return first <= self.turn.at.date() <= last or is_near or (not found and any(map(tells_time, self.said)))

    def _turned(self, text: str, certainty: str | None, *, is_as_said: bool) -> Iterator[tuple[str, str]]:
        """What turns the sense of the clauses with most words of a text: these deny it, ended it, or suppose it.

        A text in the very words of its sentence says nothing contrary; it may only ask or suppose.
        """
        if PATTERNS["wish"].search(self.sentence.casefold()) and read(self.sentence).denies:
            return  # "I wish I did not work on Sundays"
        own, names = read(text), self.turn.speaker_words
        told = frozenset(own.stems if own.is_spaced else own.signs) - _MEASURES
        told = frozenset(one for one in told if not any(one.startswith(name) for name in names if len(name) > 1))
        said = [*_clauses(self.sentence, told)]
        asked = () if read(self.sentence).is_negative else clauses_of(self.asked)
        shared = [(len(_starts(one.words - names) & _starts(told)), one) for one in (*said, *asked)]
        most = max((words for words, _ in shared), default=0)
        nearest = [one for words, one in shared if words == most]
        opposed = [one for words, one in shared if (words or not most) and _is_opposed(one, own, told)]
        is_said = any(one not in opposed and _starts(told) <= _starts(one.words) for _, one in shared)
        if is_as_said:
            pass
        elif (opposed and not is_said) or (not own.is_negative and all(_denies(one, told) for one in nearest)):
            yield "polarity", "it says the contrary of its excerpt"
        elif not (own.is_negative or is_past(own)):
            lefts = (
                [] if "from" in own.tokens else PATTERNS["left_behind"].finditer(" ".join(read(self.sentence).tokens))
            )
            left = frozenset().union(
                *(read(one[one.lastindex or 0]).words - read(one.string[one.end() :]).words for one in lefts)
            )
            if not told.isdisjoint(left) or (most and all(_is_over(one, told) for one in nearest)):
                yield "over", "it says of today what is over"
        if not is_as_said and _is_swapped(said, text):
            yield "swapped", "it says of one what its excerpt says of another"
        stated = PATTERNS["asking"].sub(" ", " ".join(read(self.sentence).tokens))
        if _QUESTION.search(self.sentence) and not _speaks_of_user(stated):
            yield "question", "its excerpt only asks"
        # Own words: whoever asks may suppose what they like.
        near = next((one for one in nearest if one in said), None if most else own)
        is_stated = certainty not in ("weak", "speculation") and not has_condition(text)
        new = {*own.stems} - {*self.near.stems}
        is_attempt = near and PATTERNS["attempt"].search(" ".join(near.tokens)) and not new.isdisjoint(_RESULTS)
        if is_stated and near is not None and (is_attempt or is_supposed(near, self.sentence)):
            yield "hypothetical", "it states as a fact what was only supposed"


def _amounts(text: str) -> Iterator[tuple[int, float, str]]:
    """The amounts of a text: the kind of their unit, their size in one unit of it, and their number."""
    tokens = [token.casefold() for token in read(text).tokens if token.casefold() not in WORDS["articles"]]
    for number, word in pairwise(tokens):
        for kind, sizes in enumerate(SIZES):
            if (size := sizes.get(UNITS.get(word, word))) and (said := next(numbers_of([number]), "")):
                count = 0.5 if said == "½" else float(said) if said.replace(".", "", 1).isdecimal() else 0
                yield kind, count * float(size), said


def _clauses(sentence: str, told: frozenset[str]) -> Iterator[Reading]:
    """The clauses of a sentence; what only goes on with a list is denied with it: "milk" of "I avoid nuts and milk"."""
    for part in PATTERNS["contrast"].split(sentence):
        head: tuple[str, ...] = ()
        for clause in clauses_of(_OR.sub(",", part)):
            words, tokens = _starts(clause.words), [token.casefold() for token in clause.tokens]
            goes_on = (words < _starts(told) or len(tokens) == 1) and _STATING.isdisjoint(tokens)
            if clause.denials:
                denying = {one.word for one in clause.denials}
                head = clause.tokens[: max((at + 1 for at, one in enumerate(tokens) if one in denying), default=0)]
            elif not _STATING.isdisjoint(tokens):
                head = ()
            yield read(" ".join((*head, *clause.tokens))) if head and goes_on and not clause.denials else clause


def _is_opposed(clause: Reading, own: Reading, told: frozenset[str]) -> bool:
    """Whether a clause denies a text; or affirms what that denies, and says little else of it.

    Of "My cat ran away" it may be said that there is no cat, of "Cats make me sneeze" that they are avoided.
    """
    if not contrary(clause, own):
        return False
    if not own.is_negative or (clause.is_negative and clause.denies != own.denies):
        return True
    others = _starts(frozenset(clause.stems) - _MEASURES if clause.is_spaced else clause.signs) - _starts(told)
    return not clause.is_negative and len(others) <= (0 if own.ending else 1)


def _is_swapped(clauses: Sequence[Reading], text: str) -> bool:
    """Whether a text says of one person of a sentence what a clause of another says: "Tom is ill, Leo is well"."""
    ties = {tie for one in clauses for tie, _ in ties_in(" ".join(one.tokens))}
    people = []
    for one in clauses:
        names = {token for token in one.tokens if token[0].isupper() and is_first_name(token.casefold())}
        people.append(names | {tie for tie, _ in ties_in(" ".join(one.tokens))})
    told = {who for some in people for who in some if (has_tie(text, who) if who in ties else has_words(text, who))}
    own = [one.words for one, who in zip(clauses, people, strict=True) if who & told]
    other = [one.words for one, who in zip(clauses, people, strict=True) if who and not who & told]
    known, words = frozenset().union(*own), read(text).words
    return any(one - words for one in own) and any(words & one - known for one in other)


def _starts(words: Collection[str]) -> set[str]:
    """Beginnings of words, which their forms have in common: "fumo", "fuma"; a syllable of Korean."""
    return {word[: 3 if word < "가" else 1] for word in words}


def _denies(clause: Reading, told: frozenset[str]) -> bool:
    """Whether a clause has all words of a text, in some form, and denies one of them and none twice."""
    words = frozenset(clause.stems) if clause.is_spaced else clause.signs
    shared = _starts(told) & _starts(words)
    added, left = ([word for word in some if _starts({word}).isdisjoint(shared)] for some in (told, words))
    if not told or len(added) > 1 or not UNTIL.isdisjoint(clause.tokens):
        return False
    # A verb may have only one letter in common: "tengo", "tiene"; "أحب", "تحب".
    verbs = [word for word in left for one in added if word[0] == one[0] or word[-2:] == one[-2:]]
    if added and not verbs:
        return False
    negations = [one for one in clause.denials if not clause.is_spaced or one.word in NEGATIONS]
    reached = Counter(
        word for one in negations for word in one.reached if word in verbs or not _starts({word}).isdisjoint(shared)
    )
    return bool(reached) and all(times % 2 for times in reached.values())


def _is_over(clause: Reading, told: frozenset[str]) -> bool:
    """Whether a clause says that something with a word of a text has ended ("I left Acme", "my dog Rex died")."""
    if not clause.ending:
        return False
    reached = frozenset().union(*(one.reached for one in clause.denials if one.word not in NEGATIONS))
    return not _starts(told).isdisjoint(_starts(reached or clause.words))


def is_past(own: Reading) -> bool:
    """Whether a text tells what has happened, by the form of a word."""
    words = {token.casefold() for token in own.tokens} - WORDS["linking"]
    return not _PASTS.isdisjoint(words) or PATTERNS["past"].search(" ".join(words)) is not None


def other_person(sentence: str, speakers: tuple[str, ...] = ()) -> str:
    """Whom a sentence without "I" or "me" is about, in its words: "sister" of "My sister is vegan", "Tom"; or ""."""
    reading = read(sentence)
    if not reading.is_spaced:
        found = TIE_SIGNS.search(sentence)
        return found[1] if found and not OWN_SIGNS.search(TIE_SIGNS.sub(" ", sentence)) else ""
    tokens = [token.casefold() for token in reading.tokens]
    if not WORDS["first_person"].isdisjoint(read(PATTERNS["told_me"].sub(" ", sentence.casefold())).tokens):
        return ""
    if next((word for word in tokens if word not in WORDS["openings"] and word != ","), "") in WORDS["my"]:
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
    rest = _QUOTED.sub(lambda one: " " * len(one[0]), content)
    words = excerpt.strip(_QUOTE_MARKS)
    start = content.find(words)
    end = start + len(words)
    quotes = [
        one
        for one in _QUOTED.finditer(content)
        if (one.start() < end and start < one.end() if start >= 0 else has_words(one[0], words))
    ]
    if not quotes or has_words(rest, words):
        return False
    first, last = quotes[0].start(), quotes[-1].end()
    begin = max((one.end() for one in _STOP.finditer(rest, 0, first)), default=0)
    is_sentence = _STOP.search(content[last - 2 : last]) and content[last:].lstrip()[:1].isupper()
    stop = _STOP.search(rest, last)
    around = rest[min(max(start, 0), begin) : max(end, last if is_sentence else stop.start() if stop else len(rest))]
    around = PATTERNS["to_speaker"].sub(" ", around if read(around).tokens else rest)
    if _speaks_of_user(around) and not other_person(around, speakers):
        return False
    own = read(text).told - frozenset().union(*(read(name).told for name in speakers))
    quoted = frozenset().union(*(read(one[0]).told for one in quotes))
    is_whole = any(has_words(one[0], words) for one in quotes)
    return is_whole or not (own.isdisjoint(quoted) or own & read(around).told - quoted)


def _speaks_of_user(text: str) -> bool:
    """Whether a text has a word of the first person."""
    return any(token.casefold() in _OWN_WORDS for token in read(text).tokens) or OWN_SIGNS.search(text) is not None


def answer_faults(kind: ShortAnswer, text: str, source: Source) -> Iterator[tuple[str, str]]:
    """What is wrong with a fact whose excerpt is a bare answer."""
    own, asked = read(text), read(source.asked)
    told = own.words - source.turn.speaker_words
    is_comparable = bool(asked.words) and main_script(text) == main_script(source.asked)
    if kind == "open":
        yield "answer", "it rests on words that neither confirm nor deny"
    elif not source.asked:
        yield "answer", "it rests on a bare answer, and nothing was asked just before"
    elif is_comparable and told.isdisjoint(asked.words):
        yield "answer", "it says something else than what was asked just before"
    elif not asked.is_negative and (own.denies if kind == "yes" else not own.is_negative):
        yield "answer", "it denies what the answer affirms, or affirms what that denies"


class Evidence:
    """What the messages of a turn say, but for recalled memory, and what they answer."""

    def __init__(self, task: ExtractionTask) -> None:
        self.task = task
        self.said = tuple(
            EvidenceMessage(message, comparable_text(message.content), asked)
            for message, asked in with_questions(task.turn, task.background.messages)
        )
        turn, background = task.turn, task.background
        named = (turn.speaker, turn.scope.user_id, *(one.name for one in turn.messages), "the user")
        self.speakers = tuple(filter(None, named))
        self.speaker_words = frozenset().union(*(read(name).words for name in self.speakers))
        self.texts, self.at = tuple(one.message.content for one in self.said), turn.occurred_at
        earlier = (one for one in background.messages if one.role != "assistant")
        self.names = (  # which may say who "he" is
            *turn.recalled,
            *(text for one in earlier for text in (one.content, one.name or "")),
            *background.names,
            *(name for entity in background.entities for name in (entity.name, *entity.names)),
        )
        said = [one for text in self.texts for one in sentences_of(text)]
        asked = [one for one in said if not _QUESTION_MARKS.isdisjoint(one)]
        assistants: list[Message | EarlierMessage] = [*turn.messages, *background.messages]
        self.stated = (*(one for one in said if one not in asked), *self.names)
        self.unstated = (*asked, *(one.content for one in assistants if one.role == "assistant"))

    def support(self, text: str, excerpt: str, **fields: Any) -> tuple[Sequence[Message], list[FieldFault]]:
        """The messages that say the excerpt and from which a fact follows, and what is wrong with its fields.

        Without such a message what is wrong with the fact as a whole. `fields` are those of the reply: `value`,
        `subject`, `event_time`, `valid_until`, `certainty`.
        """
        said_in = self.messages_of(text, excerpt)
        found = [(one, [*Source(self, one, excerpt).faults(text, **fields)]) for one in said_in]
        sound = [(one, faults) for one, faults in found if not any(fault.field == "text" for fault in faults)]
        return [one.message for one, _ in sound], next((faults for _, faults in sound or found), [])

    def messages_of(self, text: str, excerpt: str) -> Sequence[EvidenceMessage]:
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
