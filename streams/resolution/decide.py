"""Makes the events of a turn: of each statement, and of the questions about known facts beside it.

An end that was said after a statement, but arrived before it, is judged against the statement and not the other way
round: so the outcome is that of the order in which both were said ("I'll leave Rome in May", then "I live in Rome"). An
announced end whose day is still to come is judged against a later statement too, unless that statement ends the
announcement. Unresolved facts that are near a fact of the turn are asked about again.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import (
    OVERWRITE_OF_VERDICT,
    VERDICTS_WITH_END_TIME,
    ConflictResolved,
    FactAdded,
    FactExpired,
    FactPending,
    MemoryEvent,
)
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.provenance import Decision
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.entities.subjects import relation_to_known, subjects_by_fact
from mnemolog.streams.llm.ports import KnownAs, Question
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact
from mnemolog.streams.merges import candidate_of, says_more
from mnemolog.streams.resolution.classify import (
    Classification,
    TurnState,
    conflicting_facts,
    stated_candidate,
    tells_again,
)
from mnemolog.streams.resolution.events import (
    DecisionContext,
    EventBuilder,
    Judgement,
    LlmDecision,
    NoDecision,
    as_unresolved,
    snapshots,
    statement_context,
    with_own_end,
)
from mnemolog.streams.resolution.guards import (
    Cleared,
    StatementContext,
    TurnRules,
    clear,
    goes_on,
    is_planned,
    next_version_start,
    predates,
)
from mnemolog.streams.resolution.verdicts import overwrite_events, statement_events, target_end
from mnemolog.streams.text.differences import relate_subjects

MAX_LATER_ENDS: Final = 3
"""How many known ends are judged against a statement, the nearest first."""
MAX_RETRIED_CONFLICTS: Final = 3
"""How many unresolved facts one call asks about again, so that one turn does not pay for many."""


def decide(
    classifications: Sequence[Classification], judgements: Sequence[Judgement], context: DecisionContext
) -> tuple[MemoryEvent, ...]:
    """The events of each statement, in order, then those of the unresolved facts that were asked about again.

    A statement has one event, or more where it settles pending facts; a known fact is ended by one at most.
    """
    state = TurnState(context.version_starts)
    made: list[MemoryEvent] = []
    for place, classification in enumerate(classifications):
        matched, own = classification.matched, context
        if (original := matched.original) is not None:
            speaker, metadata = original.speaker, original.metadata or {}
            own = replace(context, speaker=speaker, authority=original.authority, metadata=metadata)
        builder = EventBuilder(
            context=own,
            state=state,
            ordinal=len(made),
            fact=matched.fact,
            statement_context=statement_context(matched, context),
            vector=matched.vector,
            candidates=tuple(map(state.current_fact, matched.candidates)),
            promoted_from=None if original is None else original.promoted_from,
            began=None if original is None else original.true_from,
        )
        of_place = [one for one in judgements if one.question.place == place]
        ending, doubts = guarded_ends(builder, of_place)
        answer = next((one.answer for one in of_place if one.question.known is None), None)
        events = with_later_ends(builder, statement_events(builder, classification, answer), ending, doubts)
        last = events[-1]
        if (
            isinstance(last, FactAdded)
            and last.decision.by == "rule"
            and not last.unresolved
            and context.rules.uses_llm
        ):
            is_open = last.ended_at is None and not last.moved_ends
            rivals, said = builder.rivals() if is_open else (), builder.statement_context
            is_older = all(predates(said.true_from, said, known) and not goes_on(said, known) for known in rivals)
            if is_older and (end := next_version_start(rivals, said.true_from, state.version_starts)):
                update = {"guard": last.decision.guard or "late_news", "before": snapshots(rivals)}
                decision = last.decision.model_copy(update=update)
                last = last.model_copy(update={"decision": decision, "ended_at": end[0], "ended_by": end[1]})
            elif rivals:  # only a model may say that both values hold
                last = as_unresolved(last, [known.fact_id for known in rivals])
            events = (*events[:-1], last)
        state.apply(events, provisional_fact_id(context.owner, context.source_id, place))
        made += events
    for judgement in judgements:
        if judgement.question.place is None:
            events = retry_events(judgement, context, state, ordinal=len(made))
            state.apply(events)
            made += events
    return tuple(made)


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
        told: dict[KnownAs, list[Candidate]] = {"said later": [], "announced": []}
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
                told["said later"].append(known)
            elif known.status == "active" and known.valid_until is not None and known.valid_until > said_at:
                told["announced"].append(known)
        others = tuple(known for known in matched.candidates if known not in told["said later"])
        facts.append(matched.model_copy(update={"candidates": others}))
        nearest = [(known, known_as) for known_as, found in told.items() for known in found]
        for known, known_as in sorted(nearest, key=lambda end: -end[0].similarity)[:MAX_LATER_ENDS]:
            # A statement has an id for each end: in one reply, only one decision may end a known fact.
            fact_id = provisional_fact_id(turn.owner, turn.id_source, len(turn.facts) + len(ends))
            relation = known.subject_relation
            statement = stated_candidate(matched, turn, rules, fact_id=fact_id, subject_relation=relation)
            end = as_extracted_fact(known)
            ends.append(Question(fact=end, candidates=(statement,), place=place, known=known, known_as=known_as))
    return turn.model_copy(update={"facts": tuple(facts)}), tuple(ends)


Ending = tuple[UUID, LlmDecision, StatementContext]
"""A known fact that ends the statement of a turn, the decision that says so, and the end as a statement."""


def guarded_ends(
    builder: EventBuilder, judgements: Sequence[Judgement]
) -> tuple[list[Ending], list[tuple[UUID, Decision]]]:
    """The later ends that were judged about a statement: which end it, and which leave it in doubt, with the reason.

    In doubt it is where no model decided, or a guard holds the end back. An end was said when it was first said after
    the statement. An announced one denies nothing, and leaves nothing in doubt.
    """
    ending: list[Ending] = []
    doubts: list[tuple[UUID, Decision]] = []
    for one in judgements:
        known, answer, policy = one.question.known, one.answer, builder.context.rules.policy
        if known is None:
            continue
        said_at = known.said_at or known.true_from
        if known.event_time is None and known.true_from > builder.statement_context.said_at:
            said_at = min(known.true_from, said_at)
        fact, since = one.question.fact, known.event_time or said_at
        statement = StatementContext(fact=fact, confidence=known.confidence, true_from=since, said_at=said_at)
        is_announced = one.question.known_as == "announced"
        verdicts = {"EXPIRE"} if is_announced else {*VERDICTS_WITH_END_TIME, "CONTRADICT"}
        if isinstance(answer, LlmDecision) and answer.targets and answer.reply.verdict in verdicts:
            cleared = clear(answer.reply.verdict, answer.targets, statement, policy, ended_at=answer.reply.ended_at)
            if isinstance(cleared, Cleared):
                ending.append((known.fact_id, answer, statement))
            elif not is_announced and cleared not in ("late_news", "other_subject"):
                doubts.append((known.fact_id, builder.held_back(answer, cleared, ())))
        elif isinstance(answer, NoDecision) and not is_announced:
            decision = builder.decision("rule", f"added as unresolved: {answer.complaint}", answer)
            doubts.append((known.fact_id, decision))
    return ending, doubts


def with_later_ends(  # noqa: PLR0911 - one return a case
    builder: EventBuilder,
    events: Sequence[MemoryEvent],
    ending: Sequence[Ending],
    doubts: Sequence[tuple[UUID, Decision]],
) -> Sequence[MemoryEvent]:
    """The events of a statement, with the end that the later ends give to the fact that they add; or unresolved.

    A later end may also deny the statement, or call it off.
    """
    for known_id, decided, statement in ending:
        is_called_off = decided.reply.verdict != "EXPIRE" and is_planned(decided.targets[0], statement)
        if decided.reply.verdict == "CONTRADICT" or is_called_off:
            decision = builder.decision("model", decided.reply.reason, decided)
            return builder.added_and_denied(decision, shown=(known_id,))
    *before, last = events
    taken_back = {fact_id for event in events for fact_id in event.ended_ids}
    ends = [
        (target_end(replace(builder, statement_context=statement), decided, decided.targets), known_id)
        for known_id, decided, statement in ending
        if known_id not in taken_back and not isinstance(last, FactPending)
    ]
    if last.new_fact is None:  # a repetition, perhaps of a fact that began again after the end
        repeated = next((known for known in builder.candidates if known.fact_id == last.repeated_id), None)
        between = [end for end in ends if repeated is not None and end[0] <= repeated.true_from]
        if not between:
            return events
        ended_at, ended_by = min(between, key=lambda end: end[0])
        decision = builder.decision("rule", "it had ended before it began again", guard="late_news")
        decision = decision.model_copy(update={"shown": (ended_by,)})
        return (builder.added(decision, ended_at=ended_at, ended_by=ended_by),)
    said_since = last.new_fact.said_at  # by another parent of a merged fact: "I live in Rome", after the day of the end
    ends = [end for end in ends if said_since is None or said_since < end[0]]
    if ends:
        ended_at, ended_by = min(ends, key=lambda end: end[0])
        if not isinstance(last, FactAdded) or last.ended_at is None:
            return *before, with_own_end(last, ended_at, ended_by)
        earlier = {"ended_at": ended_at, "ended_by": ended_by} if ended_at < last.ended_at else {}
        return *before, last.model_copy(update=earlier)
    doubt = next((one for one in doubts if one[0] not in taken_back), None)
    if doubt is None or not isinstance(last, FactAdded) or last.ended_at is not None:
        return events
    known_id, decision = doubt
    decision = decision.model_copy(update={"shown": last.decision.shown})
    return *before, as_unresolved(last.model_copy(update={"decision": decision}), [known_id])


def conflicts_to_retry(facts: Sequence[MatchedFact], rules: TurnRules) -> tuple[Question, ...]:
    """The unresolved facts near `facts`, each with the other near facts; of two unresolved facts one is a rival."""
    unresolved: dict[UUID, Candidate] = {}
    rivals: dict[UUID, dict[UUID, Candidate]] = {}
    for matched in facts:
        near = [  # whom they are about was held against the turn's fact alone
            known.model_copy(update={"subject_relation": None})
            for known in conflicting_facts(matched.fact, matched.candidates, rules)
            if known.status == "active"
        ]
        for known in near:
            if known.unresolved and (known.fact_id in unresolved or len(unresolved) < MAX_RETRIED_CONFLICTS):
                unresolved.setdefault(known.fact_id, known)
                others = {other.fact_id: other for other in near if other.fact_id not in unresolved}
                rivals.setdefault(known.fact_id, {}).update(others)
    near_of = ((known, tuple(rivals[fact_id].values())) for fact_id, known in unresolved.items())
    return tuple(
        Question(fact=as_extracted_fact(known), candidates=near, known=known, known_as="unresolved")
        for known, near in near_of
        if near
    )


def with_facts_beside(
    question: Question,
    beside: Sequence[StoredFact],
    subjects: Sequence[KnownEntity],
    *,
    at: datetime,
    user_names: Sequence[str],
) -> Question:
    """The question with the facts of its first asking that still hold `at` a time, before the other near facts.

    An answer that was not shown them settles nothing between them. `subjects` are the entities that all these facts
    are about: a fact about another entity, or about a possible twin, is no rival.
    """
    near = {known.fact_id: known for known in question.candidates}
    first = {
        stored.fact_id: near.get(stored.fact_id) or candidate_of(stored)
        for stored in beside
        if stored.state.status == "active" and (stored.ends_at is None or stored.ends_at > at)
    }
    about = subjects_by_fact(subjects)
    subject = about.get(question.known.fact_id) if question.known else None
    rivals: list[Candidate] = []
    for known in {**first, **near}.values():
        relation = relation_to_known(question.fact.subject, subject, known, about.get(known.fact_id), user_names)
        rival = known if relation is None else known.model_copy(update={"subject_relation": relation})
        if not rival.is_of_other_entity:
            rivals.append(rival)
    return replace(question, candidates=tuple(rivals))


def retry_events(
    judgement: Judgement, context: DecisionContext, state: TurnState, ordinal: int
) -> Sequence[MemoryEvent]:
    """The events that settle an unresolved fact; none without a valid decision, or where a guard applies.

    Then it stays unresolved: a later turn asks again, or a command settles it.
    """
    question, llm_decision = judgement.question, judgement.answer
    unresolved = next(iter(state.open_facts([question.known] if question.known else [])), None)
    if unresolved is None or isinstance(llm_decision, NoDecision):
        return ()
    reply, stored = llm_decision.reply, question.stored
    targets = tuple(known for known in state.open_facts(llm_decision.targets) if known.status == "active")
    if reply.verdict != "ADD" and not targets:
        return ()
    fact = stored.fact if stored else question.fact.model_copy(update={"event_time": unresolved.event_time})
    builder = EventBuilder(  # of the unresolved fact as it was said: by its own speaker, and when that was
        context=replace(context, speaker=stored.speaker, authority=stored.authority) if stored else context,
        state=state,
        ordinal=ordinal,
        fact=fact,
        statement_context=StatementContext(
            fact=fact,
            confidence=unresolved.confidence,
            true_from=unresolved.true_from,
            said_at=unresolved.said_at or unresolved.true_from,
        ),
        vector=llm_decision.merged_vector,
        candidates=question.candidates,
        known_id=unresolved.fact_id,
    )
    cleared = builder.clear(reply.verdict, targets, reply.ended_at)
    resolved = partial(builder.ending, ConflictResolved, target=unresolved.fact_id)
    if not isinstance(cleared, Cleared):
        end = next_version_start(targets, unresolved.true_from, state.version_starts)
        if cleared != "late_news" or end is None or any(goes_on(builder.statement_context, one) for one in targets):
            return ()
        decision = builder.held_back(llm_decision, cleared, [unresolved])
        return (builder.ending(FactExpired, builder.clear_itself(), decision, ended_at=end[0]),)
    decision = builder.decision("model", reply.reason, llm_decision, before=snapshots(targets))
    if reply.verdict in OVERWRITE_OF_VERDICT:
        if reply.verdict == "MERGE":
            cleared, targets = builder.clear_itself(cleared), (unresolved, *targets)
        ends = overwrite_events(builder, llm_decision, cleared, targets, decision)
        if reply.verdict in ("RETRACT", "EXPIRE"):  # the unresolved fact is the statement that says so, and stays
            ends += (resolved(cleared.part(()), decision, offset=len(ends), action="keep_both"),)
        return ends
    is_known = (
        reply.verdict == "KEEP"
        and not says_more(unresolved, unresolved.authority, unresolved.metadata, targets[0])
        and tells_again(fact, targets[0], question.candidates, context.rules)
    )
    settled = (resolved(cleared, decision, action="keep_old" if is_known else "keep_both"),)
    is_open = decision.by == "rule" and not is_known and builder.rivals()  # rules do not say that both values hold
    return () if is_open else settled
