"""Applies ends that the memory knows before the fact that they end: "I'll leave Rome in May", then "I live in Rome".

An end that was said after a statement, but arrived before it, is judged against the statement and not the other way
round: so the outcome is that of the order in which both were said. An announced end whose day is still to come is
judged against a later statement too, unless that statement ends the announcement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import VERDICTS_WITH_END_TIME, FactAdded, FactPending, FactRetracted, MemoryEvent
from mnemolog.schemas.facts import Authority, Candidate, MatchedFact, MovedEnd
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Thresholds
from mnemolog.streams.llm.ports import KnownAs
from mnemolog.streams.resolution.classify import known_candidate, may_be_same_slot
from mnemolog.streams.resolution.events import EventBuilder, LlmDecision, NoDecision
from mnemolog.streams.resolution.guards import (
    GUARD_REASONS,
    StatementContext,
    find_guard,
    is_planned,
    statement_confidence,
)
from mnemolog.streams.resolution.overwrites import target_end
from mnemolog.streams.text.differences import relate_subjects

MAX_LATER_ENDS: Final = 3
"""How many known ends are judged against a statement, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterEnd:
    """A known fact that states an end, and the statement, at its place in the turn, that it may end.

    `end_fact` was said after the statement; or, where it `is_announced`, before, and its day is still to come.
    """

    place: int
    end_fact: Candidate
    statement: Candidate
    is_announced: bool = False

    @property
    def known_as(self) -> KnownAs:
        return "announced" if self.is_announced else "said later"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterEndOutcome:
    """The model's decision on a later end."""

    end: LaterEnd
    llm_decision: LlmDecision | NoDecision


def split_later_ends(
    turn: MatchedFacts, rules: EffectivePolicy, thresholds: Thresholds
) -> tuple[MatchedFacts, tuple[LaterEnd, ...]]:
    """The turn without the candidates that state an end and were said after it; and these ends, with announced ones."""
    own_authority: Authority = "human" if turn.immutable else "extracted"
    facts: list[MatchedFact] = []
    ends: list[LaterEnd] = []
    for place, matched in enumerate(turn.facts):
        fact, said_at = matched.fact, matched.said_at(turn.occurred_at)
        later: list[Candidate] = []
        announced: list[Candidate] = []
        for known in matched.candidates if fact.action_hint != "retract" else ():
            if known.action_hint != "retract" or known.status == "pending_confirmation":
                continue
            if relate_subjects(fact, known, turn.user_names) == "other":
                continue
            is_later = _last_said(known) > said_at
            threshold = thresholds.ending if is_later else thresholds.conflict
            if known.similarity < threshold and not may_be_same_slot(fact, known, rules, turn.user_names):
                continue
            if is_later:
                later.append(known)
            elif known.status == "active" and known.valid_until is not None and known.valid_until > said_at:
                announced.append(known)
        others = tuple(known for known in matched.candidates if known not in later)
        facts.append(matched.model_copy(update={"candidates": others}))
        for known in sorted((*later, *announced), key=lambda known: -known.similarity)[:MAX_LATER_ENDS]:
            # A statement has an id for each end: in one reply, only one decision may end a known fact.
            number = len(turn.facts) + len(ends)
            statement = known_candidate(
                fact,
                fact_id=provisional_fact_id(turn.owner, turn.source_id, number),
                confidence=statement_confidence(matched, rules),
                true_from=matched.holds_since(turn.occurred_at),
                said_at=said_at,
                authority=own_authority if matched.original is None else matched.original.authority,
            )
            ends.append(LaterEnd(place=place, end_fact=known, statement=statement, is_announced=known in announced))
    return turn.model_copy(update={"facts": tuple(facts)}), tuple(ends)


def _last_said(known: Candidate) -> datetime:
    return known.said_at or known.true_from


def events_of_denied(builder: EventBuilder, outcomes: Sequence[LaterEndOutcome]) -> Sequence[MemoryEvent]:
    """The events of a statement that a later end denies or calls off; none for other statements."""
    later = [outcome for outcome in outcomes if not outcome.end.is_announced]
    for outcome, decided in _effective(builder, later):
        end = outcome.end
        is_called_off = decided.reply.verdict != "EXPIRE" and is_planned(end.statement, _as_statement(end, builder))
        if decided.reply.verdict == "CONTRADICT" or is_called_off:
            decision = builder.decision("model", decided.reply.reason, decided)
            added = builder.added(decision.model_copy(update={"shown": (end.end_fact.fact_id,)}))
            both = decision.model_copy(update={"shown": (added.fact.fact_id, end.end_fact.fact_id)})
            fields = builder.event_fields(both, offset=1)
            return added, FactRetracted(**fields, targets=(added.fact.fact_id,), ended_at=None)
    return ()


