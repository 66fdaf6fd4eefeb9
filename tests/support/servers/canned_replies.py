"""Replies of the test server's model: recorded facts of real dialogues, or an echo of the messages."""

from __future__ import annotations

import calendar
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json, facts_reply

_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_ADDED_MESSAGE = re.compile(r"^(user|assistant|system): (.+)$", re.MULTILINE)
_SAME_START = 3  # words; facts that begin alike are related


def asks_for_additions(question: str) -> bool:
    return "\n## New Messages\n" in question


def additions(question: str) -> str:
    """Each user message is one memory, linked to the known ones that begin alike."""
    sections = dict(_SECTION.findall(question))
    known = orjson.loads(sections["Existing Memories"])
    said = [text for role, text in _ADDED_MESSAGE.findall(sections["New Messages"]) if role == "user"]
    memories = [_memory(number, text, known) for number, text in enumerate(said)]
    return orjson.dumps({"memory": memories}).decode()


def _memory(number: int, text: str, known: list[dict[str, str]]) -> dict[str, object]:
    related = [each["id"] for each in known if _start(each["text"]) == _start(text)]
    return {"id": str(number), "text": text, "attributed_to": "user", "linked_memory_ids": related}


def _start(text: str) -> list[str]:
    return text.casefold().split()[:_SAME_START]


_TURN_ID = re.compile(r"^turn_id: (.+)$", re.MULTILINE)
_TURN = re.compile(r"^turn \d+\n", re.MULTILINE)
_MESSAGE = re.compile(r"^(?:\d+ )?(system|user|assistant|tool)(?: \((.*?)\))?: (.+)$", re.MULTILINE)
_FIRST_LINE = re.compile(r"^(\d+) (?:user|tool)", re.MULTILINE)
_NEW = re.compile(r"^N(\d+)(?: \(.*?\))?: (.+)\n(?:  said: .*\n)?  may concern: (.*)$", re.MULTILINE)
_NAME = re.compile(r'^M(\d+) "', re.MULTILINE)
_KNOWN = re.compile(r"^K(\d+)(?: \(.*?\))?: (.+)$", re.MULTILINE)
_SAME = 0.8  # share of common words from which two facts say the same
_EXCERPT = 80
_CAPITALS = re.compile(r"(?<=[a-z,;:] )[A-Z][\w&-]+(?: [A-Z][\w&-]+)*")
_DAYS_AND_MONTHS = frozenset({*calendar.day_name, *calendar.month_name})


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

    @cached_property
    def turns(self) -> tuple[ChatRequest, ...]:
        """Of a question about several turns a question about each of them; else none."""
        _, *texts = _TURN.split(self.question)
        return tuple(ChatRequest({**self.body, "messages": [{"role": "user", "content": text}]}) for text in texts)

    @property
    def messages(self) -> list[tuple[str, str, str]]:
        """(role, name, first line) of each message that is asked about."""
        conversation = self.question.partition("conversation:\n")[2] or self.question
        return [(found[1], found[2] or "", found[3]) for found in _MESSAGE.finditer(conversation)]


Replies = Callable[[ChatRequest], str]


def reply_to(request: ChatRequest, replies: Replies) -> str:
    """The reply to a question; to one about several turns what would be said about each of them.

    Of names in doubt nobody can tell whom they mean, unless `replies` say so.
    """
    if not request.turns:
        return with_name_answers(request.question, replies(request))
    parts = [orjson.loads(replies(turn)) for turn in request.turns]
    lines = [_FIRST_LINE.search(turn.question) for turn in request.turns]
    facts = [
        fact | {"line": int(line[1]) if line else 0}
        for part, line in zip(parts, lines, strict=True)
        for fact in part["facts"]
    ]
    moods = [mood for part in parts for mood in part.get("moods", ())]
    return orjson.dumps({"facts": facts} | ({"moods": moods} if moods else {})).decode()


