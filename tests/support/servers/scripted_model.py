"""A model that a test has scripted: extractions by turn, decisions by the text of the new fact."""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mnemolog.schemas.provenance import Verdict
from tests.support.builders.model_replies import decision_json, decisions_reply, facts_reply
from tests.support.servers.canned_replies import ChatRequest

_KNOWN = re.compile(r"^K(\d+) \((.*?)\): (.+)$", re.MULTILINE)
_NEW = re.compile(r"^N(\d+) \(.*?\): (.+)\n  said: .*\n  may concern: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionPrompt:
    """A resolution prompt: what is new and known by its number, which known ones are `candidates` to each new one."""

    new: Mapping[int, str]
    known: Mapping[int, str]
    candidates: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, request: ChatRequest) -> "ResolutionPrompt":
        known = _KNOWN.findall(request.question)
        new = _NEW.findall(request.question)
        return cls(
            new={int(number): text for number, text, _ in new},
            known={int(label): text for label, _, text in known},
            candidates={int(number): tuple(map(int, re.findall(r"K(\d+)", concerns))) for number, _, concerns in new},
        )

    def label_of(self, text: str) -> int:
        """The number of the known fact that says `text`."""
        return next(label for label, known in self.known.items() if known == text)

    def has_new_fact(self, text: str) -> bool:
        return text in self.new.values()


@dataclass(frozen=True, slots=True)
class ScriptedDecision:
    """A verdict with its targets by their texts; without `target_texts` the first candidate, for ADD none."""

    action: Verdict
    target_texts: tuple[str, ...] = ()
    text: str | None = None

    def to_json(self, question: ResolutionPrompt, number: int) -> dict[str, Any]:
        labels = [question.label_of(text) for text in self.target_texts]
        if not labels and self.action != "ADD":
            labels = [question.candidates[number][0]]
        return decision_json(number, self.action, *labels, text=self.text)


@dataclass(slots=True)
class ScriptedModel:
    """Replies for the test server. A fact without a scripted decision is added, and listed in `unexpected_facts`."""

    extractions: dict[str, str] = field(default_factory=dict)
    decisions: dict[str, ScriptedDecision] = field(default_factory=dict)
    answers: dict[str, deque[str]] = field(default_factory=dict)
    unexpected_facts: list[str] = field(default_factory=list)
    requests: list[ChatRequest] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> str:
        self.requests.append(request)
        if request.turn_id is not None:
            return self.extractions.get(request.turn_id, facts_reply())
        question = ResolutionPrompt.of(request)
        waiting = next((self.answers[text] for text in question.new.values() if self.answers.get(text)), None)
        if waiting is None:
            self.unexpected_facts += [text for text in question.new.values() if text not in self.decisions]
            add = ScriptedDecision("ADD")
            new = question.new.items()
            return decisions_reply(*(self.decisions.get(text, add).to_json(question, number) for number, text in new))
        # The last answer is repeated for every further question.
        return waiting.popleft() if len(waiting) > 1 else waiting[0]

    def requests_about(self, text: str) -> list[ChatRequest]:
        """The resolution prompts in which `text` is a new fact, re-prompts too."""
        return [one for one in self.requests if one.turn_id is None and ResolutionPrompt.of(one).has_new_fact(text)]

    def repair_messages(self, text: str) -> list[str]:
        """The complaints that the model got about its invalid replies about `text`."""
        asked = [request.body["messages"] for request in self.requests_about(text)]
        return [messages[-1]["content"] for messages in asked if messages[-2]["role"] == "assistant"]
