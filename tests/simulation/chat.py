"""The simulated chat model: it says of each turn its number, and decides conflicts by a rule of its own."""

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from mnemolog.streams.llm.calls import CallFailure, CallRetrier
from mnemolog.streams.llm.ports import ExtractionTask, Prompt, Reply, SharedPrompt, TaskPrompt
from tests.simulation.conflict_model import decisions_on

EXTRACT_SECONDS: Final = 0.5
RESOLVE_SECONDS: Final = 0.2
SLOW_SECONDS: Final = 8.0
"""Of a prompt with a slow turn in it."""


@dataclass(frozen=True)
class SimulatedChat:
    """A chat model with the retries of the real one."""

    server: Any
    retrier: CallRetrier
    model: str = "simulated"

    async def complete(self, prompt: Prompt) -> Reply:
        answer = self._decide if prompt.purpose == "resolve" else self._extract

        async def attempt() -> Reply | CallFailure:
            return await answer(prompt)

        return await self.retrier.call(attempt, divisible=isinstance(prompt, SharedPrompt))

    async def close(self) -> None: ...

    async def _extract(self, prompt: Prompt) -> Reply | CallFailure:
        tasks = _tasks_of(prompt)
        kinds = {str(task.turn.metadata["kind"]) for task in tasks}
        poison = "http_429" if "poison_prompt" in kinds else None
        failure = await self.server.call(poison, SLOW_SECONDS if "slow" in kinds else EXTRACT_SECONDS)
        return failure or Reply(text=_excerpts(prompt, tasks), model=self.model)

    async def _decide(self, prompt: Prompt) -> Reply | CallFailure:
        is_slow = ": slow number" in prompt.messages[-1].content
        failure = await self.server.call(None, SLOW_SECONDS if is_slow else RESOLVE_SECONDS)
        return failure or Reply(text=decisions_on(prompt), model=self.model)


def _tasks_of(prompt: Prompt) -> tuple[ExtractionTask, ...]:
    asked = prompt.tasks if isinstance(prompt, SharedPrompt) else (cast("TaskPrompt", prompt).task,)
    return cast("tuple[ExtractionTask, ...]", asked)


def _excerpts(prompt: Prompt, tasks: tuple[ExtractionTask, ...]) -> str:
    facts = [[{"excerpt": task.turn.messages[0].content}] for task in tasks]
    if not isinstance(prompt, SharedPrompt):
        return json.dumps({"facts": facts[0]})
    return json.dumps({"turns": [{"turn": number, "facts": said} for number, said in enumerate(facts, 1)]})
