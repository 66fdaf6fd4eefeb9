"""Asks again about unresolved facts that are near the facts of a turn, and settles them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.events import ConflictResolved, FactExpired, MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.entities.subjects import entity_relation, subjects_by_fact
from mnemolog.streams.llm.ports import Question
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact
from mnemolog.streams.merges import candidate_of, says_more
from mnemolog.streams.resolution.classify import TurnState, conflicting_facts, is_no_repetition
from mnemolog.streams.resolution.events import (
    DecisionContext,
    EventBuilder,
    Judgement,
    NoDecision,
    snapshots,
)
from mnemolog.streams.resolution.guards import Cleared, StatementContext, next_version_start
from mnemolog.streams.resolution.overwrites import overwrite_events
from mnemolog.streams.resolution.rules import TurnRules

MAX_RETRIED_CONFLICTS: Final = 3
"""How many unresolved facts one call asks about again, so that one turn does not pay for many."""


def conflicts_to_retry(facts: Sequence[MatchedFact], rules: TurnRules) -> tuple[Question, ...]:
    """The unresolved facts near `facts`, each with the other near facts; of two unresolved facts one is a rival."""
    unresolved: dict[UUID, Candidate] = {}
    rivals: dict[UUID, dict[UUID, Candidate]] = {}
    for matched in facts:
        near = [  # whom they are about was held against the turn's fact alone
            known.model_copy(update={"subject_relation": None})
            for known in conflicting_facts(matched, rules)
            if known.status == "active"
        ]
        for known in near:
            if known.unresolved and (known.fact_id in unresolved or len(unresolved) < MAX_RETRIED_CONFLICTS):
                unresolved.setdefault(known.fact_id, known)
                others = {other.fact_id: other for other in near if other.fact_id not in unresolved}
                rivals.setdefault(known.fact_id, {}).update(others)
    return tuple(
        Question(
            fact=as_extracted_fact(known),
            candidates=tuple(rivals[fact_id].values()),
            known=known,
            known_as="unresolved",
        )
        for fact_id, known in unresolved.items()
        if rivals[fact_id]
    )


def with_facts_beside(
    question: Question, beside: Sequence[StoredFact], subjects: Sequence[KnownEntity], *, at: datetime
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
        relation = entity_relation(subject, about.get(known.fact_id))
        rival = known if relation is None else known.model_copy(update={"subject_relation": relation})
        if not rival.is_of_other_entity:
            rivals.append(rival)
    return replace(question, candidates=tuple(rivals))


def retry_events(  # noqa: PLR0911 - one return a verdict
    judgement: Judgement, context: DecisionContext, state: TurnState, ordinal: int
) -> Sequence[MemoryEvent]:
    """The events that settle an unresolved fact; none without a valid decision, or where a guard applies.

    Then it stays unresolved: a later turn asks again, or a command settles it.
    """
    question, llm_decision = judgement.question, judgement.answer
    unresolved = state.open_fact(question.known) if question.known else None
    if unresolved is None or isinstance(llm_decision, NoDecision):
        return ()
    reply, stored = llm_decision.reply, question.stored
    targets = tuple(known for known in state.open_facts(llm_decision.targets) if known.status == "active")
    if reply.verdict != "ADD" and not targets:
        return ()
    fact = stored.fact if stored else question.fact
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
        if cleared != "late_news" or end is None:
            return ()
        decision = builder.held_back(llm_decision, cleared, [unresolved])
        return (builder.ending(FactExpired, builder.clear_itself(), decision, ended_at=end[0]),)
    decision = builder.decision("model", reply.reason, llm_decision, before=snapshots(targets))
    match reply.verdict:
        case "KEEP":
            is_more = says_more(unresolved, unresolved.authority, unresolved.metadata, targets[0])
            is_more = is_more or is_no_repetition(fact, targets[0], context.rules)
            return (resolved(cleared, decision, action="keep_both" if is_more else "keep_old"),)
        case "MERGE":
            itself = builder.clear_itself(cleared)
            return overwrite_events(builder, llm_decision, itself, (unresolved, *targets), decision)
        case "REPLACE" | "CONTRADICT":
            return overwrite_events(builder, llm_decision, cleared, targets, decision)
        case "RETRACT" | "EXPIRE":  # the unresolved fact is the statement that says so, and stays
            ends = overwrite_events(builder, llm_decision, cleared, targets, decision)
            return *ends, resolved(cleared.part(()), decision, offset=len(ends), action="keep_both")
        case _:
            return (resolved(cleared, decision, action="keep_both"),)
