"""Asks about the conflicts of turns that wait together with those of the turn that is decided."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from mnemolog.projections.logs import get_logger
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Step
from mnemolog.streams import metrics
from mnemolog.streams.llm.ask import with_unused
from mnemolog.streams.llm.ports import NumberedConflicts, SourceChatModel, SourceQuestion
from mnemolog.streams.resolution.turn import PreparedTurn, TurnDecider
from mnemolog.streams.shared_calls.call_turns import most_turns
from mnemolog.streams.shared_calls.call_wait import CallWait
from mnemolog.streams.shared_calls.divided_call import TURN_ERRORS, ask_divided
from mnemolog.streams.shared_conflicts.conflict_prompt import conflicts_prompt, divide_decisions, question_tokens
from mnemolog.streams.shared_conflicts.waiting_turns import UndecidedTurn, questions_ahead

MAX_REMEMBERED: Final = 4096
LOOKED_AT: Final = 2
"""For each turn that a call may ask about so many are looked at: most turns have no conflict."""

TurnsBehind = Callable[[int, CallWait], Awaitable[Sequence[MatchedFacts]]]
"""At most so many turns that wait behind one of its owner, in their order, up to the first command.

Those that are sure to come are in the stages before.
"""
ReadTurn = Callable[[MatchedFacts], Awaitable[UndecidedTurn | None]]
"""What is known of a turn that waits; None for one that needs no decision."""
_Id = tuple[str, str, int]

log = get_logger(__name__)


async def nothing_behind(_most: int, _wait: CallWait) -> Sequence[MatchedFacts]:
    """No turn waits."""
    return ()


class ConflictSharer:
    """Finds what waiting turns will ask, and asks. Each gets its part as the stored reply to its own question.

    A turn finds that reply only if it asks this very question when its turn comes; else it asks alone. No turn is asked
    about ahead twice.
    """

    def __init__(self, model: SourceChatModel, decider: TurnDecider, clock: Callable[[], datetime]) -> None:
        self._model = model
        self._decider = decider
        self._clock = clock
        # By turn what was asked ahead about it and is not used yet, else None.
        self._asked: OrderedDict[_Id, SourceQuestion | None] = OrderedDict()
        self._refused: OrderedDict[_Id, SourceQuestion | None] = OrderedDict()

    async def before_call(
        self,
        prepared: PreparedTurn,
        question: SourceQuestion,
        *,
        rules: EffectivePolicy,
        behind: TurnsBehind,
        read: ReadTurn,
    ) -> None:
        """Have a question asked together with those of the turns behind it, where it has no reply and they may.

        One about names is asked alone.
        """
        own = _id(prepared.turn)
        asked = self._asked.get(own)
        if asked is not None and asked.prompt.messages == question.prompt.messages:
            self._asked[own] = None
            metrics.CONFLICTS_AHEAD.labels(result="used").inc()
            return
        most = most_turns(rules)
        if most == 1 or _task(question).doubtful_names or own in self._refused or await self._model.has_reply(question):
            return
        others = await self._others(
            prepared, rules, most, partial(self._waiting, behind, read, self._wait(prepared.turn))
        )
        if others:
            first = (prepared.turn, question)
            async for (turn, one), has_part in ask_divided([first, *others], self._ask_once):
                if turn is not prepared.turn:
                    _keep(self._asked, _id(turn), one if has_part else None)
                if not has_part:
                    _keep(self._refused, _id(turn), None)

    async def with_unused(self, turn: MatchedFacts, step: Step) -> Step:
        """The step of a decided turn, with what was paid for an answer about it that it did not ask for in the end."""
        asked = self._asked.get(_id(turn))
        if asked is None:
            return step
        self._asked[_id(turn)] = None
        metrics.CONFLICTS_AHEAD.labels(result="changed").inc()
        if not await self._model.has_reply(asked):
            return step
        return with_unused(step, [await self._model.for_source(asked.source, asked.prompt)(asked.prompt, 0)])

    def _wait(self, turn: MatchedFacts) -> CallWait:
        return CallWait.of_conflicts((self._clock() - turn.published_at).total_seconds())

    async def _waiting(self, behind: TurnsBehind, read: ReadTurn, wait: CallWait, most: int) -> list[UndecidedTurn]:
        read_turns = await asyncio.gather(*map(read, await behind(most, wait)))
        return [one for one in read_turns if one is not None]

    async def _others(
        self,
        prepared: PreparedTurn,
        rules: EffectivePolicy,
        most: int,
        waiting: Callable[[int], Awaitable[list[UndecidedTurn]]],
    ) -> list[tuple[MatchedFacts, SourceQuestion]]:
        """What is asked together with a turn; nothing where one behind it is at fault: that one fails in its turn."""
        try:
            found = await questions_ahead(prepared, await waiting(LOOKED_AT * most), self._decider, self._clock)
        except TURN_ERRORS as error:
            log.info("shared_call_failed", turns=1, error=str(error).strip())
            return []
        new = [(turn, one) for turn, one in found if _id(turn) not in self._asked]
        replied = await asyncio.gather(*(self._model.has_reply(one) for _, one in new))
        others: list[tuple[MatchedFacts, SourceQuestion]] = []
        tokens = question_tokens(_task(prepared.question)) if prepared.question else 0
        for (turn, one), has_reply in zip(new, replied, strict=True):
            tokens += question_tokens(_task(one))
            if tokens > rules.call_tokens or len(others) + 1 >= most:
                break
            others += [] if has_reply else [(turn, one)]
        return others

    async def _ask_once(self, questions: Sequence[tuple[MatchedFacts, SourceQuestion]]) -> Sequence[bool]:
        tasks = [_task(question) for _, question in questions]
        return await self._model.ask_together(
            [question for _, question in questions],
            conflicts_prompt(tasks),
            partial(divide_decisions, tasks=tasks),
        )


def _id(turn: MatchedFacts) -> _Id:
    return turn.owner, turn.source_id, turn.origin.offset


def _task(question: SourceQuestion | None) -> NumberedConflicts:
    if question is None or not isinstance(question.prompt.task, NumberedConflicts):
        raise AssertionError("the question of a resolution is about conflicts")
    return question.prompt.task


def _keep(kept: OrderedDict[_Id, SourceQuestion | None], key: _Id, value: SourceQuestion | None) -> None:
    kept[key] = value
    while len(kept) > MAX_REMEMBERED:
        kept.popitem(last=False)
