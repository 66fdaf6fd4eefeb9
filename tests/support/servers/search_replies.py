"""Replies of the test server's model to what searches ask: orders of texts, and other wordings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import orjson

from tests.support.servers.canned_replies import ChatRequest

_TEXT = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_QUESTION = re.compile(r"^question: (.*)$", re.MULTILINE)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


@dataclass
class SearchReplies:
    """Orders texts by how many words they share with the question, and has other wordings for known questions.

    `override` is answered instead of everything else.
    """

    wordings: dict[str, list[str]] = field(default_factory=dict)
    override: str | None = None

    def __call__(self, request: ChatRequest) -> str:
        if self.override is not None:
            return self.override
        asked = _QUESTION.search(request.question)
        question = asked[1] if asked else ""
        if "\ntexts:\n" not in request.question:
            return orjson.dumps({"wordings": self.wordings.get(question, [])}).decode()
        listed = _TEXT.findall(request.question.partition("\ntexts:\n")[2])
        common = {int(number): len(_words(question) & _words(text)) for number, text in listed}
        helpful = [number for number in sorted(common, key=lambda number: -common[number]) if common[number]]
        return orjson.dumps({"numbers": helpful}).decode()
