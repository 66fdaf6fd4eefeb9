"""A chat model without a model: answers the two prompts by rules, in the format that a language model must keep."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.errors import PromptRefusedError
from mnemolog.streams.llm.ports import ExtractionTask, Prompt, Reply, TaskPrompt
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.resolve import judge


class RuleModel:
    """The same prompt gives the same reply, at no cost. It needs no closing."""

    @property
    def model(self) -> str:
        return "rules-2"

    async def complete(self, prompt: Prompt) -> Reply:
        """As `ChatModel`; a prompt for another model, or without its task, is refused."""
        if prompt.model not in (None, self.model):
            detail = f"the offline provider has no model but {self.model}: leave chat_model out, or name a provider"
            raise PromptRefusedError("unknown_model", detail)
        if not isinstance(prompt, TaskPrompt):
            raise PromptRefusedError("no_task", "the offline provider answers prompts of Mnemolog only")
        task = prompt.task
        reply = _extraction(task) if isinstance(task, ExtractionTask) else {"decisions": [_NO_MERGE | asdict(one) for one in judge(task)]}
        return Reply(text=orjson.dumps(reply).decode(), model=self.model)

    async def close(self) -> None:
        return None


_NO_MERGE: Mapping[str, Any] = {"text": None, "search_text": None, "ended_at": None}


def _extraction(task: ExtractionTask) -> dict[str, Any]:
    reading = read_turn(task.turn)
    return {
        "facts": [_stated(fact, task.categories) for fact in reading.facts.values()],
        "left_out": [one.model_dump(mode="json", include={"text", "reason"}) for one in reading.omitted],
    }


def _stated(fact: ExtractedFact, categories: tuple[str, ...]) -> dict[str, Any]:
    """`importance` follows from its category; a reply does not carry it."""
    fallback = "other" if "other" in categories else categories[-1]
    category = fact.category if fact.category in categories else fallback
    return fact.model_dump(mode="json", exclude={"importance"}) | {"category": category}
