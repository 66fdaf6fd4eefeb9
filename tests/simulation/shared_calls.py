"""Turns that wait share a call, with the product's own sharer: the simulated chat model answers for each its number."""

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import NO_BACKGROUND, Background
from mnemolog.streams.llm.cached_models import CachedChatModel
from mnemolog.streams.llm.call_retry import CallFailure, CallRetrier
from mnemolog.streams.llm.ports import ExtractionTask, Prompt, Reply, SharedPrompt, TaskPrompt
from mnemolog.streams.shared_calls.call_sharer import Behind, CallSharer
from mnemolog.streams.shared_calls.call_turns import CallTurn
from mnemolog.streams.shared_calls.turn_questions import TurnQuestions
from mnemolog.streams.stages.errors import SourceEndedError

EXTRACT_SECONDS: Final = 0.5
SLOW_SECONDS: Final = 8.0
"""Of a prompt with a slow turn in it."""


class _NoBackgrounds:
    """Turns are shown nothing: the question of a turn is the same at each delivery."""

    def remember(self, *_: object) -> None: ...

    def forget(self, *_: object) -> None: ...

    async def background_of(self, *_: object) -> Background:
        return NO_BACKGROUND

    async def background_ahead(self, *_: object) -> tuple[Background, None]:
        return NO_BACKGROUND, None


@dataclass(frozen=True)
class SimulatedChat:
    """A chat model with the retries of the real one."""

    server: Any
    retrier: CallRetrier
    model: str = "simulated"

    async def complete(self, prompt: Prompt) -> Reply:
        asked = prompt.tasks if isinstance(prompt, SharedPrompt) else (_task_of(prompt),)
        tasks = cast("tuple[ExtractionTask, ...]", asked)
        kinds = {str(task.turn.metadata["kind"]) for task in tasks}

        async def attempt() -> Reply | CallFailure:
            poison = "http_429" if "poison_prompt" in kinds else None
            failure = await self.server.call(poison, SLOW_SECONDS if "slow" in kinds else EXTRACT_SECONDS)
            return failure or Reply(text=_reply(prompt, tasks), model=self.model)

        return await self.retrier.call(attempt, divisible=isinstance(prompt, SharedPrompt))

    async def close(self) -> None: ...


class SharedExtractions:
    """Asks for the extraction of a turn, together with those behind it."""

    def __init__(self, chat: SimulatedChat, replies: Any, world: Any) -> None:
        self._model = CachedChatModel(chat, replies)
        self._sharer = CallSharer(self._model, TurnQuestions(_NoBackgrounds(), CATEGORIES, ()), world.now)
        turns = 1 + world.load.seed % 2 * 3
        self._rules = EffectivePolicy(call_turns=turns, call_linger=world.load.seed % 3 * 0.2)

    async def ask(self, placed: CallTurn, behind: Behind) -> None:
        """Ask; the reply has to be about this very turn."""
        question = await self._sharer.question_of(placed, self._rules, behind)
        asked = question.asked
        reply = await self._model.for_source(asked.source, asked.prompt)(asked.prompt, 0)
        said = [fact["excerpt"] for fact in json.loads(reply.text)["facts"]]
        if said != [placed.turn.messages[0].content]:
            raise SourceEndedError("wrong_part", f"{placed.turn.turn_id} got the reply {said}")


def _task_of(prompt: Prompt) -> ExtractionTask:
    return cast("ExtractionTask", cast("TaskPrompt", prompt).task)


def _reply(prompt: Prompt, tasks: tuple[ExtractionTask, ...]) -> str:
    facts = [[{"excerpt": task.turn.messages[0].content}] for task in tasks]
    if not isinstance(prompt, SharedPrompt):
        return json.dumps({"facts": facts[0]})
    return json.dumps({"turns": [{"turn": number, "facts": said} for number, said in enumerate(facts, 1)]})
