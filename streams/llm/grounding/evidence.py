"""What a fact of a reply may rest on: what the user says, and the question that the user answers with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from mnemolog.schemas.base import normalise
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.text.normalise import comparable_text, without_texts
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.short_answers import asked_part, begins_sentence, short_answer
from mnemolog.streams.text.turn_words import TurnWords, is_negative, unsaid

_MAX_QUOTED: Final = 80


def shown_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages of the conversation: all but the application's own system prompts."""
    return tuple(message for message in turn.messages if message.role != "system")


def evidence_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages that facts may rest on: what the assistant says is none, even where the user agrees to it."""
    return tuple(message for message in shown_messages(turn) if message.role != "assistant")


@dataclass(frozen=True, slots=True)
class _EvidenceMessage:
    """A message that facts may rest on, in its own form and as a comparable text, and what it answers, or ""."""

    content: str
    comparable: str
    asked: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the messages of a turn say, what of it is recalled memory, and what they answer."""

    said: tuple[_EvidenceMessage, ...]
    recalled: tuple[str, ...]
    words: TurnWords
    turn: Turn

    @classmethod
    def of(cls, task: ExtractionTask) -> Self:
        turn = task.turn
        recalled = tuple(filter(None, map(comparable_text, turn.recalled)))
        said = tuple(
            _EvidenceMessage(message.content, comparable_text(message.content), asked)
            for message, asked in with_questions(turn, task.background.messages)
        )
        return cls(said, recalled, TurnWords.of(turn), turn)

    @property
    def contents(self) -> tuple[str, ...]:
        """The messages that facts may rest on, as comparable texts."""
        return tuple(one.comparable for one in self.said)

    def complaint(self, text: str, excerpt: str) -> str | None:
        """Why a fact does not follow from what was said: what is wrong with its excerpt, or its text; else None."""
        message = self.message_of(excerpt)
        if message is None:
            return None
        kind = short_answer(excerpt)
        if kind is not None and (fault := self._answer_fault(kind, text, message)):
            return fault
        words = self.words.with_question(message.asked) if message.asked else self.words
        said = f"{message.asked} {excerpt}" if kind else excerpt
        added = ", ".join(unsaid(self._without_speaker(text), said, words))
        return f"it says {added}, which no message says" if added else None

    def message_of(self, excerpt: str) -> _EvidenceMessage | None:
        """The message that says it, and not only within recalled text; a bare yes or no begins a sentence there."""
        comparable = comparable_text(excerpt)
        if not comparable:
            return None
        hiding = [text for text in self.recalled if comparable in text]
        found = [one for one in self.said if comparable in without_texts(one.comparable, hiding)]
        if short_answer(excerpt):
            found = [one for one in found if begins_sentence(one.comparable, comparable)]
        return max(found, key=lambda one: bool(one.asked), default=None)

    def absence_reason(self, excerpt: str) -> str:
        """Why no message says an excerpt."""
        comparable = comparable_text(excerpt)
        if comparable and any(comparable in one.comparable for one in self.said):
            return "is recalled memory, which is no evidence" if self.recalled else "is only a part of a word"
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
    """The messages that facts may rest on, each with what it answers: of the message right before it, or ""."""
    before: Message | EarlierMessage | None = earlier[-1] if earlier else None
    for message in shown_messages(turn):
        if message.role != "assistant":
            yield message, asked_part(before.content) if before and _can_ask(before, message, turn) else ""
        before = message


def _can_ask(before: Message | EarlierMessage, message: Message, turn: Turn) -> bool:
    """Whether somebody else says what is right before a message of the user."""
    if before.role == "assistant":
        return message.role == "user"
    own, other = (normalise(one.name or turn.speaker or "") for one in (message, before))
    return before.role == message.role == "user" and own != other
