"""A statement that says what is known: a mention or a confirmation, and what that means for what is held back."""

from collections.abc import Iterator
from typing import Final

from mnemolog.schemas.events import (
    FactConfirmed,
    FactSkipped,
    MemoryEvent,
    Overwrite,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.provenance import Decision
from mnemolog.streams.stages.in_turn import SoFar
from mnemolog.streams.stages.lookups import PendingCase
from mnemolog.streams.stages.making import Maker, before

_DENIED_BY_REPETITION: Final[frozenset[Overwrite]] = frozenset({"replace", "contradict", "retract"})
"""Who says the old again, after it was said to be over or wrong, speaks against that; an announced end or a richer
wording is no news to him."""


def repeated(
    maker: Maker, known: Candidate, decision: Decision, so_far: SoFar, *, raises: bool
) -> tuple[MemoryEvent, ...]:
    """The events of a statement that says what `known` says; `raises` tells that a reader saw it in other words.

    A pending fact is confirmed by it unless it was said before that, and what challenges `known` is rejected, unless
    only equal words count here.
    """
    given = maker.given
    if not given.infer or given.rules.add_only:
        return (_skipped(maker, known, decision),)
    case = given.pending.get(known.fact_id)
    if case is not None and known.status == "pending_confirmation" and bears_out(maker, case):
        return (_stands(maker, case, decision, so_far),)
    if rejected := tuple(_rejected(maker, known, decision, so_far)):
        return rejected
    if raises and known.fact_id not in so_far.confirmed:
        return (_confirmed(maker, known, decision),)
    return (_skipped(maker, known, decision),)


def confirmed_by(maker: Maker, case: PendingCase, decision: Decision, so_far: SoFar) -> PendingConfirmed:
    """What was held back is done, to those of its targets that this turn has not ended."""
    told = tuple(map(before, so_far.seen(case.targets)))
    return PendingConfirmed(
        **maker.head(decision.model_copy(update={"before": told})),
        target=case.fact_id,
        targets=so_far.open(case.targets),
        action=case.action,
        ended_at=case.ended_at,
        statement=maker.statement,
    )


def bears_out(maker: Maker, case: PendingCase) -> bool:
    """Whether a statement speaks for what is held back: earlier words would end what was said after them."""
    return case.said_at <= maker.given.occurred_at


def _stands(maker: Maker, case: PendingCase, decision: Decision, so_far: SoFar) -> MemoryEvent:
    if not case.needs_human:
        return confirmed_by(maker, case, decision, so_far)
    held = decision.model_copy(update={"guard": "human_word"})
    return FactConfirmed(**maker.head(held), target=case.fact_id, statement=maker.statement)


def _rejected(maker: Maker, known: Candidate, decision: Decision, so_far: SoFar) -> Iterator[MemoryEvent]:
    """Each earlier challenge of `known` is closed; the first of these events carries the statement."""
    cases = (maker.given.pending.get(fact_id) for fact_id in so_far.open(known.challenged_by))
    spoken_against = [case for case in cases if case is not None and _speaks_against(maker, case)]
    for place, case in enumerate(spoken_against):
        first = place == 0
        yield PendingRejected(
            **maker.head(decision, after=place),
            target=case.fact_id,
            confirmed=known.fact_id if first else None,
            statement=maker.statement if first else None,
        )


def _speaks_against(maker: Maker, case: PendingCase) -> bool:
    return case.action in _DENIED_BY_REPETITION and case.said_at < maker.given.occurred_at


def _confirmed(maker: Maker, known: Candidate, decision: Decision) -> MemoryEvent:
    return FactConfirmed(**maker.head(decision), target=known.fact_id, statement=maker.statement)


def _skipped(maker: Maker, known: Candidate, decision: Decision) -> MemoryEvent:
    return FactSkipped(**maker.head(decision), target=known.fact_id, statement=maker.statement)
