"""Replies to a prompt that asks for additions only, with sections in Markdown: the one of the `mem0ai` package."""

from __future__ import annotations

import re

import orjson

_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_MESSAGE = re.compile(r"^(user|assistant|system): (.+)$", re.MULTILINE)
_SAME_START = 3  # words; facts that begin alike are related


def asks_for_additions(question: str) -> bool:
    return "\n## New Messages\n" in question


def additions(question: str) -> str:
    """Each user message is one memory, linked to the known ones that begin alike."""
    sections = dict(_SECTION.findall(question))
    known = orjson.loads(sections["Existing Memories"])
    said = [text for role, text in _MESSAGE.findall(sections["New Messages"]) if role == "user"]
    memories = [_memory(number, text, known) for number, text in enumerate(said)]
    return orjson.dumps({"memory": memories}).decode()


def _memory(number: int, text: str, known: list[dict[str, str]]) -> dict[str, object]:
    related = [each["id"] for each in known if _start(each["text"]) == _start(text)]
    return {"id": str(number), "text": text, "attributed_to": "user", "linked_memory_ids": related}


def _start(text: str) -> list[str]:
    return text.casefold().split()[:_SAME_START]
