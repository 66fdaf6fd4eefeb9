"""Answers prompts by rules, in the format that a language model must keep."""

from typing import Any, Final

import orjson

from mnemolog.streams.llm import ports
from mnemolog.streams.llm.summary_prompt import joined_facts
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.resolve import judge


class RuleModel:
    """The same prompt gives the same reply, at no cost. It needs no closing, and tells no mood."""

    model: Final = "rules-4"

    async def complete(self, prompt: ports.Prompt) -> ports.Reply:
        """As `ChatModel`; a prompt for another model, about several turns or without its task, is refused."""
        if prompt.model not in (None, self.model):
            detail = f"the offline provider has no model but {self.model}: leave chat_model out, or name a provider"
            raise ports.PromptRefusedError("unknown_model", detail)
        if not isinstance(prompt, ports.TaskPrompt):
            raise ports.PromptRefusedError("no_task", "the offline provider answers only prompts of Mnemolog's stages")
        return ports.Reply(text=orjson.dumps(_answer(prompt.task)).decode(), model=self.model)

    async def close(self) -> None:
        return None


def _answer(task: ports.ExtractionTask | ports.NumberedConflicts | ports.SummaryTask) -> dict[str, Any]:
    match task:
        case ports.ExtractionTask():
            facts, left_out = read_turn(task.turn, task.background.messages)
            fallback = "other" if "other" in task.categories else task.categories[-1]
            stated = [fact.model_dump(mode="json", exclude={"importance"}) for fact in facts]  # which replies lack
            for one in stated:
                one["category"] = one["category"] if one["category"] in task.categories else fallback
            return {"facts": stated, "omitted": [{"text": one.text, "reason": one.omitted} for one in left_out]}
        case ports.SummaryTask():
            return {"sentences": joined_facts(task)}
        case _:
            return {"decisions": list(judge(task))}
