"""Divides the reply to a question about several turns, and the tokens that it took, among these turns."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic_core import from_json, to_json

from mnemolog.streams.llm.grounding.evidence import evidence_messages
from mnemolog.streams.llm.ports import ExtractionTask, Reply, Usage
from mnemolog.streams.llm.reply_parser import object_text
from mnemolog.streams.shared_calls.call_turns import message_tokens
from mnemolog.streams.text.normalise import comparable_text

_Part = dict[str, Any]
_LINES: Final = 40
"""Tokens of a turn in the prompt besides its messages: its number, id, time and speaker."""


def divide_reply(reply: Reply, tasks: Sequence[ExtractionTask]) -> list[Reply | None]:
    """The part of each turn as the reply that it would get alone; None where the reply has none for it.

    A fact is part of the turn that its excerpt is in. Where the reply has no part at all the first turn gets all of it,
    in a form that is no valid reply: it is asked about again alone, and has what the call took.
    """
    said = reply.text.encode("utf-8", "replace").decode()  # half a sign is no JSON
    parts = _move_facts(_parts_of(said, len(tasks)), tasks)
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


def _facts(parts: Sequence[_Part | None]) -> Iterator[tuple[int, Any]]:
    return ((place, fact) for place, part in enumerate(parts) if part is not None for fact in part["facts"])


def _said(task: ExtractionTask) -> list[str]:
    return [comparable_text(message.content) for message in evidence_messages(task.turn)]


def _is_in(fact: Any, said: Sequence[str]) -> bool:
    excerpt = fact.get("excerpt") if isinstance(fact, dict) else None
    words = comparable_text(excerpt) if isinstance(excerpt, str) else ""
    return bool(words) and any(words in text for text in said)
