"""The command `promote`: facts of a run are decided in the scope of its user like statements of a turn there."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

from mnemolog.projections.stores.facts import FactStore
from mnemolog.schemas.command import MAX_ITEMS, Command, Promote
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import MatchedFact, Original, PromotedFrom
from mnemolog.schemas.ids import follow_up_id, is_follow_up_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Step, Thresholds
from mnemolog.schemas.stored import PromotableFact, PromotableFacts
from mnemolog.streams.commands.context import CommandRefusedError, Fault, raise_for_faults
from mnemolog.streams.commands.handler import CommandOutcome, CommandResult
from mnemolog.streams.entities.linker import EntityLinker
from mnemolog.streams.entities.subjects import with_subject_relations
from mnemolog.streams.resolution.turn import TurnDecider
from mnemolog.streams.stages.match import MatchStage

MAX_PROMOTED: Final = 50
"""How many facts one command promotes: one question to the model holds their conflicts, and one commit their events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoter:
    """Carries out promote commands. A commit takes `max_commit_bytes`; what is more goes into a follow-up."""

    facts: FactStore
    linker: EntityLinker
    match_stage: MatchStage
    turn_decider: TurnDecider
    max_commit_bytes: int

    async def __call__(
        self,
        envelope: MatchedFacts,
        policy: EffectivePolicy,
        thresholds: Thresholds,
        *,
        latest_end: datetime | None,
        now: datetime,
    ) -> CommandOutcome:
        """What the command of an envelope does. `policy` and `latest_end` are those of the scope that facts go to.

        `latest_end` is when the last of its facts ceased to be true.
        """
        payload, scope = envelope.order, envelope.scope
        if not isinstance(payload, Promote) or scope is None:
            raise AssertionError("only promote commands are promotions")
        limit, least = MAX_ITEMS if payload.fact_ids else MAX_PROMOTED, policy.min_importance
        found = await self.facts.promotable_facts(scope, payload, at=now, min_importance=least, limit=limit)
        turn, events, step, named = envelope, tuple[MemoryEvent, ...](), Step(stage="resolve", milliseconds=0), None
        try:
            if payload.fact_ids and not is_follow_up_id(envelope.source_id):  # what ended since the first is left out
                raise_for_faults(_named_faults(payload, found.facts, now))
            statements = statements_of_one_commit(found)
            while statements:
                turn = await self._turn_of(envelope, statements, policy)
                turn, named = await self.linker.find_promoted(turn)
                turn = with_subject_relations(turn, named) if named else turn
                first_said = min(matched.said_at(turn.occurred_at) for matched in turn.facts)
                is_late = latest_end is not None and first_said < latest_end
                events, step = await self.turn_decider.decide(
                    turn, policy, thresholds, is_late=is_late, now=now, named=named
                )
                size = sum(len(event.model_dump_json().encode()) + 1 for event in events)
                if size <= self.max_commit_bytes:
                    break
                if len(statements) == 1:
                    detail = f"the events of one fact take {size} bytes, and one commit {self.max_commit_bytes}"
                    raise_for_faults([("invalid_command", detail)])
                statements = statements[: len(statements) // 2]
        except CommandRefusedError as refusal:
            result = CommandResult(outcome="rejected", reason=refusal.reason, detail=refusal.detail)
            return CommandOutcome(result=result, thresholds=thresholds)
        taken, follow_up = len(turn.facts), None
        if taken < found.free:
            rest = tuple(one.stored.fact_id for one in found.facts[taken : found.free])
            follow_up = Command(
                command_id=follow_up_id(envelope.source_id),
                scope=scope,
                issued_at=envelope.occurred_at,
                order=payload.model_copy(update={"fact_ids": rest}) if payload.fact_ids else payload,
                actor=envelope.actor,
            )
        detail = left_out(payload, found, taken, follow_up.command_id if follow_up else None)
        return CommandOutcome(
            result=CommandResult(outcome="done", events=events, detail=detail),
            step=step,
            thresholds=thresholds,
            follow_up=follow_up,
            user_names=turn.user_names,
            named=named,
        )

    async def _turn_of(
        self, envelope: MatchedFacts, statements: Sequence[MatchedFact], policy: EffectivePolicy
    ) -> MatchedFacts:
        """A turn of the statements; candidates are looked up together for statements of one time and speaker."""

        def said(matched: MatchedFact) -> tuple[datetime, str | None]:
            return matched.said_at(envelope.occurred_at), matched.original.speaker if matched.original else None

        groups = [(key, tuple(group)) for key, group in groupby(statements, said)]
        found = await asyncio.gather(
            *(
                self.match_stage.with_candidates(
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


def _named_faults(payload: Promote, facts: Sequence[PromotableFact], now: datetime) -> Iterator[Fault]:
    known = {one.stored.fact_id: one.stored for one in facts}
    for fact_id in payload.fact_ids:
        stored = known.get(fact_id)
        if stored is None:
            yield "unknown_fact", f"{fact_id} is not known: check the id"
        elif stored.scope != payload.source:
            yield "foreign_fact", f"{fact_id} belongs to another scope: name that scope as the source"
        elif stored.state.status == "pending_confirmation":
            yield "closed_fact", f"{fact_id} waits for a confirmation: confirm or reject it first"
        elif not stored.is_open or (stored.ends_at is not None and stored.ends_at <= now):
            yield "closed_fact", f"{fact_id} has ended or is {stored.state.status}: see its history for what holds"


def statements_of_one_commit(found: PromotableFacts) -> list[MatchedFact]:
    """The facts that are active and were not promoted yet, as many as one command takes, the first said first.

    Each is as it was last said, with its beginning, its end and its confidence of today. An end that another of these
    facts has announced is left to the decision on that fact.
    """
    free, statements = found.facts[: found.free], list[MatchedFact]()
    free_ids = {one.stored.fact_id for one in free}
    for one in free[:MAX_PROMOTED]:
        fact, stored = one.stored.fact, one.stored
        until = fact.valid_until if stored.state.superseded_by in free_ids else stored.ends_at
        original = Original(
            promoted_from=PromotedFrom(fact_id=stored.fact_id, source_id=one.source_id, said_at=one.said_at),
            true_from=stored.true_from,
            confidence=stored.state.confidence,
            speaker=stored.speaker,
            authority=stored.authority,
            metadata=dict(stored.metadata) or None,
        )
        statements.append(
            MatchedFact(fact=fact.model_copy(update={"valid_until": until}), vector=one.vector, original=original)
        )
    return statements


def left_out(payload: Promote, found: PromotableFacts, taken: int, follow_up: str | None) -> str:
    """What a command that promotes `taken` facts leaves out, in words; empty for nothing.

    The command for the rest is named: it is waited for, and undone, by its own id.
    """
    others = found.total - found.free - found.known
    texts = [
        f"{found.known} {'was' if found.known == 1 else 'were'} promoted before" if found.known else "",
        f"{others} left out: not active, or below min_importance" if others > 0 else "",
        f"{found.free - taken} follow in the command {follow_up}" if follow_up else "",
    ]
    detail = "; ".join(filter(None, texts))
    if taken:
        return detail
    scope = " ".join(f"{name}={value}" for name, value in payload.source.columns.items() if value)
    return f"nothing is promoted: {detail or f'nothing that it selects is active in {scope}'}"
