"""Answers prompts by rules, in the format that a language model must keep.

`extract` reads turns: `sentences` splits messages, `slots` and `names_in_text` read clauses. `resolve` decides.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from mnemolog.streams.llm.ports import (
    ExtractionTask,
    NumberedConflicts,
    Prompt,
    PromptRefusedError,
    Reply,
    SharedPrompt,
    SummaryTask,
    TaskPrompt,
)
from mnemolog.streams.llm.summary_prompt import joined_facts
from mnemolog.streams.offline.extract import read_mood_of, read_turn
from mnemolog.streams.offline.resolve import judge


class RuleModel:
    """The same prompt gives the same reply, at no cost. It needs no closing."""

    model: Final = "rules-4"

    async def complete(self, prompt: Prompt) -> Reply:
        """As `ChatModel`; a prompt for another model, or without its task, is refused."""
        if prompt.model not in (None, self.model):
            detail = f"the offline provider has no model but {self.model}: leave chat_model out, or name a provider"
            raise PromptRefusedError("unknown_model", detail)
        if isinstance(prompt, SharedPrompt):
            tasks: Sequence[ExtractionTask | NumberedConflicts] = prompt.tasks
            parts = [{"turn": number, **_answer(task)} for number, task in enumerate(tasks, 1)]
            return Reply(text=orjson.dumps({"turns": parts}).decode(), model=self.model)
        if not isinstance(prompt, TaskPrompt):
            raise PromptRefusedError("no_task", "the offline provider answers only the prompts of Mnemolog's stages")
        return Reply(text=orjson.dumps(_answer(prompt.task)).decode(), model=self.model)

    async def close(self) -> None:
        return None


def _answer(task: ExtractionTask | NumberedConflicts | SummaryTask) -> dict[str, Any]:
    match task:
        case ExtractionTask():
            facts, left_out = read_turn(task.turn, task.background.messages)
            fallback = "other" if "other" in task.categories else task.categories[-1]
            stated = [
                # `importance` follows from its category; a reply does not carry it.
                fact.model_dump(mode="json", exclude={"importance"})
                | {"category": fact.category if fact.category in task.categories else fallback}
                for fact in facts
            ]
            omitted = [{"text": sentence.text, "reason": sentence.omitted} for sentence in left_out]
            mood = {"mood": read_mood_of(task.turn)} if task.detect_mood else {}
            return {"facts": stated, "omitted": omitted, **mood}
        case SummaryTask():
            return {"sentences": joined_facts(task)}
        case _:
            return {"decisions": list(judge(task))}
