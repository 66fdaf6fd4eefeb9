"""What the messages of a turn say, and whether a fact of a model's reply follows from it."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from mnemolog.schemas.base import normalise
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.names import read_name, ties_in
from mnemolog.streams.llm.fact_checks import FieldFault, Source, answer_fault, is_quotation
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.text.differences import copied_texts, is_user_word
from mnemolog.streams.text.short_answers import asked_part, begins_sentence, sentences_of, short_answer
from mnemolog.streams.text.tokens import comparable_text, has_words, without_texts

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

    The lines of a script are of the name before each of them.
    """
    names: set[str | None] = set()
    for message in said_in:
        found = list(_SPOKEN_LINE.finditer(message.content)) if message.role == "user" else []
        heads = [line[1] for line in found]
        lines = [line for line in found if line[1][0].isupper() or heads.count(line[1]) >= MIN_SCRIPT_LINES]
        spoken = [(message.content, message.name if message.role == "user" else None)]
        if len(lines) >= MIN_SCRIPT_LINES:
            ends = [line.start() for line in lines[1:]] + [len(message.content)]
            spoken = [(message.content[: lines[0].start()], message.name)]
            spoken += [(message.content[line.end() : end], line[1]) for line, end in zip(lines, ends, strict=True)]
        names |= {name for text, name in spoken if has_words(text, excerpt)}
    name = names.pop() if len(names) == 1 else None
    return name if name and normalise(name) != normalise(turn.speaker or "") else None


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

    def sentences(self, excerpt: str) -> str:
        """The sentences that have the words of an excerpt, or are a part of it; else the whole message."""
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


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the messages of a turn say, but for recalled memory, and what they answer."""

    said: tuple[_EvidenceMessage, ...]
    task: ExtractionTask

    @classmethod
    def of(cls, task: ExtractionTask) -> Self:
        said = tuple(
            _EvidenceMessage(message, comparable_text(message.content), asked)
            for message, asked in with_questions(task.turn, task.background.messages)
        )
        return cls(said, task)

    @property
    def turn(self) -> Turn:
        return self.task.turn

    @property
    def contents(self) -> tuple[str, ...]:
        """The messages that facts may rest on, as comparable texts."""
        return tuple(one.comparable for one in self.said)

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
        is_of_user = not is_named or normalise(subject) in map(normalise, self._names())
        is_asked = kind is not None or not _QUESTION_MARKS.isdisjoint(message.asked)
        background = self.task.background
        earlier = [one for one in background.messages if one.role != "assistant"]
        source = Source(
            sentence=message.sentences(excerpt),
            asked=message.asked if is_asked else "",
            texts=tuple(one.message.content for one in self.said),
            speakers=tuple(self._names()),
            names=(  # which may say who "he" is
                *self.turn.recalled,
                *(text for one in earlier for text in (one.content, one.name or "")),
                *background.names,
                *(name for entity in background.entities for name in (entity.name, *entity.names)),
            ),
            at=self.turn.occurred_at,
        )
        # Of a line of a transcript a name with digits in it states no number.
        lines = (f"{' '.join(name.split())}: " for name in source.speakers)
        own = next((text.removeprefix(line) for line in lines if text.startswith(line)), text)
        if kind is not None and (fault := answer_fault(kind, own, source)):
            yield FieldFault("text", "answer", fault)
        speaker = other_speaker(self.turn, [message.message], excerpt)
        is_of_another = speaker is not None and is_named and normalise(subject) != normalise(speaker)
        if is_of_user and (is_of_another or is_quotation(message.message.content, excerpt)):
            yield FieldFault("text", "quoted", "its excerpt is what somebody else said")
        yield from source.faults(own, excerpt, is_answer=kind is not None, is_of_user=is_of_user, **fields)

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

    def _names(self) -> Iterator[str]:
        named = (self.turn.speaker, self.turn.scope.user_id, *(one.name for one in self.turn.messages))
        yield from (name for name in named if name)
        yield "the user"


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
