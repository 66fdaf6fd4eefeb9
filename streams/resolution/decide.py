"""Makes the events of one turn of its classifications and LLM decisions, statement by statement."""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT, FactAdded, FactExtended, FactsRelated, MemoryEvent
from mnemolog.schemas.facts import Candidate, MovedEnd
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.provenance import Decision
from mnemolog.streams.llm.resolve_prompt import MAX_CANDIDATES
from mnemolog.streams.resolution.classify import (
    Classification,
    Conflict,
    Duplicate,
    New,
    Obsolete,
    TurnState,
    conflicting_facts,
    is_no_repetition,
)
from mnemolog.streams.resolution.events import (
    NOT_ASKED,
    DecisionContext,
    EventBuilder,
    Judgement,
    LlmDecision,
    NoDecision,
    as_unresolved,
    repetition_events,
    snapshots,
    statement_context,
)
from mnemolog.streams.resolution.guards import GUARD_REASONS, is_late_news, predates
from mnemolog.streams.resolution.overwrites import add_as_history, add_obsolete, apply_overwrite, apply_to_ended
from mnemolog.streams.resolution.questions import events_of_denied, guarded_ends, retry_events, with_later_ends

_OF_ONE_SUBJECT: Final = frozenset({"KEEP", *OVERWRITE_OF_VERDICT})
"""Verdicts that may only concern facts of one subject: the other verdicts say that both facts hold."""


def decide(
    classifications: Sequence[Classification], judgements: Sequence[Judgement], context: DecisionContext
) -> tuple[MemoryEvent, ...]:
    """The events of each statement, in order, then those of the unresolved facts that were asked about again.

    A statement has one event, or more where it settles pending facts; a known fact is ended by one at most.
    """
    state = TurnState(context.version_starts)
    made: list[MemoryEvent] = []
    for place, classification in enumerate(classifications):
        matched = classification.matched
        builder = EventBuilder(
            context=context,
            state=state,
            ordinal=len(made),
            fact=matched.fact,
            statement_context=statement_context(matched, context),
            vector=matched.vector,
            candidates=tuple(map(state.current_fact, matched.candidates)),
            original=matched.original,
        )
        of_place = [one for one in judgements if one.question.place == place]
        ending, doubts = guarded_ends(builder, of_place)
        answer = next((one.answer for one in of_place if one.question.known is None), None)
        events = events_of_denied(builder, ending) or with_later_ends(
            builder, _statement_events(builder, classification, answer), ending, doubts
        )
        last = events[-1]
        if isinstance(last, FactAdded) and last.decision.by in ("rule", "policy") and context.rules.uses_llm:
            is_open = last.ended_at is None and not last.moved_ends
            if is_open and (rivals := builder.rivals()):  # only a model may say that both values hold
                events = *events[:-1], as_unresolved(last, rivals)
        state.apply(events, provisional_fact_id(context.owner, context.source_id, place))
        made += events
    for judgement in judgements:
        if judgement.question.place is None:
            events = retry_events(judgement, context, state, ordinal=len(made))
            state.apply(events)
            made += events
    return tuple(made)


def _statement_events(
    builder: EventBuilder, classification: Classification, llm_decision: LlmDecision | NoDecision | None
) -> Sequence[MemoryEvent]:
    match classification:
        case New(guard=str(guard)):
            return (builder.added(builder.decision("policy", GUARD_REASONS[guard], guard=guard)),)
        case New():
            reason = f"no known fact reaches similarity {builder.context.rules.thresholds.conflict:g}"
            return (builder.added(builder.decision("threshold", reason)),)
        case Obsolete():
            return (add_obsolete(builder, classification),)
        case Duplicate():
            return _repeat_duplicate(builder, classification)
        case Conflict() if isinstance(llm_decision, LlmDecision):
            return _apply_llm_decision(builder, llm_decision)
        case Conflict(candidates=candidates):
            none = llm_decision or NOT_ASKED
            none = replace(none, shown=none.shown or candidates[:MAX_CANDIDATES])
            decision = builder.decision("fallback", f"added as unresolved: {none.complaint}", none)
            return (builder.added(decision, unresolved=True),)


