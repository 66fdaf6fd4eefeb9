"""Divides the reply to a question about several turns, and the tokens that it took, among these turns."""

from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json, to_json

from mnemolog.streams.llm.ports import Reply, Usage
from mnemolog.streams.llm.reply_parser import object_text

Part = dict[str, Any]
"""What a reply says of one turn, in the form that the reply to the question of this turn has."""


def parts_of(reply: Reply, turns: int) -> list[Part | None]:
    """What a reply says of each turn; None where it has no list of facts for the turn, or was cut off within it.

    None for all turns where the reply numbers one that was not asked about: it may count from another number.
    """
    found: list[Part | None] = [None] * turns
    for item in _items(_said(reply)):
        number, listed = (item.get("turn"), item.get("facts")) if isinstance(item, dict) else (None, None)
        if type(number) is not int:  # a bool is an int, too
            continue
        if not 1 <= number <= turns:
            return [None] * turns
        if not isinstance(listed, list):
            continue
        part = {name: value for name, value in item.items() if name != "turn"}
        known = found[number - 1]
        found[number - 1] = part if known is None else {**known, "facts": [*known["facts"], *listed]}
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


def replies_of(reply: Reply, parts: Sequence[Part | None], asked: Sequence[int]) -> list[Reply | None]:
    """Each part as a reply, with its share of the tokens; `asked` is how much of the prompt was about each turn.

    Where the reply has no part at all the first turn gets all of it, in a form that is no valid reply: it is asked
    about again alone, and has what the call took.
    """
    texts = [None if part is None else to_json(part, inf_nan_mode="null").decode() for part in parts]
    if all(text is None for text in texts):
        texts[0] = to_json({"undivided": _said(reply)}).decode()
    weights = [0 if text is None else weight for text, weight in zip(texts, asked, strict=True)]
    usages = divide_usage(reply.usage, weights, [len(text or "") for text in texts])
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


def _said(reply: Reply) -> str:
    """The text of a reply; half a sign is no JSON."""
    return reply.text.encode("utf-8", "replace").decode()
