"""Facts kept beside others for want of a valid decision: a later turn that meets them asks about them again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from mnemolog.schemas.events import ConflictResolved, FactExpired, FactRetracted, MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Decision, Thresholds
from mnemolog.streams.prompts.conflicts import stated
from mnemolog.streams.stages.guarding import Saying, guard_of
from mnemolog.streams.stages.in_turn import SoFar
from mnemolog.streams.stages.making import Circumstances, Judgement, Maker, Unjudged, before
from mnemolog.streams.stages.overwriting import HELD_BACK, carried_out, end_of, history_of
from mnemolog.streams.stages.weighing import conflicting

MAX_AGAIN: Final = 3
"""How many unresolved facts one call asks about again: a turn is not to pay for all that went wrong before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """An unresolved fact that a turn has met, and the known facts near both."""

    unresolved: Candidate
    rivals: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """What was said about it this time."""

    asked: Again
    judgement: Judgement | Unjudged


def unsettled(facts: Sequence[MatchedFact], thresholds: Thresholds, rules: Rules) -> tuple[Again, ...]:
    """The unresolved facts near `facts`, each with what else is near; of two of them one is asked about the other."""
    asked: dict[UUID, Candidate] = {}
    rivals: dict[UUID, dict[UUID, Candidate]] = {}
    for matched in facts:
        near = [known for known in conflicting(matched, thresholds, rules) if known.status == "active"]
        for known in near:
            if known.unresolved and (known.fact_id in asked or len(asked) < MAX_AGAIN):
                asked.setdefault(known.fact_id, known)
                others = {other.fact_id: other for other in near if other.fact_id not in asked}
                rivals.setdefault(known.fact_id, {}).update(others)
    return tuple(
        Again(unresolved=known, rivals=tuple(rivals[fact_id].values()))
        for fact_id, known in asked.items()
        if rivals[fact_id]
    )


def settled(given: Circumstances, place: int, settling: Settling, so_far: SoFar) -> tuple[MemoryEvent, ...]:
    """The events that settle an unresolved fact; none where nothing valid was said, or a policy stands in the way.

    Then it stays as it is: a later turn, or somebody's command, will tell.
    """
    unresolved, judgement = so_far.current(settling.asked.unresolved), settling.judgement
    if unresolved is None or isinstance(judgement, Unjudged):
        return ()
    verdict = judgement.verdict
    targets = tuple(known for known in so_far.currents(judgement.targets) if known.status == "active")
    if verdict.action != "ADD" and not targets:
        return ()
    maker = _maker(given, place, unresolved, settling.asked, judgement)
    guard = guard_of(verdict.action, targets, maker.saying, given.rules)
    decision = maker.decision("model", verdict.reason, judgement, before=tuple(map(before, targets)))
    if guard is None:
        return tuple(_resolved(maker, judgement, unresolved, targets, decision))
    if guard != "late_news":
        return ()
    reason = f"{verdict.reason}; held back: {HELD_BACK[guard]}"
    told = {"by": "policy", "reason": reason, "guard": guard, "before": (before(unresolved),)}
    ended_at, _ = history_of(maker, targets, so_far)
    late = decision.model_copy(update=told)
    return (FactExpired(**maker.head(late), targets=(unresolved.fact_id,), ended_at=ended_at),)


def _maker(given: Circumstances, place: int, unresolved: Candidate, asked: Again, judgement: Judgement) -> Maker:
    began = unresolved.true_from
    return Maker(
        given=given,
        place=place,
        fact=stated(unresolved),
        saying=Saying(confidence=unresolved.confidence, true_from=began, said_at=unresolved.said_at or began),
        vector=judgement.merged_vector,
        candidates=asked.rivals,
    )


def _resolved(
    maker: Maker, judgement: Judgement, unresolved: Candidate, targets: tuple[Candidate, ...], decision: Decision
) -> Iterator[MemoryEvent]:
    verdict = judgement.verdict
    target, target_ids = unresolved.fact_id, tuple(known.fact_id for known in targets)
    match verdict.action:
        case "ADD" | "EXTEND" | "SIMILAR":
            yield ConflictResolved(**maker.head(decision), target=target, targets=target_ids, action="keep_both")
        case "KEEP":
            yield ConflictResolved(**maker.head(decision), target=target, targets=target_ids, action="keep_old")
        case "REPLACE" | "CONTRADICT":
            yield ConflictResolved(
                **maker.head(decision),
                target=target,
                targets=target_ids,
                action="replace" if verdict.action == "REPLACE" else "contradict",
                ended_at=end_of(maker, judgement, targets) if verdict.action == "REPLACE" else None,
            )
        case "MERGE":
            yield carried_out(maker, judgement, (unresolved, *targets), decision)
        case "RETRACT" | "EXPIRE":  # the unresolved fact is the statement that says so, and stays
            kind = FactRetracted if verdict.action == "RETRACT" else FactExpired
            yield kind(**maker.head(decision), targets=target_ids, ended_at=end_of(maker, judgement, targets))
            yield ConflictResolved(**maker.head(decision, after=1), target=target, action="keep_both")