def with_name_answers(question: str, reply: str) -> str:
    """A reply to a question that has names in doubt, with 0 for each of them where it says nothing of names."""
    numbers = [int(number) for number in _NAME.findall(question)]
    if not numbers or '"M1"' in reply or not reply.startswith('{"decisions"'):
        return reply
    decisions = orjson.loads(reply)["decisions"] if _NEW.search(question) else []
    return decisions_reply(*decisions, names=dict.fromkeys(numbers, 0))


class EchoReplies:
    """Each user message is one fact; the simplest rule resolves."""

    def __call__(self, request: ChatRequest) -> str:
        if asks_for_additions(request.question):
            return additions(request.question)
        if request.turn_id is None:
            return word_overlap_decisions(request.question)
        return facts_reply(*(_quoted(line, line) for role, _, line in request.messages if role == "user"))


class MappedReplies:
    """The reply whose key occurs in the question; without one, no facts."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        self._replies = replies

    def __call__(self, request: ChatRequest) -> str:
        return next((reply for key, reply in self._replies.items() if key in request.question), facts_reply())


class LocomoReplies:
    """The facts that a language model once found, returned at the last turn that each of them comes from.

    Where it `leaves_out_speakers`, every second fact of a turn that is about who speaks has no subject. Where it
    `names_entities`, a fact names what has capitals within its sentence.
    """

    def __init__(self, observations: Path, *, leaves_out_speakers: bool = False, names_entities: bool = False) -> None:
        self._leaves_out_speakers = leaves_out_speakers
        self._names_entities = names_entities
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
        speakers = {name for _, name, _ in request.messages} if self._leaves_out_speakers else set[str]()
        return facts_reply(
            *(
                _quoted(
                    text,
                    quotes[-1],
                    subject=None if place % 2 == 0 and subject in speakers else subject,
                    entities=self._entities(text, subject),
                )
                for place, (subject, text) in enumerate(known)
            )
        )

    def _entities(self, text: str, subject: str) -> list[dict[str, str]]:
        if not self._names_entities:
            return []
        found = dict.fromkeys(_CAPITALS.findall(text))
        named = [name for name in found if name != subject and name not in _DAYS_AND_MONTHS]
        return [
            {"name": name, "type": "person" if name in self._people else "other", "role": "mention"} for name in named
        ]

    @cached_property
    def _people(self) -> frozenset[str]:
        """Whom the facts are about."""
        return frozenset(subject for facts in self._by_turn.values() for subject, _ in facts)

    @property
    def turns(self) -> frozenset[str]:
        """Ids of the turns that have facts."""
        return frozenset(self._by_turn)

    def fact_count(self, turn_id: str) -> int:
        return len(self._by_turn.get(turn_id, ()))


def _quoted(text: str, message: str, **fields: Any) -> dict[str, Any]:
    return fact_json(text, excerpt=first_words(message, _EXCERPT), **fields)


def first_words(text: str, limit: int) -> str:
    """The whole words that `text` begins with, of at most `limit` characters."""
    return text.strip() if len(text) <= limit else text[: limit + 1].rsplit(None, 1)[0].strip()


def word_overlap_decisions(question: str) -> str:
    """KEEP where nearly all words are the same, REPLACE where only the end differs, else ADD."""
    known = {int(label): text for label, text in _KNOWN.findall(question)}
    used: set[int] = set()
    decisions = []
    for number, text, concerns in _NEW.findall(question):
        labels = [int(label) for label in re.findall(r"K(\d+)", concerns)]
        action, target = _action_and_target(text, {label: known[label] for label in labels if label not in used})
        used |= {target} if action == "REPLACE" else set()
        decisions.append(decision_json(int(number), action, *([target] if target else [])))
    return decisions_reply(*decisions)


def _action_and_target(text: str, known: Mapping[int, str]) -> tuple[str, int]:
    words = text.casefold().split()
    for label, other in known.items():
        theirs = other.casefold().split()
        if len({*words} & {*theirs}) / len({*words} | {*theirs}) >= _SAME:
            return "KEEP", label
        if words[:_SAME_START] == theirs[:_SAME_START]:
            return "REPLACE", label
    return "ADD", 0
