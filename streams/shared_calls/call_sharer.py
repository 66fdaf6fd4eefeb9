"""Asks about the turns of a conversation that wait behind one together with it, before it asks about that one."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from mnemolog.projections.logs import get_logger
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.streams.llm.ports import SourceChatModel
from mnemolog.streams.shared_calls.call_turns import CallTurn, may_share, most_turns, turns_together
from mnemolog.streams.shared_calls.call_wait import CallWait
from mnemolog.streams.shared_calls.divided_call import TURN_ERRORS, ask_divided
from mnemolog.streams.shared_calls.reply_parts import divide_reply
from mnemolog.streams.shared_calls.shared_prompt import known_together, shared_prompt
from mnemolog.streams.shared_calls.turn_questions import TurnQuestion, TurnQuestions

MAX_REMEMBERED: Final = 4096
LOOKED_AT: Final = 3
"""For each turn that a call may ask about so many records are looked at: some are of other runs, or ask no model."""
Behind = Callable[[int, int, CallWait], Awaitable[Sequence[CallTurn | None]]]
"""The records behind one of its owner: waits for so many of them, and gives at most so many.

Those that are sure to come are those of its partition that are not read.
"""

log = get_logger(__name__)


class CallSharer:
    """Finds the turns that share a call, and asks. Each gets its part as the stored reply to its own question.

    So a turn whose turn comes asks as if it were alone, and finds its reply, also after a restart. `clock` gives the
    time, for how long a turn has waited.
    """

    def __init__(self, model: SourceChatModel, questions: TurnQuestions, clock: Callable[[], datetime]) -> None:
        self._model = model
        self._questions = questions
        self._clock = clock
        # By turn its question, where it has a part of a reply; None where it is to be asked about alone.
        self._asked: OrderedDict[tuple[str, str, int], TurnQuestion | None] = OrderedDict()

    def is_answered(self, placed: CallTurn, rules: EffectivePolicy) -> bool:
        """Whether this process has asked about a turn together with others, by these rules, and got a reply."""
        return self._answered(placed, rules) is not None

    def is_outdated(self, placed: CallTurn, rules: EffectivePolicy) -> bool:
        """Whether it got a reply by other rules, which it does not use."""
        return self._asked.get(_id(placed)) is not None and not self.is_answered(placed, rules)

    def _answered(self, placed: CallTurn, rules: EffectivePolicy) -> TurnQuestion | None:
        known = self._asked.get(_id(placed))
        return known if known is not None and known.task.instructions == rules.instructions else None

    async def question_of(self, placed: CallTurn, rules: EffectivePolicy, behind: Behind) -> TurnQuestion:
        """What a turn asks alone. Those behind it that may share its call are asked about first, together with it.

        A turn that was asked about with others before is not asked about with others again.
        """
        if known := self._answered(placed, rules):
            self._asked[_id(placed)] = None
            return known
        first = await self._questions.question_of(placed, rules)
        is_first = most_turns(rules) > 1 and may_share(placed, rules) and _id(placed) not in self._asked
        if is_first and (others := await self._others_if_readable(first, rules, behind)):
            await self._ask([first, *others], rules)
            self._asked[_id(placed)] = None
        return first

    async def _others_if_readable(
        self, first: TurnQuestion, rules: EffectivePolicy, behind: Behind
    ) -> list[TurnQuestion]:
        """As `_others`; none where one of them is at fault: it fails when its turn comes, and not this one."""
        try:
            return await self._others(first, rules, behind)
        except TURN_ERRORS as error:
            log.info("shared_call_failed", turns=1, error=str(error).strip())
            return []

    async def _others(self, first: TurnQuestion, rules: EffectivePolicy, behind: Behind) -> list[TurnQuestion]:
        """The questions to ask together with the first one; none where that has a reply."""
        most = most_turns(rules)
        wait = CallWait.of_extraction(self._seconds_waited(first.placed), linger=rules.call_linger)
        if wait and await self._model.has_reply(first.asked):
            return []
        waiting = await behind(most - 1, LOOKED_AT * most, wait)
        _, *others = turns_together(first.placed, waiting, rules)
        others = [one for one in others if _id(one) not in self._asked]
        if not others or await self._model.has_reply(first.asked):
            return []
        scope, last = first.placed.turn.scope, others[-1].offset
        conversation = [one for one in waiting if one is not None and one.turn.scope == scope and one.offset <= last]
        questions = await self._questions.questions_of(others, conversation, rules)
        replied = await asyncio.gather(*(self._model.has_reply(one.asked) for one in questions))
        return [one for one, has_reply in zip(questions, replied, strict=True) if not has_reply]

    def _seconds_waited(self, placed: CallTurn) -> float:
        return (self._clock() - placed.published_at).total_seconds()

    async def _ask(self, questions: Sequence[TurnQuestion], rules: EffectivePolicy) -> None:
        async for question, has_part in ask_divided(questions, partial(self._ask_once, rules=rules)):
            self._remember(question, has_part=has_part)

    async def _ask_once(self, questions: Sequence[TurnQuestion], rules: EffectivePolicy) -> list[bool]:
        tasks = [one.task for one in questions]
        known = known_together(tasks, tokens=rules.known_tokens)
        found = await self._model.ask_together(
            [one.asked for one in questions],
            shared_prompt(tasks, known),
            partial(divide_reply, tasks=tasks),
            known=tuple(fact.fact_id for fact in known.facts),
            entities=tuple(entity.entity_id for entity in known.entities),
        )
        return list(found)

    def _remember(self, question: TurnQuestion, *, has_part: bool) -> None:
        self._asked[_id(question.placed)] = question if has_part else None
        while len(self._asked) > MAX_REMEMBERED:
            self._asked.popitem(last=False)


def _id(placed: CallTurn) -> tuple[str, str, int]:
    return placed.turn.scope.owner, placed.turn.turn_id, placed.offset
