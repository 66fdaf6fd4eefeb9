"""A verdict that ends what it aims at: carried out, or held back by the policy that stands in its way."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas.events import (
    FactAdded,
    FactContradicted,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactsMerged,
    MemoryEvent,
)
from mnemolog.schemas.facts import Candidate, NewFact
from mnemolog.schemas.provenance import Decision, Guard
from mnemolog.streams.stages.guarding import OVERWRITES, Dated, ended_by, guard_of, planned
from mnemolog.streams.stages.in_turn import SoFar
from mnemolog.streams.stages.making import Judgement, Maker, before
from mnemolog.streams.stages.repeating import bears_out, confirmed_by

HELD_BACK: Final[Mapping[Guard, str]] = {
    "late_news": "it is older than what it meets: kept as history",
    "human_word": "a human said what it would end, and only a human ends that",
    "high_confidence": "what it denies is too sure for one statement",
    "high_risk": "what it would end weighs too much for so unsure a statement",
    "add_only": "nothing is changed or ended here",
}


def overwritten(
    maker: Maker, judgement: Judgement, targets: tuple[Candidate, ...], so_far: SoFar
) -> tuple[MemoryEvent, ...]:
    """The events of a verdict of `OVERWRITES` on at least one target."""
    verdict = judgement.verdict
    pending = next((known for known in targets if known.status == "pending_confirmation"), None)
    if pending is not None and verdict.action == "MERGE":
        return _said_again(maker, judgement, pending, so_far)
    told = tuple(map(before, targets))
    guard = guard_of(verdict.action, targets, maker.saying, maker.given.rules)
    if guard is None:
        decision = maker.decision("model", verdict.reason, judgement, before=told)
        return (carried_out(maker, judgement, targets, decision),)
    reason = f"{verdict.reason}; held back: {HELD_BACK[guard]}"
    decision = maker.decision("policy", reason, judgement, guard=guard, before=told)
    if guard == "add_only":
        return (FactAdded(**maker.head(decision), fact=maker.new_fact()),)
    if guard == "late_news":
        return (history(maker, _held(targets), decision, so_far),)
    return (_pending(maker, judgement, targets, guard, decision),)


def carried_out(maker: Maker, judgement: Judgement, targets: Sequence[Candidate], decision: Decision) -> MemoryEvent:
    """The event of a verdict that nothing stands in the way of. A plan that is called off never was true."""
    common = {**maker.head(decision), "targets": tuple(known.fact_id for known in targets)}
    fact = _brought(maker, judgement, targets)
    ended_at = end_of(maker, judgement, targets)
    never_began = all(planned(known, maker.saying) for known in targets)
    match judgement.verdict.action:
        case "MERGE":
            return FactsMerged(**common, statement=maker.statement, fact=fact)
        case "REPLACE" if not never_began:
            return FactReplaced(**common, ended_at=ended_at, fact=fact)
        case "CONTRADICT" | "REPLACE":
            return FactContradicted(**common, fact=fact)
        case "RETRACT":
            return FactRetracted(**common, ended_at=None if never_began else ended_at, fact=fact)
        case "EXPIRE":
            return FactExpired(**common, ended_at=ended_at, fact=fact)
        case action:
            raise AssertionError(f"{action} ends nothing")


def end_of(maker: Maker, judgement: Judgement, targets: Sequence[Candidate]) -> datetime:
    """When the targets ended: when it is told, else when the statement began to hold; none before it began."""
    told = judgement.verdict.ended_at or maker.saying.true_from
    return max(told, *(known.true_from for known in targets))


def history_of(maker: Maker, targets: Sequence[Candidate], so_far: SoFar) -> tuple[datetime, UUID]:
    """When a statement that is older than one of `targets` ceased to hold, and the fact that tells."""
    return ended_by(_held(targets), maker.saying.true_from, so_far.chains)


def history(maker: Maker, newer: Sequence[Dated], decision: Decision, so_far: SoFar) -> FactAdded:
    """The event of a statement that is older than one of `newer`."""
    ended_at, fact_id = ended_by(newer, maker.saying.true_from, so_far.chains)
    return FactAdded(**maker.head(decision), fact=maker.new_fact(), ended_at=ended_at, ended_by=fact_id)


def _brought(maker: Maker, judgement: Judgement, targets: Sequence[Candidate]) -> NewFact:
    return maker.merged_fact(judgement, targets) if judgement.verdict.action == "MERGE" else maker.new_fact()


def _held(targets: Sequence[Candidate]) -> list[Candidate]:
    return [known for known in targets if known.status == "active"]


def _pending(
    maker: Maker, judgement: Judgement, targets: Sequence[Candidate], guard: Guard, decision: Decision
) -> FactPending:
    action = judgement.verdict.action
    ends = action in ("REPLACE", "RETRACT", "EXPIRE")
    return FactPending(
        **maker.head(decision),
        targets=tuple(known.fact_id for known in targets),
        action=OVERWRITES[action],
        ended_at=end_of(maker, judgement, targets) if ends else None,
        guard=guard,
        needs_human=guard == "human_word",
        fact=_brought(maker, judgement, targets),
    )


def _said_again(maker: Maker, judgement: Judgement, pending: Candidate, so_far: SoFar) -> tuple[MemoryEvent, ...]:
    """What is pending, said again with more: another turn's word confirms it, and the detail stands beside it.

    Where that word does not suffice, the richer fact waits with the one that it says again.
    """
    case, own = maker.given.pending.get(pending.fact_id), so_far.held.get(pending.fact_id)
    decision = maker.decision("model", judgement.verdict.reason, judgement, before=(before(pending),))
    if case is not None and not case.needs_human and bears_out(maker, case):
        confirmed = confirmed_by(maker, case, decision, so_far)
        detail = FactExtended(**maker.head(decision, after=1), targets=(pending.fact_id,), fact=maker.new_fact(after=1))
        return (confirmed, detail)
    held = own or case
    if held is None:
        return (FactAdded(**maker.head(decision), fact=maker.new_fact()),)
    guard: Guard = own.guard if own else "human_word" if held.needs_human else "late_news"
    waits = decision.model_copy(update={"by": "policy", "guard": guard})
    return (
        FactPending(
            **maker.head(waits),
            targets=tuple(dict.fromkeys((*so_far.open(held.targets), pending.fact_id))),
            action=held.action,
            ended_at=held.ended_at,
            guard=guard,
            needs_human=held.needs_human,
            fact=maker.merged_fact(judgement, [pending]),
        ),
    )
