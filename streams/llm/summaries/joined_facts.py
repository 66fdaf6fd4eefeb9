"""A summary without a model: the facts in their own words, one after another, as far as there is room."""

from typing import Any

from mnemolog.projections.context.tokens import estimate_tokens
from mnemolog.streams.llm.ports import SummaryTask
from mnemolog.streams.llm.reply_parser import MAX_LINE, one_line, shortened


def joined_facts(task: SummaryTask) -> list[dict[str, Any]]:
    """The sentences of a reply: whole facts for which there is room, in their order; one at least, cut if need be."""
    sentences: list[dict[str, Any]] = []
    for number, fact in enumerate(task.facts, 1):
        text = _as_sentence(shortened(one_line(fact.text), MAX_LINE - 1))
        joined = " ".join([*(one["text"] for one in sentences), text])
        if estimate_tokens(joined) <= task.max_tokens:
            sentences.append({"text": text, "facts": [number]})
    return sentences or [{"text": _cut(one_line(task.facts[0].text), task.max_tokens), "facts": [1]}]


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "。")) else f"{text}."


def _cut(text: str, max_tokens: int) -> str:
    """The first words of a text that have at most so many tokens."""
    size = len(text)
    while estimate_tokens(short := shortened(text, size)) > max_tokens:
        size = max(1, size * 3 // 4)
    return short
