"""Applies ends that were told before what they end: "I'll leave Rome in May", then "I live in Rome".

An end that was said after a statement, and came before it, is judged against the statement and not the other way round.
So the outcome is that of the order in which both were said. An announced end that still lies ahead is judged against a
later statement too, unless that statement ends the announcement.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import VERDICTS_WITH_END_TIME, FactAdded, FactPending, FactRetracted, MemoryEvent
from mnemolog.schemas.facts import Authority, Candidate, ExtractedFact, MatchedFact, MovedEnd
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
"""How many ends that were told before it a late statement is held against, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterEnd:
    """A known fact that tells an end, and a statement, at its place in the turn, that it may end.

    It was said after the statement; or, where it `is_announced`, before, and its day is still to come.
    """

    place: int
    told: Candidate
    statement: Candidate
    is_announced: bool = False

    @property
    def known_as(self) -> KnownAs:
        return "announced" if self.is_announced else "said later"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterEndOutcome:
    """What such an end means for the statement."""

    end: LaterEnd
    llm_decision: LlmDecision | NoDecision


def split_later_ends(
    turn: MatchedFacts, rules: EffectivePolicy, thresholds: Thresholds
) -> tuple[MatchedFacts, tuple[LaterEnd, ...]]:
    """The turn without candidates that tell an end and were said after it; and these, with the announced ends."""
    facts: list[MatchedFact] = []
    ends: list[LaterEnd] = []
    for place, matched in enumerate(turn.facts):
        said_at = matched.said_at(turn.occurred_at)
        told = [known for known in matched.candidates if _tells_end_of(matched.fact, known, turn.user_names)]
        later = [known for known in told if _last_said(known) > said_at]
        near = [known for known in later if _is_near(matched, known, thresholds.ending, turn, rules)]
        announced = [
            known
            for known in told
            if known not in later
            and known.status == "active"
            and known.valid_until is not None
            and known.valid_until > said_at
            and _is_near(matched, known, thresholds.conflict, turn, rules)
        ]
        without = tuple(known for known in matched.candidates if known not in near)
        facts.append(matched.model_copy(update={"candidates": without}))
        for known in sorted((*near, *announced), key=lambda known: -known.similarity)[:MAX_LATER_ENDS]:
            statement = _as_known(turn, place, rules, number=len(ends))
            ends.append(LaterEnd(place=place, told=known, statement=statement, is_announced=known in announced))
    return turn.model_copy(update={"facts": tuple(facts)}), tuple(ends)


def _tells_end_of(fact: ExtractedFact, known: Candidate, user_names: Sequence[str]) -> bool:
    """Whether a known fact only tells an end, perhaps of what a statement says."""
    if fact.action_hint == "retract" or known.action_hint != "retract" or known.status == "pending_confirmation":
        return False
    return relate_subjects(fact, known, user_names) != "other"


def _last_said(known: Candidate) -> datetime:
    return known.said_at or known.true_from


def _is_near(
    matched: MatchedFact, known: Candidate, threshold: float, turn: MatchedFacts, rules: EffectivePolicy
) -> bool:
    return known.similarity >= threshold or may_be_same_slot(matched.fact, known, rules, turn.user_names)


def _as_known(turn: MatchedFacts, place: int, rules: EffectivePolicy, number: int) -> Candidate:
    """The statement with an id of its own for each end: in one reply, only one decision may end a known fact."""
    matched = turn.facts[place]
    own: Authority = "human" if turn.immutable else "extracted"
    return known_candidate(
        matched.fact,
        fact_id=provisional_fact_id(turn.owner, turn.source_id, len(turn.facts) + number),
        confidence=statement_confidence(matched, rules),
        true_from=matched.holds_since(turn.occurred_at),
        said_at=matched.said_at(turn.occurred_at),
        authority=own if matched.original is None else matched.original.authority,
    )


