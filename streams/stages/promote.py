"""Promotions: facts of a run are decided in the scope of its user like statements of a turn there.

A promote command looks up what it selects, and has another command published for what one commit does not take.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from mnemolog.schemas.command import MAX_ITEMS, Command, Promote
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.ids import follow_up_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Step, Thresholds
from mnemolog.schemas.stored import PromotableFacts
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError, PromotionReader
from mnemolog.streams.commands.handler import CommandResult
from mnemolog.streams.commands.promotions import MAX_PROMOTED, promoted_statements, promotion_detail
from mnemolog.streams.resolution.turn import TurnDecider, TurnDecision
from mnemolog.streams.stages.match import MatchStage

PublishCommand = Callable[[Command], Awaitable[object]]
"""Returns when the broker has the command."""


async def publish_nothing(_command: Command) -> None:
    """For a resolver that only tells what it would commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionRules:
    """What holds in the scope that facts go to; `latest_end` is when the last of its facts ceased to be true."""

    policy: EffectivePolicy
    thresholds: Thresholds
    latest_end: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionResult:
    """The end of a promote command, what its decision cost, and the command for what did not go into its commit.

    That one is published once it is clear that the commit says so, and before it is sent. `user_names` are the names of
    the user that the scope knows, or its first fact tells.
    """

    result: CommandResult
    step: Step = field(default_factory=lambda: Step(stage="resolve", milliseconds=0))
    follow_up: Command | None = None
    user_names: tuple[str, ...] = ()


class Promoter:
    """Carries out promote commands. A commit takes `max_commit_bytes`; what is more goes into a follow-up."""

    def __init__(
        self, facts: PromotionReader, match_stage: MatchStage, turn_decider: TurnDecider, *, max_commit_bytes: int
    ) -> None:
        self._facts = facts
        self._match_stage = match_stage
        self._turn_decider = turn_decider
        self._max_commit_bytes = max_commit_bytes

    async def __call__(self, envelope: MatchedFacts, rules: PromotionRules) -> PromotionResult:
        """What the command of an envelope does."""
        payload, scope = envelope.order, envelope.scope
        if not isinstance(payload, Promote) or scope is None:
            raise AssertionError("only promote commands are promotions")
        context = CommandContext(
            owner=envelope.owner,
            source_id=envelope.source_id,
            scope=scope,
            issued_at=envelope.occurred_at,
            now=rules.now,
            actor=envelope.actor,
        )
        limit = MAX_ITEMS if payload.fact_ids else MAX_PROMOTED
        found = await self._facts.promotable_facts(
            scope, payload, at=rules.now, min_importance=rules.policy.min_importance, limit=limit
        )
        try:
            statements = promoted_statements(context, payload, found)
            if not statements:
                return PromotionResult(
                    result=CommandResult(outcome="done", detail=promotion_detail(context, found, 0, payload))
                )
            decision, turn = await self._decide(envelope, statements, rules)
        except CommandRefusedError as refusal:
            return PromotionResult(
                result=CommandResult(outcome="rejected", reason=refusal.reason, detail=refusal.detail)
            )
        taken = len(turn.facts)
        return PromotionResult(
            result=CommandResult(
                outcome="done", events=decision.events, detail=promotion_detail(context, found, taken, payload)
            ),
            step=decision.step,
            follow_up=_next_command(envelope, payload, found, taken) if taken < found.free else None,
            user_names=turn.user_names,
        )

    async def _decide(
        self, envelope: MatchedFacts, statements: Sequence[MatchedFact], rules: PromotionRules
    ) -> tuple[TurnDecision, MatchedFacts]:
        """The decision on as many of the statements as one commit takes, as a turn of these.

        Raises `CommandRefusedError` where a single one does not fit.
        """
        while True:
            decision, turn = await self._decision_on(envelope, statements, rules)
            size = sum(len(event.model_dump_json().encode()) + 1 for event in decision.events)
            if size <= self._max_commit_bytes:
                return decision, turn
            if len(statements) == 1:
                detail = f"the events of one fact take {size} bytes, and one commit {self._max_commit_bytes}"
                raise CommandRefusedError("invalid_command", detail)
            statements = statements[: len(statements) // 2]

    async def _decision_on(
        self, envelope: MatchedFacts, statements: Sequence[MatchedFact], rules: PromotionRules
    ) -> tuple[TurnDecision, MatchedFacts]:
        turn = await self._with_candidates(envelope, statements, rules.policy)
        first_said = min(matched.said_at(turn.occurred_at) for matched in turn.facts)
        is_late = rules.latest_end is not None and first_said < rules.latest_end
        decision = await self._turn_decider.decide(turn, rules.policy, rules.thresholds, is_late=is_late, now=rules.now)
        return decision, turn

    async def _with_candidates(
        self, envelope: MatchedFacts, statements: Sequence[MatchedFact], policy: EffectivePolicy
    ) -> MatchedFacts:
        """A turn of the statements; candidates are looked up for those of one time and speaker together."""

        def said(matched: MatchedFact) -> tuple[datetime, str | None]:
            return matched.said_at(envelope.occurred_at), matched.original.speaker if matched.original else None

        groups = [(key, tuple(group)) for key, group in groupby(statements, said)]
        found = await asyncio.gather(
            *(
                self._match_stage.with_candidates(
                    envelope.model_copy(update={"occurred_at": said_at, "speaker": speaker, "facts": facts}), policy
                )
                for (said_at, speaker), facts in groups
            )
        )
        matched = zip(statements, (fact for one in found for fact in one.facts), strict=True)
        others = zip(groups[1:], found[1:], strict=True)  # the first speaker is the user where none is known yet
        later = (name for ((_, speaker), _), one in others for name in one.user_names if name != speaker)
        names = dict.fromkeys((*found[0].user_names, *later))
        facts = tuple(fact.model_copy(update={"original": statement.original}) for statement, fact in matched)
        return envelope.model_copy(update={"facts": facts, "user_names": tuple(names)})


def _next_command(envelope: MatchedFacts, payload: Promote, found: PromotableFacts, taken: int) -> Command:
    """The command for what the first `taken` facts leave: where facts are named, it names the others of them."""
    if envelope.scope is None:
        raise AssertionError("a command has a scope")
    if payload.fact_ids:
        rest = tuple(one.stored.fact_id for one in found.facts[taken : found.free])
        payload = payload.model_copy(update={"fact_ids": rest})
    return Command(
        command_id=follow_up_id(envelope.source_id),
        scope=envelope.scope,
        issued_at=envelope.occurred_at,
        order=payload,
        actor=envelope.actor,
    )
