"""What a turn asks alone: its prompt, with what it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import Background, StoredReply
from mnemolog.schemas.turn import Turn
from mnemolog.streams.instructions.withheld import allowed_categories
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.ports import ExtractionTask, RequestSource, SourceQuestion
from mnemolog.streams.shared_calls.call_turns import CallTurn


class Backgrounds(Protocol):
    """What extractions are shown beside their turns (`mnemolog.streams.conversation.background`)."""

    def remember(self, turn: Turn, place: tuple[datetime, int]) -> None: ...

    def forget(self, owner: str, published_at: datetime) -> None: ...

    async def background_of(self, turn: Turn, place: tuple[datetime, int], rules: EffectivePolicy) -> Background: ...

    async def background_ahead(
        self, turn: Turn, place: tuple[datetime, int], rules: EffectivePolicy
    ) -> tuple[Background, StoredReply | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnQuestion:
    """The question of a turn, and what it is about."""

    placed: CallTurn
    task: ExtractionTask
    asked: SourceQuestion


class TurnQuestions:
    """Makes the questions of turns.

    `categories` are those that a fact may have, besides those of instructions, `entity_types` the types of what it
    names that are asked for.
    """

    def __init__(
        self,
        backgrounds: Backgrounds,
        categories: tuple[str, ...],
        entity_types: tuple[str, ...],
        *,
        detect_mood: bool = False,
    ) -> None:
        self._backgrounds = backgrounds
        self._categories = categories
        self._entity_types = entity_types
        self._detect_mood = detect_mood

    async def question_of(self, placed: CallTurn, rules: EffectivePolicy) -> TurnQuestion:
        """What the turn asks alone; the same at each delivery."""
        background = await self._backgrounds.background_of(placed.turn, placed.place, rules)
        return self._question(placed, rules, background, None)

    async def _question_ahead(self, placed: CallTurn, rules: EffectivePolicy) -> TurnQuestion:
        background, new = await self._backgrounds.background_ahead(placed.turn, placed.place, rules)
        return self._question(placed, rules, background, new)

    def _question(
        self, placed: CallTurn, rules: EffectivePolicy, background: Background, kept_with: StoredReply | None
    ) -> TurnQuestion:
        turn, told, overrides = placed.turn, rules.instructions, placed.turn.overrides
        task = ExtractionTask(
            turn=turn,
            categories=allowed_categories(self._categories, told),
            entity_types=self._entity_types,
            instructions=told,
            background=background,
            detect_mood=self._detect_mood,
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
        """What several turns of `conversation` ask ahead; these are its turns in order, those between them too.

        One after the other: each is shown what was said right before it, and no more than that is remembered. What
        they are shown is kept with their replies.
        """
        found, wanted = [], {one.place for one in turns}
        for one in conversation:
            self._backgrounds.remember(one.turn, one.place)
            if one.place in wanted:
                found.append(await self._question_ahead(one, rules))
        return found