def _repeat_duplicate(builder: EventBuilder, duplicate: Duplicate) -> Sequence[MemoryEvent]:
    known = builder.state.current_fact(duplicate.candidate)
    if known.status != "ended" and not builder.state.open_facts([known]):
        others = builder.state.open_facts(conflicting_facts(duplicate.matched, builder.context.rules))
        beside = tuple(one.fact_id for one in others if one.status == "active")
        decision = builder.decision(duplicate.by, "the fact it repeats was ended earlier in this turn")
        decision = decision.model_copy(update={"shown": beside})
        return (builder.added(decision, unresolved=bool(beside)),)
    if builder.is_outdated(known):
        return (add_as_history(builder, known),)
    near = f"similarity {duplicate.candidate.similarity:.3f} is that of a duplicate"
    decision = builder.decision(duplicate.by, "same words as a known fact" if duplicate.by == "hash" else near)
    return repetition_events(builder, known, decision, raises_confidence=False)


def _apply_llm_decision(  # noqa: C901, PLR0911, PLR0912 - one return a verdict
    builder: EventBuilder, llm_decision: LlmDecision
) -> Sequence[MemoryEvent]:
    """The events of a decision; a statement repeats and ends only facts about its own subject."""
    reply, state, statement = llm_decision.reply, builder.state, builder.statement_context
    of_others = [known for known in llm_decision.targets if known.is_of_other_entity]
    if of_others and reply.verdict in _OF_ONE_SUBJECT:
        of_subject = tuple(known for known in llm_decision.targets if known not in of_others)
        if not of_subject:
            return (builder.added(builder.held_back(llm_decision, "other_subject", of_others)),)
        llm_decision = replace(llm_decision, targets=of_subject)
    targets, ended = state.open_facts(llm_decision.targets), state.ended_facts(llm_decision.targets)
    if ended and not targets:
        return (apply_to_ended(builder, llm_decision, ended),)
    newer: list[Candidate] = []
    if reply.verdict in ("EXTEND", "SIMILAR", "EXPIRE"):  # these say nothing about a pending fact
        targets = tuple(known for known in targets if known.status == "active")
    elif reply.verdict in OVERWRITE_OF_VERDICT:  # it ends no pending fact that is newer than the statement
        pending = (known for known in targets if known.status == "pending_confirmation")
        newer = [known for known in pending if is_late_news(reply.verdict, [known], statement)]
        targets = tuple(known for known in targets if known not in newer)
    outdated = next((known for known in targets if builder.is_outdated(known)), None)
    decision = builder.decision("model", reply.reason, llm_decision)
    match reply.verdict:
        case _ if not targets:
            if newer:  # it stays open which of them holds
                reason = f"{decision.reason}; held back: older than what waits for a confirmation"
                update = {"by": "policy", "reason": reason, "guard": "late_news", "before": snapshots(newer)}
                decision = decision.model_copy(update=update)
            return (builder.added(decision, unresolved=bool(newer)),)
        case "KEEP" | "MERGE" if outdated is not None:
            return (add_as_history(builder, outdated, llm_decision),)
        case "KEEP":
            repeated = max(targets, key=lambda known: (known.value == builder.fact.value, known.similarity))
            if repeated.status == "active" and is_no_repetition(builder.fact, repeated, builder.context.rules):
                fields = builder.event_fields(decision)
                return (FactsRelated(**fields, targets=(repeated.fact_id,), fact=builder.new_fact()),)
            return repetition_events(builder, repeated, decision, raises_confidence=True)
        case "EXTEND" | "SIMILAR":
            kind = FactExtended if reply.verdict == "EXTEND" else FactsRelated
            return (_detail_event(builder, kind, decision, targets),)
        case "ADD":
            return (builder.added(decision),)
        case _:
            return apply_overwrite(builder, llm_decision, targets)


def _detail_event(
    builder: EventBuilder, kind: type[FactExtended | FactsRelated], decision: Decision, targets: Sequence[Candidate]
) -> FactExtended | FactsRelated:
    """The event of a detail of known facts, or of a similar fact.

    It shares the announced end of a value that it is a detail of, that it says as well, or that is newer.
    """
    fact, statement = builder.new_fact(), builder.statement_context
    ends = [
        (known.true_to, known.fact_id)
        for known in targets
        if known.true_to is not None and known.true_to > fact.true_from and builder.shares_slot(known)
        if kind is FactExtended or builder.has_value_of(known) or predates(statement.true_from, statement, known)
    ]
    moved = tuple(
        MovedEnd(fact_id=fact.fact_id, ender=ender, ended_at=at) for at, ender in sorted(ends, key=itemgetter(0))[:1]
    )
    target_ids = tuple(known.fact_id for known in targets)
    return kind(**builder.event_fields(decision), targets=target_ids, fact=fact, moved_ends=moved)
