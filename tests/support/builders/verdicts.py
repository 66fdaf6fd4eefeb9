"""A scripted model that judges by the texts of the facts, wherever the prompt has them."""

from collections.abc import Callable, Mapping
from typing import Any

from mnemolog.streams.llm.ports import NumberedConflicts, Prompt, TaskPrompt
from tests.support.builders.model_replies import decision_json, decisions_reply

Verdict = tuple[str, str | None, Mapping[str, Any]]


def verdict(action: str, known: str | None = None, **fields: Any) -> Verdict:
    """An action on the known fact of this text, with further fields of the reply."""
    return action, known, fields


def judge_by_text(verdicts: Mapping[str, Verdict]) -> Callable[[Prompt], str]:
    """The reply to a prompt about facts with these texts; what is not named, or was not offered, is added."""

    def reply(prompt: Prompt) -> str:
        assert isinstance(prompt, TaskPrompt)
        assert isinstance(prompt.task, NumberedConflicts)
        decisions = []
        for conflict in prompt.task.conflicts:
            action, text, fields = verdicts.get(conflict.fact.text, verdict("ADD"))
            labels = [label for label, known in conflict.candidates if known.text == text]
            decisions.append(decision_json(conflict.number, action if labels else "ADD", *labels, **fields))
        return decisions_reply(*decisions)

    return reply
