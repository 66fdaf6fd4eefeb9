"""Divides the reply to a question about several turns, and the tokens that it took, among these turns."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic_core import from_json, to_json

from mnemolog.schemas.base import normalise
from mnemolog.schemas.turn import Turn
from mnemolog.streams.llm.grounding.evidence import evidence_messages, shown_messages
from mnemolog.streams.llm.ports import ExtractionTask, Reply, Usage
from mnemolog.streams.llm.reply_parser import object_text
from mnemolog.streams.shared_calls.call_turns import message_tokens
from mnemolog.streams.text.normalise import comparable_text, has_words, without_texts
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.subjects import WORDS_FOR_USER, is_user_word

_Part = dict[str, Any]
_LINES: Final = 40
"""Tokens of a turn in the prompt besides its messages: its number, id, time and speaker."""


def divide_reply(reply: Reply, tasks: Sequence[ExtractionTask]) -> list[Reply | None]:
    """The part of each turn as the reply that it would get alone; None where the reply has none for it.

    A fact is part of the turn that its excerpt is in. A part with a name or a word that only a later turn says is none.
    Where the reply has no part at all the first turn gets all of it, in a form that is no valid reply: it is asked
    about again alone, and has what the call took.
    """
    said = reply.text.encode("utf-8", "replace").decode()  # half a sign is no JSON
    parts = _without_later(_move_facts(_parts_of(said, len(tasks)), tasks), tasks)
    texts = [None if part is None else to_json(part, inf_nan_mode="null").decode() for part in parts]
    if all(text is None for text in texts):
        texts[0] = to_json({"undivided": said}).decode()
    asked = [0 if text is None else _LINES + message_tokens(task.turn) for text, task in zip(texts, tasks, strict=True)]
    usages = divide_usage(reply.usage, asked, [len(text or "") for text in texts])
    return [
        None if text is None else Reply(text=text, model=reply.model, usage=usage)
        for text, usage in zip(texts, usages, strict=True)
    ]


def divide_usage(usage: Usage, asked: Sequence[int], said: Sequence[int]) -> list[Usage]:
    """Shares whose sum is `usage`: of the input in proportion to what was `asked`, of the output to what was `said`."""
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    fresh = divide(usage.input_tokens - cached, asked)
    inputs = zip(fresh, divide(cached, asked), divide(usage.cached_tokens or 0, asked), strict=True)
    outputs = divide(usage.output_tokens, said)
    return [
        Usage(
            input_tokens=own_fresh + own_cached,
            output_tokens=own_output,
            cached_tokens=None if usage.cached_tokens is None else told,
        )
        for (own_fresh, own_cached, told), own_output in zip(inputs, outputs, strict=True)
    ]


def divide(total: int, weights: Sequence[int]) -> list[int]:
    """Whole shares of `total` in proportion to the weights, without loss; what rounding leaves goes to the first."""
    whole = sum(weights)
    if not whole:
        return [total, *(0 for _ in weights[1:])]
    ends, seen = [], 0
    for weight in weights:
        seen += weight
        ends.append(total * seen // whole)
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _parts_of(text: str, turns: int) -> list[_Part | None]:
    """What a reply says of each turn; of a reply that was cut off, the last turn that it names is not whole.

    Nothing of any turn where it numbers one that was not asked about: it may count from another number.
    """
    found: list[_Part | None] = [None] * turns
    for item in _items(text):
        number, facts = (item.get("turn"), item.get("facts")) if isinstance(item, dict) else (None, None)
        if type(number) is not int:  # a bool is an int, too
            continue
        if not 1 <= number <= turns:
            return [None] * turns
        if not isinstance(facts, list):
            continue
        part = {name: value for name, value in item.items() if name != "turn"}
        known = found[number - 1]
        found[number - 1] = part if known is None else {**known, "facts": [*known["facts"], *facts]}
    return found


def _items(text: str) -> list[Any]:
    try:
        reply, is_whole = from_json(object_text(text)), True
    except ValueError:
        try:
            reply, is_whole = from_json(text[max(0, text.find("{")) :], allow_partial=True), False
        except ValueError:
            return []
    items = reply.get("turns") if isinstance(reply, dict) else None
    return (items if is_whole else items[:-1]) if isinstance(items, list) else []


def _move_facts(parts: Sequence[_Part | None], tasks: Sequence[ExtractionTask]) -> list[_Part | None]:
    """The parts, with each fact in the turn that its excerpt is in: the stated one, else the nearest."""
    said = [_said(task) for task in tasks]
    moved: list[_Part | None] = [None if part is None else {**part, "facts": []} for part in parts]
    for place, fact in _facts(parts):
        places = sorted(range(len(tasks)), key=lambda other: abs(other - place))
        own = next((one for one in places if moved[one] is not None and _is_in(fact, said[one])), place)
        target = moved[own]
        if target is not None and fact not in target["facts"]:
            target["facts"].append(fact)
    return moved


def _without_later(parts: Sequence[_Part | None], tasks: Sequence[ExtractionTask]) -> list[_Part | None]:
    """The parts, without those that name what only a later turn says."""
    told = [_told(task.turn) for task in tasks]
    said = ["\n".join(message.content for message in shown_messages(task.turn)) for task in tasks]
    kept: list[_Part | None] = []
    for place, (part, task) in enumerate(zip(parts, tasks, strict=True)):
        until, after = "\n".join(told[: place + 1]), "\n".join(said[place + 1 :])
        kept.append(None if part is not None and _names_later(part, task, until, after) else part)
    return kept


def _facts(parts: Sequence[_Part | None]) -> Iterator[tuple[int, Any]]:
    return ((place, fact) for place, part in enumerate(parts) if part is not None for fact in part["facts"])


def _said(task: ExtractionTask) -> list[str]:
    """What a turn says that is no recalled memory."""
    recalled = list(filter(None, map(comparable_text, task.turn.recalled)))
    return [without_texts(comparable_text(message.content), recalled) for message in evidence_messages(task.turn)]


def _is_in(fact: Any, said: Sequence[str]) -> bool:
    excerpt = fact.get("excerpt") if isinstance(fact, dict) else None
    return isinstance(excerpt, str) and any(has_words(text, excerpt) for text in said)


def _names_later(part: _Part, task: ExtractionTask, until: str, after: str) -> bool:
    """Whether a fact has words of what is said after its turn: neither said until then nor shown to that turn."""
    names = [name for fact in part["facts"] for name in _names(fact) if has_words(after, name)]
    words = _words_of("\n".join(_texts(part))) & _words_of(after)
    if not names and not words:
        return False
    shown = task.background
    told = [*(message.content for message in shown.messages), *shown.names]
    told += [text for fact in shown.facts for text in (fact.text, fact.value, fact.subject) if text]
    before = "\n".join([until, *told])
    return not (words <= _words_of(before) and all(has_words(before, name) for name in names))


def _texts(part: _Part) -> Iterator[str]:
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
