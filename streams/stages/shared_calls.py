"""One extraction call for turns of a conversation that wait together.

Which turns share it, how long a turn waits, and what each would ask alone.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from mnemolog.common.logs import get_logger
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.faults import RECORD_ERRORS
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import Background, ReplyNotStorableError, StoredReply
from mnemolog.streams import metrics
from mnemolog.streams.llm.extract_prompt import extraction_prompt, shared_prompt
from mnemolog.streams.llm.ports import (
    BatchSuspectError,
    ExtractionTask,
    PromptRefusedError,
    RequestSource,
    SourceChatModel,
    SourceQuestion,
)
from mnemolog.streams.llm.shared_prompt import (
    CallTurn,
    divide_reply,
    known_together,
    may_share,
    most_turns,
    turns_together,
)
from mnemolog.streams.llm.withheld import allowed_categories
from mnemolog.streams.stages.background import BackgroundReader

MAX_ARRIVING_SECONDS: Final = 5.0
FRESH_SECONDS: Final = 1.0
"""A turn that was published so short a time ago is no backlog: it does not wait until its partition is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWait:
    """The seconds that a turn waits for others: `linger` for any, `arriving` while its partition has unread records."""

    linger: float = 0.0
    arriving: float = 0.0

    @classmethod
    def of_extraction(cls, waited: float, *, linger: float) -> "CallWait":
        """The waiting of a turn that was published `waited` seconds ago, which are a part of `linger`.

        It waits for the reading of its partition no longer than it has waited since its publication.
        """
        arriving = min(waited, MAX_ARRIVING_SECONDS) if waited > FRESH_SECONDS else 0.0
        return cls(linger=min(linger, max(0.0, linger - waited)), arriving=arriving)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnQuestion:
    """The question of a turn, and what it is about."""

    placed: CallTurn
    task: ExtractionTask
    asked: SourceQuestion


@dataclass(frozen=True, slots=True)
class TurnQuestions:
    """Makes the questions of turns.

    `categories` are those that a fact may have, besides those of instructions, `entity_types` the types of what it
    names that are asked for.
    """

    backgrounds: BackgroundReader
    categories: tuple[str, ...]
    entity_types: tuple[str, ...]
    detect_mood: bool = False

    async def question_of(self, placed: CallTurn, rules: EffectivePolicy) -> TurnQuestion:
        """What the turn asks alone; the same at each delivery."""
        background = await self.backgrounds.background_of(placed.turn, placed.place, rules)
        return self._question(placed, rules, background, None)

    def _question(
        self, placed: CallTurn, rules: EffectivePolicy, background: Background, kept_with: StoredReply | None
    ) -> TurnQuestion:
        turn, overrides = placed.turn, placed.turn.overrides
        task = ExtractionTask(
            turn=turn,
            categories=allowed_categories(self.categories, rules.instructions),
            entity_types=self.entity_types,
            instructions=rules.instructions,
            background=background,
            detect_mood=self.detect_mood,
        )
        prompt = replace(extraction_prompt(task), model=overrides.chat_model, timeout=overrides.llm_timeout)
        source = RequestSource(
            owner=turn.scope.owner, source_id=turn.turn_id, stage="extract", position=placed.position
        )
        asked = SourceQuestion(source=source, prompt=prompt, kept_with=kept_with)
        return TurnQuestion(placed=placed, task=task, asked=asked)

    async def questions_of(
        self, turns: Sequence[CallTurn], conversation: Sequence[CallTurn], rules: EffectivePolicy
    ) -> list[TurnQuestion]:
        """What several turns of `conversation`, which holds its turns in order, would ask when they are processed.

        One after the other: each is shown what was said right before it, and no more than that is remembered. What
        they are shown is kept with their replies.
        """
        found, wanted = [], {one.place for one in turns}
        for one in conversation:
            self.backgrounds.remember(one.turn, one.place)
            if one.place in wanted:
                background, new = await self.backgrounds.read_background(one.turn, one.place, rules)
                found.append(self._question(one, rules, background, new))
        return found


MIN_DIVIDED: Final = 3
"""A call for so many turns or fewer that fails is not divided: they are asked about alone."""
TURN_ERRORS: Final = (*RECORD_ERRORS, StatementTimeoutError, ReplyNotStorableError)
"""What a value of one of the turns can cause."""

log = get_logger(__name__)


