"""Applies ends that the memory knows before the fact that they end: "I'll leave Rome in May", then "I live in Rome".

An end that was said after a statement, but arrived before it, is judged against the statement and not the other way
round: so the outcome is that of the order in which both were said. An announced end whose day is still to come is
judged against a later statement too, unless that statement ends the announcement.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import VERDICTS_WITH_END_TIME, FactAdded, FactPending, MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.provenance import Guard
from mnemolog.streams.llm.ports import KnownAs, Question
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact
from mnemolog.streams.resolution.classify import stated_candidate
from mnemolog.streams.resolution.events import EventBuilder, Judgement, LlmDecision, NoDecision, with_own_end
from mnemolog.streams.resolution.guards import Cleared, StatementContext, clear, is_planned
from mnemolog.streams.resolution.overwrites import target_end
from mnemolog.streams.resolution.rules import TurnRules
from mnemolog.streams.text.differences import relate_subjects

MAX_LATER_ENDS: Final = 3
"""How many known ends are judged against a statement, the nearest first."""


def split_later_ends(turn: MatchedFacts, rules: TurnRules) -> tuple[MatchedFacts, tuple[Question, ...]]:
    """The turn without the candidates that state an end and were said after it; and these ends, with announced ones.

    Each end is a question, whose one candidate is the statement that it may end; none where no model is asked.
    """
    if not rules.uses_llm:
        return turn, ()
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
            is_later = (known.said_at or known.true_from) > said_at
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
            # A statement has an id for each end: in one reply, only one decision may end a known fact.
            fact_id = provisional_fact_id(turn.owner, turn.source_id, len(turn.facts) + len(ends))
            relation = known.subject_relation
            statement = stated_candidate(matched, turn, rules, fact_id=fact_id, subject_relation=relation)
            known_as: KnownAs = "announced" if known in announced else "said later"
            end = as_extracted_fact(known)
            ends.append(Question(fact=end, candidates=(statement,), place=place, known=known, known_as=known_as))
    return turn.model_copy(update={"facts": tuple(facts)}), tuple(ends)


def is_said_before(end: Question, known: Candidate) -> bool:
    """Whether an end was said before a known fact began: a statement that repeats the fact may have ended between."""
    if end.known is None or end.known_as == "announced":
        return False
    return (end.known.said_at or end.known.true_from) <= known.true_from


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterEnd:
    """A known end that a model was asked about, as a `statement`, and what it means for the statement of the turn.

    `cleared` is None where it means nothing for it, and else what the guards say.
    """

    known_id: UUID
    statement: StatementContext
    answer: LlmDecision | NoDecision
    cleared: Cleared | Guard | None

    @property
    def decided(self) -> LlmDecision | None:
        """The decision that ends the statement, if no guard holds it back."""
        return self.answer if isinstance(self.answer, LlmDecision) and isinstance(self.cleared, Cleared) else None


def guarded_ends(builder: EventBuilder, judgements: Sequence[Judgement]) -> list[LaterEnd]:
    """The later ends among what was judged about a statement, past the guards; announced ones only if they end it.

    An end was said when it was first said after the statement. An announced one denies nothing.
    """
    ends: list[LaterEnd] = []
    for one in judgements:
        known, answer = one.question.known, one.answer
        if known is None:
            continue
        said_at = known.said_at or known.true_from
        if known.event_time is None and known.true_from > builder.statement_context.said_at:
            said_at = min(known.true_from, said_at)
        fact, since = one.question.fact, known.event_time or said_at
        statement = StatementContext(fact=fact, confidence=known.confidence, true_from=since, said_at=said_at)
        is_announced = one.question.known_as == "announced"
        verdicts = {"EXPIRE"} if is_announced else {*VERDICTS_WITH_END_TIME, "CONTRADICT"}
        cleared: Cleared | Guard | None = None
        if isinstance(answer, LlmDecision) and answer.targets and answer.reply.verdict in verdicts:
            reply, policy = answer.reply, builder.context.rules.policy
            cleared = clear(reply.verdict, answer.targets, statement, policy, ended_at=reply.ended_at)
        if isinstance(cleared, Cleared) or not is_announced:
            ends.append(LaterEnd(known_id=known.fact_id, statement=statement, answer=answer, cleared=cleared))
    return ends


def events_of_denied(builder: EventBuilder, ends: Sequence[LaterEnd]) -> Sequence[MemoryEvent]:
    """The events of a statement that a later end denies or calls off; none for other statements."""
    for end in ends:
        if (decided := end.decided) is None:
            continue
        is_called_off = decided.reply.verdict != "EXPIRE" and is_planned(decided.targets[0], end.statement)
        if decided.reply.verdict == "CONTRADICT" or is_called_off:
            decision = builder.decision("model", decided.reply.reason, decided)
            return builder.added_and_denied(decision, shown=(end.known_id,))
    return ()


def with_later_ends(  # noqa: PLR0911 - one return a case
    builder: EventBuilder, events: Sequence[MemoryEvent], ends: Sequence[LaterEnd]
) -> Sequence[MemoryEvent]:
    """The events of a statement, with the end that the later ends give to the fact that they add; or unresolved."""
    *before, last = events
    taken_back = {fact_id for event in events for fact_id in event.ended_ids}
    ends = [end for end in ends if end.known_id not in taken_back]
    if not ends or isinstance(last, FactPending):
        return events
    times = [
        (target_end(replace(builder, statement_context=end.statement), end.decided, end.decided.targets), end.known_id)
        for end in ends
        if end.decided is not None
    ]
    if last.new_fact is None:  # a repetition, perhaps of a fact that began again after the end
        repeated = next((known for known in builder.candidates if known.fact_id == last.repeated_id), None)
        between = [time for time in times if repeated is not None and time[0] <= repeated.true_from]
        if not between:
            return events
        ended_at, ended_by = min(between, key=lambda time: time[0])
        decision = builder.decision("policy", "it had ended before it began again", guard="late_news")
        decision = decision.model_copy(update={"shown": (ended_by,)})
        return (builder.added(decision, ended_at=ended_at, ended_by=ended_by),)
    said_since = last.new_fact.said_at  # by another parent of a merged fact: "I live in Rome", after the day of the end
    times = [time for time in times if said_since is None or said_since < time[0]]
    if times:
        ended_at, ended_by = min(times, key=lambda time: time[0])
        if not isinstance(last, FactAdded) or last.ended_at is None:
            return *before, with_own_end(last, ended_at, ended_by)
        earlier = {"ended_at": ended_at, "ended_by": ended_by} if ended_at < last.ended_at else {}
        return *before, last.model_copy(update=earlier)
    if not isinstance(last, FactAdded) or last.ended_at is not None:
        return events
    for end in ends:  # what it means is in doubt where no model decided, or a guard holds it back
        if isinstance(end.answer, NoDecision):
            decision = builder.decision("fallback", f"added as unresolved: {end.answer.complaint}", end.answer)
        elif isinstance(end.cleared, str) and end.cleared not in ("late_news", "other_subject"):
            decision = builder.held_back(end.answer, end.cleared, ())
        else:
            continue
        shown = tuple(dict.fromkeys((*last.decision.shown, end.known_id)))
        update = {"unresolved": True, "decision": decision.model_copy(update={"shown": shown})}
        return *before, last.model_copy(update=update)
    return events
