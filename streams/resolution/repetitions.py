"""Builds the events of a statement that repeats a known fact: mention, confirmation, or the end of a pending case."""

from collections.abc import Sequence
from typing import Final

from mnemolog.schemas.event import Overwrite
from mnemolog.schemas.events import MemoryEvent, PendingConfirmed, PendingRejected
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.provenance import Decision
from mnemolog.schemas.stored import PendingCase
from mnemolog.streams.resolution.event_builder import EventBuilder, snapshots

_CONTRADICTED_BY_REPETITION: Final[frozenset[Overwrite]] = frozenset({"replace", "contradict", "retract"})
"""Repeating the old value contradicts these pending overwrites; a pending expiry or merge it does not contradict."""


def repetition_events(
    builder: EventBuilder, known: Candidate, decision: Decision, *, raises_confidence: bool
) -> Sequence[MemoryEvent]:
    """The events of a statement that repeats `known`; `raises_confidence`: the LLM saw it in other words.

    It confirms a pending fact that was said before it, and rejects earlier pending overwrites of `known`, but for those
    that are a human's word. A raw turn,
    any under `add_only`, and a late one about what has ended do neither.
    """
    context, state = builder.context, builder.state
    if not context.infer or context.rules.add_only or known.status == "ended":
        return (builder.skipped(known, decision),)
    case = context.pending_cases.get(known.fact_id)
    if case is not None and known.status == "pending_confirmation" and supports(builder, case):
        if case.needs_human:
            return (builder.confirmed(known, decision.model_copy(update={"guard": "human_word"})),)
        return (confirm_pending(builder, case, decision),)
    if rejections := _rejections(builder, known, decision):
        return rejections
    if raises_confidence and known.fact_id not in state.confirmed_ids:
        return (builder.confirmed(known, decision),)
    return (builder.skipped(known, decision),)


def confirm_pending(builder: EventBuilder, case: PendingCase, decision: Decision) -> PendingConfirmed:
    """The pending overwrite is done, to those of its targets that this turn has not ended.

    It is unresolved beside what other targets have become, and beside values of its slot that it was not shown.
    """
    state = builder.state
    is_value = builder.fact.action_hint != "retract"  # a denial stands beside no value
    active = (known for known in builder.candidates if is_value and known.status == "active")
    of_slot = filter(builder.shares_slot, active)
    others = (known.fact_id for known in of_slot if known.fact_id not in case.targets)
    beside = tuple(dict.fromkeys(state.open_ids((*case.successors, *others))))
    update = {"before": snapshots(state.compared_facts(case.targets))} | ({"shown": beside} if beside else {})
    return PendingConfirmed(
        **builder.event_fields(decision.model_copy(update=update)),
        target=case.fact_id,
        targets=state.open_ids(case.targets),
        unresolved=bool(beside),
        action=case.action,
        ended_at=case.ended_at,
        statement=builder.statement,
    )


def supports(builder: EventBuilder, case: PendingCase) -> bool:
    """Whether a statement supports a pending overwrite: an earlier one would end what was said after it."""
    return case.said_at <= builder.said_at


def _rejections(builder: EventBuilder, known: Candidate, decision: Decision) -> Sequence[PendingRejected]:
    """Each earlier pending overwrite of `known` is rejected; the first of these events carries the statement."""
    context = builder.context
    cases = [context.pending_cases.get(fact_id) for fact_id in builder.state.open_ids(known.challenged_by)]
    contradicted = (
        case
        for case in cases
        if case and case.action in _CONTRADICTED_BY_REPETITION and case.said_at < builder.said_at
        if case.authority != "human"
    )
    return [
        PendingRejected(
            **builder.event_fields(decision, offset=offset),
            target=case.fact_id,
            confirmed=None if offset else known.fact_id,
            statement=None if offset else builder.statement,
            true_from=None if offset else builder.earlier_beginning(known),
        )
        for offset, case in enumerate(contradicted)
    ]