def by_place(outcomes: Iterable[LaterEndOutcome]) -> Mapping[int, Sequence[LaterEndOutcome]]:
    found: dict[int, list[LaterEndOutcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.end.place, []).append(outcome)
    return found


def events_of_denied(builder: EventBuilder, outcomes: Sequence[LaterEndOutcome]) -> Sequence[MemoryEvent]:
    """The events of a statement of which an end says that it never was, or did not come, so; none for others."""
    later = [outcome for outcome in outcomes if not outcome.end.is_announced]
    for outcome, decided in _effective(builder, later):
        statement = outcome.end.statement
        is_called_off = decided.reply.verdict != "EXPIRE" and is_planned(statement, _as_told(outcome.end, builder))
        if decided.reply.verdict == "CONTRADICT" or is_called_off:
            told = outcome.end.told.fact_id
            decision = builder.decision("model", decided.reply.reason, decided)
            added = builder.added(decision.model_copy(update={"shown": (told,)}))
            both = decision.model_copy(update={"shown": (added.fact.fact_id, told)})
            fields = builder.event_fields(both, offset=1)
            return added, FactRetracted(**fields, targets=(added.fact.fact_id,), ended_at=None)
    return ()


def with_later_ends(
    builder: EventBuilder, events: Sequence[MemoryEvent], outcomes: Sequence[LaterEndOutcome]
) -> Sequence[MemoryEvent]:
    """The events of a statement, of which the fact that they add ends as the ends say; in doubt it is unresolved."""
    *before, last = events
    taken_back = {fact_id for event in events for fact_id in event.ended_ids}
    outcomes = [outcome for outcome in outcomes if outcome.end.told.fact_id not in taken_back]
    if not outcomes or isinstance(last, FactPending):
        return events
    ends = [
        (target_end(_at_end(builder, outcome.end), decided, [outcome.end.statement]), outcome.end.told)
        for outcome, decided in _effective(builder, outcomes)
    ]
    if last.new_fact is None:
        return _history_before(builder, last, ends) or events
    said_since = last.new_fact.said_at  # by another parent of a merged fact: "I live in Rome", after the day of the end
    ends = [end for end in ends if said_since is None or said_since < end[0]]
    if ends:
        return *before, _with_end(last, *min(ends, key=lambda end: end[0]))
    doubt = next((one for one in outcomes if not one.end.is_announced and _is_doubtful(builder, one)), None)
    return events if doubt is None else (*before, _unresolved(builder, last, doubt))


def is_before(end: LaterEnd, known: Candidate) -> bool:
    """Whether an end was told before a known fact began: what that repeats may have ended in between."""
    return not end.is_announced and _last_said(end.told) <= known.true_from


def _history_before(
    builder: EventBuilder, repetition: MemoryEvent, ends: Sequence[tuple[datetime, Candidate]]
) -> Sequence[MemoryEvent]:
    """The event of a repetition of what began again after one of `ends`; none where there is no such end."""
    repeated = next((known for known in builder.candidates if known.fact_id == repetition.repeated_id), None)
    between = [end for end in ends if repeated is not None and end[0] <= repeated.true_from]
    if not between:
        return ()
    ended_at, told = min(between, key=lambda end: end[0])
    decision = builder.decision("policy", "it had ended before it began again", guard="late_news")
    shown = decision.model_copy(update={"shown": (told.fact_id,)})
    return (builder.added(shown, ended_at=ended_at, ended_by=told.fact_id),)


def _with_end(event: MemoryEvent, ended_at: datetime, told: Candidate) -> MemoryEvent:
    if isinstance(event, FactAdded) and event.ended_at is not None:
        earlier = {"ended_at": ended_at, "ended_by": told.fact_id}
        return event.model_copy(update=earlier) if ended_at < event.ended_at else event
    if event.new_fact is None:
        raise AssertionError("an event without a new fact has no end of its own")
    own = MovedEnd(fact_id=event.new_fact.fact_id, ender=told.fact_id, ended_at=ended_at, ended_by=told.fact_id)
    return event.model_copy(update={"moved_ends": (own, *event.moved_ends)})


def _unresolved(builder: EventBuilder, event: MemoryEvent, outcome: LaterEndOutcome) -> MemoryEvent:
    """A fact that is added beside an end of which it is open whether it concerns the fact."""
    if not isinstance(event, FactAdded) or event.ended_at is not None:
        return event
    decided = outcome.llm_decision
    if isinstance(decided, NoDecision):
        decision = builder.decision("fallback", f"added as unresolved: {decided.complaint}", decided)
    else:
        guard = _guard(builder, outcome.end, decided)
        reason = f"{decided.reply.reason}; held back: {GUARD_REASONS[guard]}" if guard else decided.reply.reason
        decision = builder.decision("policy", reason, decided, guard=guard)
    shown = tuple(dict.fromkeys((*event.decision.shown, outcome.end.told.fact_id)))
    return event.model_copy(update={"unresolved": True, "decision": decision.model_copy(update={"shown": shown})})


def _effective(
    builder: EventBuilder, outcomes: Sequence[LaterEndOutcome]
) -> Iterator[tuple[LaterEndOutcome, LlmDecision]]:
    """The decisions that end the statement and that no guard holds back."""
    for outcome in outcomes:
        decided = outcome.llm_decision
        if isinstance(decided, LlmDecision) and _ends(outcome) and _guard(builder, outcome.end, decided) is None:
            yield outcome, decided


def _is_doubtful(builder: EventBuilder, outcome: LaterEndOutcome) -> bool:
    decided = outcome.llm_decision
    if isinstance(decided, NoDecision):
        return True
    return _ends(outcome) and _guard(builder, outcome.end, decided) not in (None, "late_news")


def _ends(outcome: LaterEndOutcome) -> bool:
    """Whether the statement was named, and ends; an announced end that lies ahead denies nothing."""
    decided = outcome.llm_decision
    if isinstance(decided, NoDecision) or not decided.targets:
        return False
    if outcome.end.is_announced:
        return decided.reply.verdict == "EXPIRE"
    return decided.reply.verdict in VERDICTS_WITH_END_TIME or decided.reply.verdict == "CONTRADICT"


def _guard(builder: EventBuilder, end: LaterEnd, decided: LlmDecision) -> Guard | None:
    reply, rules = decided.reply, builder.context.rules
    return find_guard(reply.verdict, [end.statement], _as_told(end, builder), rules, ended_at=reply.ended_at)


def _at_end(builder: EventBuilder, end: LaterEnd) -> EventBuilder:
    return replace(builder, statement_context=_as_told(end, builder))


def _as_told(end: LaterEnd, builder: EventBuilder) -> StatementContext:
    """How the end counts as a statement: as it was first said after the statement that it may end."""
    told, at = end.told, builder.statement_context.said_at
    said_first = told.true_from if told.event_time is None and told.true_from > at else _last_said(told)
    said_at = min(said_first, _last_said(told))
    return StatementContext(
        confidence=told.confidence, true_from=told.event_time or said_at, said_at=said_at, tells_change_or_end=True
    )
