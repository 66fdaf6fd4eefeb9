"""Divides the reply to a question about the facts of several turns among these turns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.schemas.base import normalise
from mnemolog.schemas.turn import Turn
from mnemolog.streams.llm.grounding.evidence import evidence_messages, shown_messages
from mnemolog.streams.llm.ports import ExtractionTask, Reply
from mnemolog.streams.shared_calls.call_turns import message_tokens
from mnemolog.streams.shared_calls.divided_reply import Part, parts_of, replies_of
from mnemolog.streams.text.normalise import comparable_text, has_words, without_texts
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.subjects import WORDS_FOR_USER, is_user_word

_LINES: Final = 40
"""Tokens of a turn in the prompt besides its messages: its number, id, time and speaker."""


def divide_reply(reply: Reply, tasks: Sequence[ExtractionTask]) -> list[Reply | None]:
    """The part of each turn as the reply that it would get alone; None where the reply has none for it.

    A fact is part of the turn that its excerpt is in. A part with a name or a word that only a later turn says is none.
    """
    parts = _without_later(_move_facts(parts_of(reply, len(tasks)), tasks), tasks)
    return replies_of(reply, parts, [_LINES + message_tokens(task.turn) for task in tasks])


def _move_facts(parts: Sequence[Part | None], tasks: Sequence[ExtractionTask]) -> list[Part | None]:
    """The parts, with each fact in the turn that its excerpt is in: the stated one, else the nearest."""
    said = [_said(task) for task in tasks]
    moved: list[Part | None] = [None if part is None else {**part, "facts": []} for part in parts]
    for place, fact in _facts(parts):
        places = sorted(range(len(tasks)), key=lambda other: abs(other - place))
        own = next((one for one in places if moved[one] is not None and _is_in(fact, said[one])), place)
        target = moved[own]
        if target is not None and fact not in target["facts"]:
            target["facts"].append(fact)
    return moved


def _without_later(parts: Sequence[Part | None], tasks: Sequence[ExtractionTask]) -> list[Part | None]:
    """The parts, without those that name what only a later turn says."""
    told = [_TurnText.of(_told(task.turn)) for task in tasks]
    said = [_TurnText.of("\n".join(message.content for message in shown_messages(task.turn))) for task in tasks]
    kept: list[Part | None] = []
    for place, (part, task) in enumerate(zip(parts, tasks, strict=True)):
        names_later = part is not None and _names_later(part, task, told[: place + 1], said[place + 1 :])
        kept.append(None if names_later else part)
    return kept


def _facts(parts: Sequence[Part | None]) -> Iterator[tuple[int, Any]]:
    return ((place, fact) for place, part in enumerate(parts) if part is not None for fact in part["facts"])


def _said(task: ExtractionTask) -> list[str]:
    """What a turn says that is no recalled memory."""
    recalled = list(filter(None, map(comparable_text, task.turn.recalled)))
    return [without_texts(comparable_text(message.content), recalled) for message in evidence_messages(task.turn)]


def _is_in(fact: Any, said: Sequence[str]) -> bool:
    excerpt = fact.get("excerpt") if isinstance(fact, dict) else None
    return isinstance(excerpt, str) and any(has_words(text, excerpt) for text in said)


def _names_later(part: Part, task: ExtractionTask, until: Sequence["_TurnText"], after: Sequence["_TurnText"]) -> bool:
    """Whether a fact has words of what is said after its turn: neither said until then nor shown to that turn."""
    names = [name for fact in part["facts"] for name in _names(fact) if _have_name(after, name)]
    words = _words_of("\n".join(_texts(part))) & _all_words(after)
    if not names and not words:
        return False
    shown = task.background
    told = [*(message.content for message in shown.messages), *shown.names]
    told += [text for entity in shown.entities for text in (entity.name, *entity.names, *entity.ties)]
    told += [text for fact in shown.facts for text in (fact.text, fact.value, fact.subject) if text]
    before = [*until, _TurnText.of("\n".join(told))]
    return not (words <= _all_words(before) and all(_have_name(before, name) for name in names))


@dataclass(frozen=True, slots=True)
class _TurnText:
    """What a turn says, as it is compared. It is read once, however many turns there are."""

    text: str
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "_TurnText":
        return cls(comparable_text(text), _words_of(text))


def _all_words(said: Sequence[_TurnText]) -> frozenset[str]:
    return frozenset().union(*(one.words for one in said))


def _have_name(said: Sequence[_TurnText], name: str) -> bool:
    return any(has_words(one.text, name) for one in said)


def _texts(part: Part) -> Iterator[str]:
    texts = (fact.get("text") for fact in part["facts"] if isinstance(fact, dict))
    return (text for text in texts if isinstance(text, str))


def _words_of(text: str) -> frozenset[str]:
    """The stems of the words that tell something, the numbers and dates; of a script without spaces the signs."""
    reading = read(text)
    return (reading.signs | reading.details).union(reading.stems if reading.is_spaced else ())


def _names(fact: Any) -> Iterator[str]:
    """The value, the subject and the entities of a fact, and each word of these that is written as a name."""
    if not isinstance(fact, dict):
        return
    entities = fact.get("entities")
    named = [one.get("name") for one in entities if isinstance(one, dict)] if isinstance(entities, list) else []
    for name in (fact.get("value"), fact.get("subject"), *named):
        if isinstance(name, str) and not is_user_word(name):
            yield name
            yield from (word for word in name.split() if word[0].isupper() and normalise(word) not in WORDS_FOR_USER)


def _told(turn: Turn) -> str:
    """What a turn says, who says it, and its recalled memory."""
    said = (text for message in shown_messages(turn) for text in (message.name, message.content))
    return "\n".join(filter(None, (turn.speaker, *said, *turn.recalled)))
