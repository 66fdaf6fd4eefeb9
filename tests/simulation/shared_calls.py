"""Turns that wait share a call for their extraction, with the product's own sharer."""

import json
from typing import Any

from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import NO_BACKGROUND, Background
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.llm.cached_models import CachedChatModel
from mnemolog.streams.llm.shared_prompt import CallTurn
from mnemolog.streams.stages.shared_calls import CallSharer, TurnQuestions, WaitingTurns


class _NoBackgrounds:
    """Turns are shown nothing: the question of a turn is the same at each delivery."""

    def remember(self, *_: object) -> None: ...

    def forget(self, *_: object) -> None: ...

    async def background_of(self, *_: object) -> Background:
        return NO_BACKGROUND

    async def read_background(self, *_: object) -> tuple[Background, None]:
        return NO_BACKGROUND, None


class SharedExtractions:
    """Asks for the extraction of a turn, together with turns that wait."""

    def __init__(self, model: CachedChatModel, world: Any) -> None:
        self._model = model
        self._sharer = CallSharer(model, TurnQuestions(_NoBackgrounds(), CATEGORIES, ()), world.now)
        turns = 1 + world.load.seed % 2 * 3
        self._rules = EffectivePolicy(call_turns=turns, call_linger=world.load.seed % 3 * 0.2)

    async def ask(self, placed: CallTurn, waiting_turns: WaitingTurns) -> None:
        """Ask; the reply has to be about this very turn."""
        question = await self._sharer.question_of(placed, self._rules, waiting_turns)
        asked = question.asked
        reply = await self._model.for_source(asked.source, asked.prompt)(asked.prompt, 0)
        said = [fact["excerpt"] for fact in json.loads(reply.text)["facts"]]
        if said != [placed.turn.messages[0].content]:
            raise SourceEndedError("wrong_part", f"{placed.turn.turn_id} got the reply {said}")