MAX_REMEMBERED: Final = 4096
LOOKED_AT: Final = 3
"""For each turn that a call may ask about so many records are looked at: some are of other runs, or ask no model."""
WaitingTurns = Callable[[int, int, CallWait], Awaitable[Sequence[CallTurn | None]]]
"""Waits until so many records of the owner wait, and gives at most so many turns; None for the first that is none."""


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

    def is_outdated(self, placed: CallTurn, rules: EffectivePolicy) -> bool:
        """Whether a turn got a reply by other rules, which it does not use."""
        return self._asked.get(_id(placed)) is not None and self.answered(placed, rules) is None

    def answered(self, placed: CallTurn, rules: EffectivePolicy) -> TurnQuestion | None:
        """The question of a turn that this process has asked together with others, by these rules, and has a reply."""
        known = self._asked.get(_id(placed))
        return known if known is not None and known.task.instructions == rules.instructions else None

    async def question_of(self, placed: CallTurn, rules: EffectivePolicy, waiting_turns: WaitingTurns) -> TurnQuestion:
        """What a turn asks alone. Those behind it that may share its call are asked about first, together with it.

        A turn that was asked about with others before is not asked about with others again.
        """
        if known := self.answered(placed, rules):
            self._asked[_id(placed)] = None
            return known
        first = await self._questions.question_of(placed, rules)
        if most_turns(rules) == 1 or not may_share(placed, rules) or _id(placed) in self._asked:
            return first
        try:
            others = await self._others(first, rules, waiting_turns)
        except TURN_ERRORS as error:  # one of them is at fault: it fails when its turn comes, and not this one
            log.info("shared_call_failed", turns=1, error=str(error).strip())
            return first
        if others:
            await self._ask_together([first, *others], rules)
            self._asked[_id(placed)] = None
        return first

    async def _others(
        self, first: TurnQuestion, rules: EffectivePolicy, waiting_turns: WaitingTurns
    ) -> list[TurnQuestion]:
        """The questions to ask together with the first one; none where that has a reply."""
        most = most_turns(rules)
        waited = (self._clock() - first.placed.published_at).total_seconds()
        wait = CallWait.of_extraction(waited, linger=rules.call_linger)
        if (wait.linger or wait.arriving) and await self._model.has_reply(first.asked):
            return []
        waiting = await waiting_turns(most - 1, LOOKED_AT * most, wait)
        _, *others = turns_together(first.placed, waiting, rules)
        others = [one for one in others if _id(one) not in self._asked]
        if not others or await self._model.has_reply(first.asked):
            return []
        scope, last = first.placed.turn.scope, others[-1].offset
        conversation = [one for one in waiting if one is not None and one.turn.scope == scope and one.offset <= last]
        questions = await self._questions.questions_of(others, conversation, rules)
        replied = await asyncio.gather(*(self._model.has_reply(one.asked) for one in questions))
        return [one for one, has_reply in zip(questions, replied, strict=True) if not has_reply]

    async def _ask_together(self, questions: Sequence[TurnQuestion], rules: EffectivePolicy) -> None:
        """Ask in one call, and note whose part its reply has; of halves of them, where one of the turns is suspect."""
        tasks = [one.task for one in questions]
        known = known_together(tasks, tokens=rules.known_tokens)
        try:
            found, reason = (
                await self._model.ask_together(
                    [one.asked for one in questions],
                    shared_prompt(tasks, known),
                    partial(divide_reply, tasks=tasks),
                    known=tuple(fact.fact_id for fact in known.facts),
                    entities=tuple(entity.entity_id for entity in known.entities),
                ),
                "no_part",
            )
        except (BatchSuspectError, PromptRefusedError, *TURN_ERRORS) as error:
            log.info("shared_call_failed", turns=len(questions), error=str(error))
            if isinstance(error, BatchSuspectError) and len(questions) > MIN_DIVIDED:
                middle = len(questions) // 2
                await self._ask_together(questions[:middle], rules)
                await self._ask_together(questions[middle:], rules)
                return
            found, reason = [False] * len(questions), "refused"
        if alone := list(found).count(False):
            metrics.TURNS_ASKED_ALONE.labels(reason=reason).inc(alone)
        for question, has_part in zip(questions, found, strict=True):
            self._asked[_id(question.placed)] = question if has_part else None
            while len(self._asked) > MAX_REMEMBERED:
                self._asked.popitem(last=False)


def _id(placed: CallTurn) -> tuple[str, str, int]:
    return placed.turn.scope.owner, placed.turn.turn_id, placed.offset
