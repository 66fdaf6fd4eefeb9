"""Applies ends that the memory knows before the fact that they end: "I'll leave Rome in May", then "I live in Rome".

An end that was said after a statement, but arrived before it, is judged against the statement and not the other way
round: so the outcome is that of the order in which both were said. An announced end whose day is still to come is
judged against a later statement too, unless that statement ends the announcement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import VERDICTS_WITH_END_TIME, FactAdded, FactPending, MemoryEvent
from mnemolog.schemas.facts import Authority, Candidate, MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.provenance import Guard
from mnemolog.streams.llm.ports import Question
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact
from mnemolog.streams.resolution.classify import stated_candidate
from mnemolog.streams.resolution.events import EventBuilder, Judgement, LlmDecision, NoDecision, own_end
from mnemolog.streams.resolution.guards import Cleared, StatementContext, clear, is_planned
from mnemolog.streams.resolution.overwrites import target_end
from mnemolog.streams.resolution.rules import TurnRules
from mnemolog.streams.text.differences import relate_subjects

MAX_LATER_ENDS: Final = 3
"""How many known ends are judged against a statement, the nearest first."""


def split_later_ends(turn: MatchedFacts, rules: TurnRules) -> tuple[MatchedFacts, tuple[Question, ...]]:
    """The turn without the candidates that state an end and were said after it; and these ends, with announced ones.

    Where no model is asked, the turn as it is.

    Each end is a question, whose one candidate is the statement that it may end.
    """
    if not rules.uses_llm:
        return turn, ()
    own_authority: Authority = "human" if turn.immutable else "extracted"
    facts: list[MatchedFact] = []
    ends: list[Question] = []
    for place, matched in enumerate(turn.facts):
        fact, said_at = matched.fact, matched.said_at(turn.occurred_at)
        later: list[Candidate] = []
        announced: list[Candidate] = []
        for known in matched.candidates if fact.action_hint != "retract" else ():
            if known.action_hint != "retract" or known.status == "pending_confirmation":
                continue
            if relate_subjects(fact, known, rules.user_names) == "other":
                continue
            is_later = _last_said(known) > said_at
            threshold = rules.thresholds.ending if is_later else rules.thresholds.conflict
            if known.similarity < threshold and rules.slot_relation(fact, known) == "other":
                continue
            if is_later:
                later.append(known)
            elif known.status == "active" and known.valid_until is not None and known.valid_until > said_at:
                announced.append(known)
        others = tuple(known for known in matched.candidates if known not in later)
        facts.append(matched.model_copy(update={"candidates": others}))
        for known in sorted((*later, *announced), key=lambda known: -known.similarity)[:MAX_LATER_ENDS]:
            statement = stated_candidate(
                matched,
                turn,
                rules,
                # A statement has an id for each end: in one reply, only one decision may end a known fact.
                fact_id=provisional_fact_id(turn.owner, turn.id_source, len(turn.facts) + len(ends)),
                authority=own_authority if matched.original is None else matched.original.authority,
                subject_relation=known.subject_relation,
            )
            ends.append(
                Question(
                    fact=as_extracted_fact(known),
                    candidates=(statement,),
                    place=place,
                    known=known,
                    known_as="announced" if known in announced else "said later",
                )
            )
    return turn.model_copy(update={"facts": tuple(facts)}), tuple(ends)


def _last_said(known: Candidate) -> datetime:
    return known.said_at or known.true_from


def events_of_denied(builder: EventBuilder, ends: Sequence[Judgement]) -> Sequence[MemoryEvent]:
    """The events of a statement that a later end denies or calls off; none for other statements."""
    for end, decided, as_end in _effective(builder, ends):
        is_called_off = decided.reply.verdict != "EXPIRE" and is_planned(decided.targets[0], as_end)
        if decided.reply.verdict == "CONTRADICT" or is_called_off:
            decision = builder.decision("model", decided.reply.reason, decided)
            return builder.added_and_denied(decision, shown=(_known(end).fact_id,))
    return ()


def with_later_ends(
    builder: EventBuilder, events: Sequence[MemoryEvent], judgements: Sequence[Judgement]
) -> Sequence[MemoryEvent]:
    """The events of a statement, with the end that the later ends give to the fact that they add; or unresolved."""
    *before, last = events
    taken_back = {fact_id for event in events for fact_id in event.ended_ids}
    judgements = [one for one in judgements if _known(one.question).fact_id not in taken_back]
    if not judgements or isinstance(last, FactPending):
        return events
    ends = [
        (target_end(replace(builder, statement_context=as_end), decided, decided.targets), _known(end).fact_id)
        for end, decided, as_end in _effective(builder, judgements)
    ]
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
    doubt = next((one for one in judgements if _is_doubtful(builder, one)), None)
    return events if doubt is None else (*before, _unresolved(builder, last, doubt))


def is_said_before(end: Question, known: Candidate) -> bool:
    """Whether an end was said before a known fact began: a statement that repeats the fact may have ended between."""
    return end.known_as != "announced" and _last_said(_known(end)) <= known.true_from


def _known(end: Question) -> Candidate:
    """The known fact that states the end."""
    if end.known is None:
        raise AssertionError("an end is a known fact")
    return end.known


def _with_end(event: MemoryEvent, ended_at: datetime, ended_by: UUID) -> MemoryEvent:
    if isinstance(event, FactAdded) and event.ended_at is not None:
        earlier = {"ended_at": ended_at, "ended_by": ended_by}
        return event.model_copy(update=earlier) if ended_at < event.ended_at else event
    return event.model_copy(update={"moved_ends": (own_end(event, ended_at, ended_by), *event.moved_ends)})


def _unresolved(builder: EventBuilder, event: MemoryEvent, judgement: Judgement) -> MemoryEvent:
    """The added fact as unresolved beside an end that may concern it."""
    if not isinstance(event, FactAdded) or event.ended_at is not None:
        return event
    answer = judgement.answer
    if isinstance(answer, NoDecision):
        decision = builder.decision("fallback", f"added as unresolved: {answer.complaint}", answer)
    else:
        guard = _cleared(builder, judgement.question, answer)
        decision = builder.decision("policy", answer.reply.reason, answer)
        if isinstance(guard, str):
            decision = builder.held_back(answer, guard, ())
    shown = tuple(dict.fromkeys((*event.decision.shown, _known(judgement.question).fact_id)))
    return event.model_copy(update={"unresolved": True, "decision": decision.model_copy(update={"shown": shown})})


def _effective(
    builder: EventBuilder, judgements: Sequence[Judgement]
) -> Iterator[tuple[Question, LlmDecision, StatementContext]]:
    """The decisions that end the statement and that no guard holds back, each with the end as a statement."""
    for one in judgements:
        if isinstance(one.answer, LlmDecision) and isinstance(_cleared(builder, one.question, one.answer), Cleared):
            yield one.question, one.answer, _as_statement(one.question, builder)


def _is_doubtful(builder: EventBuilder, judgement: Judgement) -> bool:
    """Whether a guard holds the end back, or no model decided on it."""
    if judgement.question.known_as == "announced":
        return False
    if isinstance(judgement.answer, NoDecision):
        return True
    cleared = _cleared(builder, judgement.question, judgement.answer)
    return isinstance(cleared, str) and cleared not in ("late_news", "other_subject")


def _cleared(builder: EventBuilder, end: Question, decided: LlmDecision) -> Cleared | Guard | None:
    """As `guards.clear`, for the end; None where it is none of the statement. An announced end denies nothing."""
    reply, policy = decided.reply, builder.context.rules.policy
    verdicts = {"EXPIRE"} if end.known_as == "announced" else {*VERDICTS_WITH_END_TIME, "CONTRADICT"}
    if not decided.targets or reply.verdict not in verdicts:
        return None
    return clear(reply.verdict, decided.targets, _as_statement(end, builder), policy, ended_at=reply.ended_at)


def _as_statement(end: Question, builder: EventBuilder) -> StatementContext:
    """The end as a statement: said when it was first said after the statement that it may end."""
    known = _known(end)
    last_said = _last_said(known)
    is_first_said_since = known.event_time is None and known.true_from > builder.statement_context.said_at
    said_at = min(known.true_from, last_said) if is_first_said_since else last_said
    return StatementContext(
        fact=known, confidence=known.confidence, true_from=known.event_time or said_at, said_at=said_at
    )
