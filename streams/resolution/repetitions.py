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
from mnemolog.schemas.stored import PendingCase
from mnemolog.streams.resolution.event_builder import EventBuilder, fact_before
from mnemolog.streams.resolution.turn_state import TurnState

_CONTRADICTED_BY_REPETITION: Final[frozenset[Overwrite]] = frozenset({"replace", "contradict", "retract"})
"""Who says the old again, after it was said to be over or wrong, speaks against that; an announced end or a richer
wording is no news to him."""


def repetition_events(
    builder: EventBuilder, known: Candidate, decision: Decision, turn_state: TurnState, *, raises_confidence: bool
) -> tuple[MemoryEvent, ...]:
    """The events of a statement that repeats `known`; `raises_confidence`: an LLM saw it in other words.

    A pending fact is confirmed by it unless it was said before that, and what challenges `known` is rejected, unless
    only equal words count here.
    """
    given = builder.context
    if not given.infer or given.rules.add_only:
        return (_skip_event(builder, known, decision),)
    case = given.pending_cases.get(known.fact_id)
    if case is not None and known.status == "pending_confirmation" and supports(builder, case):
        return (_confirm_case(builder, case, decision, turn_state),)
    if rejected := tuple(_rejections(builder, known, decision, turn_state)):
        return rejected
    if raises_confidence and known.fact_id not in turn_state.confirmed_ids:
        return (_confirm_event(builder, known, decision),)
    return (_skip_event(builder, known, decision),)


def confirm_pending(
    builder: EventBuilder, case: PendingCase, decision: Decision, turn_state: TurnState
) -> PendingConfirmed:
    """What was held back is done, to those of its targets that this turn has not ended."""
    told = tuple(map(fact_before, turn_state.compared_facts(case.targets)))
    return PendingConfirmed(
        **builder.event_fields(decision.model_copy(update={"before": told})),
        target=case.fact_id,
        targets=turn_state.open_ids(case.targets),
        action=case.action,
        ended_at=case.ended_at,
        statement=builder.statement,
    )


def supports(builder: EventBuilder, case: PendingCase) -> bool:
    """Whether a statement speaks for what is held back: earlier words would end what was said after them."""
    return case.said_at <= builder.context.occurred_at


def _confirm_case(builder: EventBuilder, case: PendingCase, decision: Decision, turn_state: TurnState) -> MemoryEvent:
    if not case.needs_human:
        return confirm_pending(builder, case, decision, turn_state)
    held = decision.model_copy(update={"guard": "human_word"})
    return FactConfirmed(**builder.event_fields(held), target=case.fact_id, statement=builder.statement)


def _rejections(
    builder: EventBuilder, known: Candidate, decision: Decision, turn_state: TurnState
) -> Iterator[MemoryEvent]:
    """Each earlier challenge of `known` is closed; the first of these events carries the statement."""
    cases = (builder.context.pending_cases.get(fact_id) for fact_id in turn_state.open_ids(known.challenged_by))
    spoken_against = [case for case in cases if case is not None and _contradicts_case(builder, case)]
    for place, case in enumerate(spoken_against):
        first = place == 0
        yield PendingRejected(
            **builder.event_fields(decision, offset=place),
            target=case.fact_id,
            confirmed=known.fact_id if first else None,
            statement=builder.statement if first else None,
        )


def _contradicts_case(builder: EventBuilder, case: PendingCase) -> bool:
    return case.action in _CONTRADICTED_BY_REPETITION and case.said_at < builder.context.occurred_at


def _confirm_event(builder: EventBuilder, known: Candidate, decision: Decision) -> MemoryEvent:
    return FactConfirmed(**builder.event_fields(decision), target=known.fact_id, statement=builder.statement)


def _skip_event(builder: EventBuilder, known: Candidate, decision: Decision) -> MemoryEvent:
    return FactSkipped(**builder.event_fields(decision), target=known.fact_id, statement=builder.statement)
