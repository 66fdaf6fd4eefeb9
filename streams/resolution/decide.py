"""What a turn's statements mean for the known facts: pure functions from weights and verdicts to events."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from mnemolog.schemas.events import FactAdded, FactExtended, FactsRelated, MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.provenance import Decision, Verdict
from mnemolog.streams.resolution.classify import Classification, Conflict, Duplicate, New, Obsolete, same_slot
from mnemolog.streams.resolution.event_builder import (
    DecisionContext,
    EventBuilder,
    LlmDecision,
    NoDecision,
    fact_before,
    statement_context,
)
from mnemolog.streams.resolution.guards import has_intervening_version, predates
from mnemolog.streams.resolution.overwrites import GUARD_REASONS, apply_overwrite, history_event
from mnemolog.streams.resolution.repetitions import repetition_events
from mnemolog.streams.resolution.retry_conflicts import RetryOutcome, retry_events
from mnemolog.streams.resolution.turn_state import TurnState, provisional_fact_id

Events = tuple[MemoryEvent, ...]

_REPEATING_VERDICTS: Final[frozenset[Verdict]] = frozenset({"KEEP", "MERGE"})
_NOT_ASKED = NoDecision(complaint="the turn has more conflicts than one question holds")


def decide(
    classifications: Sequence[Classification],
    llm_decisions: Mapping[int, LlmDecision | NoDecision],
    context: DecisionContext,
    retry_outcomes: Sequence[RetryOutcome] = (),
) -> Events:
    """The events of each statement, in order, then those of the unresolved facts that were asked about again.

    A statement brings one event, or more where it settles what was pending; a known fact is ended by one at the most.
    """
    so_far = TurnState(context.version_starts)
    made: list[MemoryEvent] = []
    for place, weight in enumerate(classifications):
        maker = _event_builder(context, len(made), weight.matched, so_far)
        done = _decide_statement(maker, weight, llm_decisions.get(place, _NOT_ASKED), so_far)
        so_far.apply(done, provisional_fact_id(context.owner, context.source_id, place))
        made += done
    for settling in retry_outcomes:
        done = retry_events(context, len(made), settling, so_far)
        so_far.apply(done)
        made += done
    return tuple(made)


def _event_builder(context: DecisionContext, ordinal: int, matched: MatchedFact, turn_state: TurnState) -> EventBuilder:
    return EventBuilder(
        context=context,
        ordinal=ordinal,
        fact=matched.fact,
        statement_context=statement_context(matched.fact, context),
        vector=matched.vector,
        candidates=tuple(map(turn_state.current_fact, matched.candidates)),
    )


def _decide_statement(
    builder: EventBuilder, classification: Classification, llm_decision: LlmDecision | NoDecision, turn_state: TurnState
) -> Events:
    match classification:
        case New():
            return _add_fact(builder, _new_fact_decision(builder, classification))
        case Duplicate():
            return _repeat_duplicate(builder, classification, turn_state)
        case Obsolete():
            return _add_obsolete(builder, classification, turn_state)
        case Conflict() if isinstance(llm_decision, LlmDecision):
            return _apply_llm_decision(builder, llm_decision, turn_state)
        case Conflict():
            reason = f"unresolved, kept beside: {llm_decision.complaint}"
            return _add_fact(builder, builder.decision("fallback", reason, llm_decision), unresolved=True)


def _new_fact_decision(builder: EventBuilder, classification: New) -> Decision:
    if classification.guard is not None:
        return builder.decision("policy", GUARD_REASONS[classification.guard], guard=classification.guard)
    return builder.decision("threshold", f"no known fact reaches similarity {builder.context.thresholds.conflict:g}")


def _add_obsolete(builder: EventBuilder, classification: Obsolete, turn_state: TurnState) -> Events:
    saying, rules = builder.statement_context, builder.context.rules
    of_slot = (known for known in builder.candidates if same_slot(builder.fact, known, rules))
    held = [known for known in turn_state.open_facts(of_slot) if predates(saying.true_from, saying, known)]
    decision = builder.decision("policy", "its slot held a newer value, which has ended as well", guard="late_news")
    return (history_event(builder, [*classification.newer_values, *held], decision, turn_state),)


def _add_as_history(
    builder: EventBuilder, known: Candidate, turn_state: TurnState, llm_decision: LlmDecision | None = None
) -> Events:
    reason = f"something else was so between it and what it meets: {GUARD_REASONS['late_news']}"
    decision = builder.decision("policy", reason, llm_decision, guard="late_news", before=(fact_before(known),))
    return (history_event(builder, [known], decision, turn_state),)


def _repeat_duplicate(builder: EventBuilder, classification: Duplicate, turn_state: TurnState) -> Events:
    known = turn_state.open_fact(classification.candidate)
    if known is None:
        return _add_fact(
            builder, builder.decision(classification.by, "what it repeats has been ended by this very turn")
        )
    if has_intervening_version(builder.statement_context, known, turn_state.version_starts):
        return _add_as_history(builder, known, turn_state)
    near = f"similarity {classification.candidate.similarity:.3f} is that of a duplicate"
    decision = builder.decision(classification.by, "the same words are known" if classification.by == "hash" else near)
    return repetition_events(builder, known, decision, turn_state, raises_confidence=False)


def _apply_llm_decision(builder: EventBuilder, llm_decision: LlmDecision, turn_state: TurnState) -> Events:
    verdict, targets = llm_decision.reply, turn_state.open_facts(llm_decision.targets)
    decision = builder.decision("model", verdict.reason, llm_decision)
    if verdict.verdict in ("EXTEND", "SIMILAR", "EXPIRE"):  # what is pending is not held, so nothing bears on it yet
        targets = tuple(known for known in targets if known.status == "active")
    if not targets:
        return _add_fact(builder, decision)
    gap = next(
        (
            known
            for known in targets
            if has_intervening_version(builder.statement_context, known, turn_state.version_starts)
        ),
        None,
    )
    if gap is not None and verdict.verdict in _REPEATING_VERDICTS:
        return _add_as_history(builder, gap, turn_state, llm_decision)
    match verdict.verdict:
        case "ADD":
            return _add_fact(builder, decision)
        case "KEEP":
            nearest = max(targets, key=lambda known: known.similarity)
            return repetition_events(builder, nearest, decision, turn_state, raises_confidence=True)
        case "EXTEND" | "SIMILAR":
            return _add_related(builder, llm_decision, targets, decision)
        case _:
            return apply_overwrite(builder, llm_decision, targets, turn_state)


def _add_fact(builder: EventBuilder, decision: Decision, *, unresolved: bool = False) -> Events:
    return (FactAdded(**builder.event_fields(decision), fact=builder.new_fact(), unresolved=unresolved),)


def _add_related(
    builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate], decision: Decision
) -> Events:
    kind = FactExtended if llm_decision.reply.verdict == "EXTEND" else FactsRelated
    target_ids = tuple(known.fact_id for known in targets)
    fact = builder.new_fact()
    ends = [end for end in (fact.valid_until, *_announced_ends(builder, targets)) if end is not None]
    told = fact.model_copy(update={"valid_until": min(ends, default=None)})
    return (kind(**builder.event_fields(decision), targets=target_ids, fact=told),)


def _announced_ends(builder: EventBuilder, targets: Sequence[Candidate]) -> Iterator[datetime | None]:
    """The ends that were announced of newer values of a statement's slot: what is older ends with them."""
    for known in targets:
        if same_slot(builder.fact, known, builder.context.rules) and predates(
            builder.statement_context.true_from, builder.statement_context, known
        ):
            yield known.true_to