def with_later_ends(
    builder: EventBuilder, events: Sequence[MemoryEvent], outcomes: Sequence[LaterEndOutcome]
) -> Sequence[MemoryEvent]:
    """The events of a statement, with the end that the later ends give to the fact that they add; or unresolved."""
    *before, last = events
    taken_back = {fact_id for event in events for fact_id in event.ended_ids}
    outcomes = [outcome for outcome in outcomes if outcome.end.end_fact.fact_id not in taken_back]
    if not outcomes or isinstance(last, FactPending):
        return events
    ends: list[tuple[datetime, UUID]] = []
    for outcome, decided in _effective(builder, outcomes):
        as_of_end = replace(builder, statement_context=_as_statement(outcome.end, builder))
        ended_at = target_end(as_of_end, decided, [outcome.end.statement])
        ends.append((ended_at, outcome.end.end_fact.fact_id))
    if last.new_fact is None:  # a repetition, perhaps of a fact that began again after the end
        repeated = next((known for known in builder.candidates if known.fact_id == last.repeated_id), None)
        between = [end for end in ends if repeated is not None and end[0] <= repeated.true_from]
        if not between:
            return events
        ended_at, ended_by = min(between, key=lambda end: end[0])
        decision = builder.decision("policy", "it had ended before it began again", guard="late_news")
        shown = decision.model_copy(update={"shown": (ended_by,)})
        return (builder.added(shown, ended_at=ended_at, ended_by=ended_by),)
    said_since = last.new_fact.said_at  # by another parent of a merged fact: "I live in Rome", after the day of the end
    ends = [end for end in ends if said_since is None or said_since < end[0]]
    if ends:
        return *before, _with_end(last, *min(ends, key=lambda end: end[0]))
    doubt = next((one for one in outcomes if not one.end.is_announced and _is_doubtful(builder, one)), None)
    return events if doubt is None else (*before, _unresolved(builder, last, doubt))


def is_said_before(end: LaterEnd, known: Candidate) -> bool:
    """Whether an end was said before a known fact began: a statement that repeats the fact may have ended between."""
    return not end.is_announced and _last_said(end.end_fact) <= known.true_from


def _with_end(event: MemoryEvent, ended_at: datetime, ended_by: UUID) -> MemoryEvent:
    if isinstance(event, FactAdded) and event.ended_at is not None:
        earlier = {"ended_at": ended_at, "ended_by": ended_by}
        return event.model_copy(update=earlier) if ended_at < event.ended_at else event
    if event.new_fact is None:
        raise AssertionError("an event without a new fact has no end of its own")
    own = MovedEnd(fact_id=event.new_fact.fact_id, ender=ended_by, ended_at=ended_at, ended_by=ended_by)
    return event.model_copy(update={"moved_ends": (own, *event.moved_ends)})


def _unresolved(builder: EventBuilder, event: MemoryEvent, outcome: LaterEndOutcome) -> MemoryEvent:
    """The added fact as unresolved beside an end that may concern it."""
    if not isinstance(event, FactAdded) or event.ended_at is not None:
        return event
    decided = outcome.llm_decision
    if isinstance(decided, NoDecision):
        decision = builder.decision("fallback", f"added as unresolved: {decided.complaint}", decided)
    else:
        guard = _guard(builder, outcome.end, decided)
        reason = f"{decided.reply.reason}; held back: {GUARD_REASONS[guard]}" if guard else decided.reply.reason
        decision = builder.decision("policy", reason, decided, guard=guard)
    shown = tuple(dict.fromkeys((*event.decision.shown, outcome.end.end_fact.fact_id)))
    return event.model_copy(update={"unresolved": True, "decision": decision.model_copy(update={"shown": shown})})


def _effective(
    builder: EventBuilder, outcomes: Sequence[LaterEndOutcome]
) -> Iterator[tuple[LaterEndOutcome, LlmDecision]]:
    """The decisions that end the statement and that no guard holds back."""
    for outcome in outcomes:
        decided = outcome.llm_decision
        if outcome.end.end_fact.is_of_other_entity:
            continue
        if isinstance(decided, LlmDecision) and _ends(outcome) and _guard(builder, outcome.end, decided) is None:
            yield outcome, decided


def _is_doubtful(builder: EventBuilder, outcome: LaterEndOutcome) -> bool:
    decided = outcome.llm_decision
    if isinstance(decided, NoDecision):
        return True
    return _ends(outcome) and _guard(builder, outcome.end, decided) not in (None, "late_news")


def _ends(outcome: LaterEndOutcome) -> bool:
    """Whether the model named the statement and ends it; an announced end denies nothing."""
    decided = outcome.llm_decision
    if isinstance(decided, NoDecision) or not decided.targets:
        return False
    if outcome.end.is_announced:
        return decided.reply.verdict == "EXPIRE"
    return decided.reply.verdict in VERDICTS_WITH_END_TIME or decided.reply.verdict == "CONTRADICT"


def _guard(builder: EventBuilder, end: LaterEnd, decided: LlmDecision) -> Guard | None:
    reply, rules = decided.reply, builder.context.rules
    return find_guard(reply.verdict, [end.statement], _as_statement(end, builder), rules, ended_at=reply.ended_at)


def _as_statement(end: LaterEnd, builder: EventBuilder) -> StatementContext:
    """The end as a statement: said when it was first said after the statement that it may end."""
    known, last_said = end.end_fact, _last_said(end.end_fact)
    is_first_said_since = known.event_time is None and known.true_from > builder.statement_context.said_at
    said_at = min(known.true_from, last_said) if is_first_said_since else last_said
    return StatementContext(
        confidence=known.confidence, true_from=known.event_time or said_at, said_at=said_at, tells_change_or_end=True
    )
