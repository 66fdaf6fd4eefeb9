"""What the test server's model says: recorded facts of real dialogues, or an echo of what was said."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.paths import ROOT

_TURN_ID = re.compile(r"^turn_id: (.+)$", re.MULTILINE)
_MESSAGE = re.compile(r"^(system|user|assistant|tool)(?: \((.*?)\))?: (.+)$", re.MULTILINE)
_NEW = re.compile(r"^N(\d+)(?: \(.*?\))?: (.+)\n(?:  said: .*\n)?  may concern: (.*)$", re.MULTILINE)
_KNOWN = re.compile(r"^K(\d+)(?: \(.*?\))?: (.+)$", re.MULTILINE)
_SAME = 0.8  # share of common words from which two facts say the same
_SAME_START = 3  # words; facts that begin alike and end otherwise are of one slot
_EXCERPT = 80


@dataclass(frozen=True)
class ChatRequest:
    """A completion that was asked for, as it came in."""

    body: Mapping[str, Any]

    @cached_property
    def question(self) -> str:
        """The first user message: a re-prompt repeats it and adds its complaints."""
        return next((message["content"] for message in self.body["messages"] if message["role"] == "user"), "")

    @property
    def turn_id(self) -> str | None:
        found = _TURN_ID.search(self.question)
        return found[1].strip() if found else None

    @property
    def messages(self) -> list[tuple[str, str, str]]:
        """(role, name, first line) of each message that is asked about."""
        conversation = self.question.partition("conversation:\n")[2] or self.question
        return [(found[1], found[2] or "", found[3]) for found in _MESSAGE.finditer(conversation)]


Replies = Callable[[ChatRequest], str]


class EchoReplies:
    """Each user message is one fact; the simplest rule resolves."""

    def __call__(self, request: ChatRequest) -> str:
        if request.turn_id is None:
            return word_overlap_decisions(request.question)
        return _facts(fact_json(line, line) for role, _, line in request.messages if role == "user")


class MappedReplies:
    """The reply whose key occurs in the question; without one, no facts."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        self._replies = replies

    def __call__(self, request: ChatRequest) -> str:
        return next((reply for key, reply in self._replies.items() if key in request.question), _facts(()))


class LocomoReplies:
    """The facts that a language model once found, told at the last turn that each of them comes from."""

    def __init__(self, observations: Path) -> None:
        self._by_turn: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for line in observations.read_bytes().splitlines():
            seen = orjson.loads(line)
            if seen["evidence"]:
                self._by_turn[seen["evidence"][-1]].append((seen["subject"], seen["fact"]))

    def __call__(self, request: ChatRequest) -> str:
        if request.turn_id is None:
            return word_overlap_decisions(request.question)
        quotes = [line for _, _, line in request.messages] or [""]
        known = self._by_turn.get(request.turn_id, [])
        return _facts(fact_json(text, quotes[-1], subject) for subject, text in known)

    @property
    def turns(self) -> frozenset[str]:
        """Ids of the turns that have facts."""
        return frozenset(self._by_turn)

    def fact_count(self, turn_id: str) -> int:
        return len(self._by_turn.get(turn_id, ()))


def locomo_folder() -> Path:
    """The dialogues' folder. Skips the test where there is none: they may not be copied into this repository."""
    folder = Path(os.environ.get("MNEMOLOG_TEST_DIALOGUES") or ROOT.parent / "shared" / "data" / "locomo")
    if not (folder / "observations.jsonl").is_file():
        pytest.skip(f"no LoCoMo dialogues in {folder}; set MNEMOLOG_TEST_DIALOGUES to their folder")
    return folder


def fact_json(text: str, quote: str, subject: str | None = None) -> dict[str, Any]:
    """One fact in the form of the extraction reply; its excerpt is the beginning of `quote`."""
    return {
        "excerpt": quote[:_EXCERPT].strip(),
        "text": text,
        "search_text": text,
        "key": None,
        "value": None,
        "single_valued": False,
        "category": "other",
        "importance_category": "specific_event",
        "certainty": "explicit",
        "subject": subject,
        "event_time": None,
        "valid_until": None,
        "action_hint": "new",
    }


def _facts(facts: Iterator[dict[str, Any]] | tuple[dict[str, Any], ...]) -> str:
    return orjson.dumps({"facts": list(facts)}).decode()


def word_overlap_decisions(question: str) -> str:
    """KEEP where nearly all words are the same, REPLACE where only the end differs, else ADD."""
    known = {int(label): text for label, text in _KNOWN.findall(question)}
    used: set[int] = set()
    decisions = []
    for number, text, concerns in _NEW.findall(question):
        labels = [int(label) for label in re.findall(r"K(\d+)", concerns)]
        action, target = _action_and_target(text, {label: known[label] for label in labels if label not in used})
        used |= {target} if action == "REPLACE" else set()
        decisions.append(
            {
                "new": int(number),
                "reason": "compared word by word",
                "action": action,
                "known": [target] if target else [],
                "text": None,
                "search_text": None,
                "ended_at": None,
            }
        )
    return orjson.dumps({"decisions": decisions}).decode()


def _action_and_target(text: str, known: Mapping[int, str]) -> tuple[str, int]:
    words = text.casefold().split()
    for label, other in known.items():
        theirs = other.casefold().split()
        if len({*words} & {*theirs}) / len({*words} | {*theirs}) >= _SAME:
            return "KEEP", label
        if words[:_SAME_START] == theirs[:_SAME_START]:
            return "REPLACE", label
    return "ADD", 0
