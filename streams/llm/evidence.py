"""What the messages of a turn say, and whether a fact of a model's reply follows from it."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from mnemolog.schemas.base import normalise
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.names import read_name, ties_in
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.text.assertions import TurnWords, is_negative, unsaid
from mnemolog.streams.text.differences import copied_texts
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.short_answers import asked_part, begins_sentence, short_answer
from mnemolog.streams.text.tokens import comparable_text, has_words, without_texts

MIN_SCRIPT_LINES: Final = 2
"""How many lines of a message begin with a name and a colon if it is a script: one alone may be "Note: ..."."""
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t]*([^\W\d_a-z][\w.'-]*(?: [^\W\d_a-z][\w.'-]*){0,2}):[ \t]+(?=\S)", re.MULTILINE
)


def other_speaker(turn: Turn, said_in: Collection[Message], excerpt: str) -> str | None:
    """Who says the words of `excerpt` in these messages, if that is one named person and not the turn's speaker."""
    names = {name for message in said_in for text, name in _spoken(message) if has_words(text, excerpt)}
    name = names.pop() if len(names) == 1 else None
    return name if name and normalise(name) != normalise(turn.speaker or "") else None


def _spoken(message: Message) -> Iterator[tuple[str, str | None]]:
    """The parts of a message as comparable texts, each with the name of who says it, if one is given."""
    lines = list(_SPOKEN_LINE.finditer(message.content)) if message.role == "user" else []
    if len(lines) < MIN_SCRIPT_LINES:
        yield comparable_text(message.content), message.name if message.role == "user" else None
        return
    ends = [line.start() for line in lines[1:]] + [len(message.content)]
    yield comparable_text(message.content[: lines[0].start()]), message.name
    for line, end in zip(lines, ends, strict=True):
        yield comparable_text(message.content[line.end() : end]), line[1]


def shown_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages of the conversation: all but the application's own system prompts."""
    return tuple(message for message in turn.messages if message.role != "system")


def evidence_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages that facts may rest on: what the assistant says is none, even where the user agrees to it."""
    return tuple(message for message in shown_messages(turn) if message.role != "assistant")


@dataclass(frozen=True, slots=True)
class _EvidenceMessage:
    """A message that facts may rest on, also as a comparable text, and the question that it answers, or ""."""

    message: Message
    comparable: str
    asked: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the messages of a turn say, but for recalled memory, and what they answer."""

    said: tuple[_EvidenceMessage, ...]
    words: TurnWords
    turn: Turn

    @classmethod
    def of(cls, task: ExtractionTask) -> Self:
        turn = task.turn
        said = tuple(
            _EvidenceMessage(message, comparable_text(message.content), asked)
            for message, asked in with_questions(turn, task.background.messages)
        )
        return cls(said, TurnWords.of(turn), turn)

    @property
    def contents(self) -> tuple[str, ...]:
        """The messages that facts may rest on, as comparable texts."""
        return tuple(one.comparable for one in self.said)

    def support(self, text: str, excerpt: str) -> tuple[Sequence[Message], str | None]:
        """The messages that say the excerpt and from which a fact follows; without any, what is wrong, else None."""
        said_in = self.messages_of(text, excerpt)
        faults = [self._fault(text, excerpt, one) for one in said_in]
        supporting = [one.message for one, fault in zip(said_in, faults, strict=True) if fault is None]
        return supporting, None if supporting else next(iter(faults), None)

    def _fault(self, text: str, excerpt: str, message: _EvidenceMessage) -> str | None:
        """Why a fact does not follow from a message that says its excerpt."""
        kind = short_answer(excerpt)
        if kind is not None and (fault := self._answer_fault(kind, text, message)):
            return fault
        words = self.words.with_question(message.asked) if message.asked else self.words
        said = f"{message.asked} {excerpt}" if kind else excerpt
        added = ", ".join(unsaid(self._without_speaker(text), said, words))
        return f"it says {added}, which no message says" if added else None

    def messages_of(self, text: str, excerpt: str) -> Sequence[_EvidenceMessage]:
        """The messages with the excerpt of a fact, not only within recalled text; those with a question come first.

        A bare yes or no begins a sentence there.
        """
        comparable = comparable_text(excerpt)
        if not comparable:
            return ()
        hiding = copied_texts(self.turn.recalled, text, comparable)
        found = [one for one in self.said if has_words(without_texts(one.comparable, hiding), comparable)]
        if short_answer(excerpt):
            found = [one for one in found if begins_sentence(one.comparable, comparable)]
        return sorted(found, key=lambda one: not one.asked)

    def absence_reason(self, excerpt: str) -> str:
        """Why no message says an excerpt."""
        comparable = comparable_text(excerpt)
        if comparable and any(comparable in one.comparable for one in self.said):
            return "is recalled memory, which is no evidence" if self.turn.recalled else "is only a part of a word"
        others = [one.content for one in self.turn.messages if one.role == "assistant"]
        if comparable and any(comparable in comparable_text(content) for content in others):
            return "is what the assistant says: the words of the user are the evidence"
        return "occurs in no message"

    def _answer_fault(self, kind: str, text: str, message: _EvidenceMessage) -> str:
        """What is wrong with a fact whose excerpt is a bare answer."""
        own, asked = read(text), read(message.asked)
        if kind == "open":
            return "it rests on words that neither confirm nor deny"
        if not message.asked:
            return "it rests on a bare answer, and nothing was asked just before"
        names = {stem for name in self._names() for stem in read(name).stems}
        is_read = own.is_spaced and asked.is_spaced and not own.is_foreign and not asked.is_foreign
        if is_read and not ({*own.stems} - names) & {*asked.stems}:
            return "it says something else than what was asked just before"
        if kind == "no" and is_read and not is_negative(own) and not is_negative(asked):
            return "it affirms what the answer denies"
        if kind == "yes" and is_read and is_negative(own) and not is_negative(asked):
            return "it denies what the answer affirms"
        return ""

    def _without_speaker(self, text: str) -> str:
        """A line of a transcript without its speaker: a name with digits in it states no number."""
        lines = (f"{' '.join(name.split())}: " for name in self._names())
        return next((text.removeprefix(line) for line in lines if text.startswith(line)), text)

    def _names(self) -> Iterator[str]:
        yield from (name for name in (self.turn.speaker, *(one.name for one in self.turn.messages)) if name)
        yield "the user"


def with_questions(turn: Turn, earlier: Sequence[EarlierMessage]) -> Iterator[tuple[Message, str]]:
    """The messages that facts may rest on, each with the question in the message right before it, or ""."""
    before: Message | EarlierMessage | None = earlier[-1] if earlier else None
    for message in shown_messages(turn):
        if message.role != "assistant":
            yield message, asked_part(before.content) if before and _can_ask(before, message, turn) else ""
        before = message


def _can_ask(before: Message | EarlierMessage, message: Message, turn: Turn) -> bool:
    """Whether the message before a message of the user is somebody else's."""
    if before.role == "assistant":
        return message.role == "user"
    own, other = (normalise(one.name or turn.speaker or "") for one in (message, before))
    return before.role == message.role == "user" and own != other


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
