"""Asks again about unresolved facts that are near the facts of a turn, and settles them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.events import ConflictResolved, FactExpired, FactRetracted, MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Decision, Thresholds
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.entities.subjects import entity_relation, subjects_by_fact
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact
from mnemolog.streams.resolution.classify import TurnState, conflicting_facts, known_candidate
from mnemolog.streams.resolution.events import (
    DecisionContext,
    EventBuilder,
    LlmDecision,
    NoDecision,
    says_more,
    snapshots,
)
from mnemolog.streams.resolution.guards import GUARD_REASONS, StatementContext, find_guard, next_version_start
from mnemolog.streams.resolution.late_statements import is_outdated
from mnemolog.streams.resolution.overwrites import call_off_plans, overwrite_event, target_end

MAX_RETRIED_CONFLICTS: Final = 3
"""How many unresolved facts one call asks about again, so that one turn does not pay for many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConflict:
    """An unresolved fact near a fact of the turn, and its rivals: known facts near both, or that it was put beside.

    `stored` is the unresolved fact with its statement and speaker.
    """

    unresolved: Candidate
    rivals: tuple[Candidate, ...]
    stored: StoredFact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOutcome:
    """The decision on a retried conflict."""

    conflict: RetryConflict
    llm_decision: LlmDecision | NoDecision


def conflicts_to_retry(
    facts: Sequence[MatchedFact], thresholds: Thresholds, rules: EffectivePolicy, user_names: Sequence[str] = ()
) -> tuple[RetryConflict, ...]:
    """The unresolved facts near `facts`, each with the other near facts; of two unresolved facts one is a rival."""
    unresolved: dict[UUID, Candidate] = {}
    rivals: dict[UUID, dict[UUID, Candidate]] = {}
    for matched in facts:
        found = conflicting_facts(matched, thresholds, rules, user_names)
        near = [known for known in found if known.status == "active"]
        for known in near:
            if known.unresolved and (known.fact_id in unresolved or len(unresolved) < MAX_RETRIED_CONFLICTS):
                unresolved.setdefault(known.fact_id, _without_subject_relation(known))
                others = {
                    other.fact_id: _without_subject_relation(other) for other in near if other.fact_id not in unresolved
                }
                rivals.setdefault(known.fact_id, {}).update(others)
    return tuple(
        RetryConflict(unresolved=known, rivals=tuple(rivals[fact_id].values()))
        for fact_id, known in unresolved.items()
        if rivals[fact_id]
    )


def _without_subject_relation(known: Candidate) -> Candidate:
    """A candidate without the relation of its subject to that of the turn's fact."""
    return known.model_copy(update={"subject_relation": None})


def with_facts_beside(
    conflict: RetryConflict, beside: Sequence[StoredFact], subjects: Sequence[KnownEntity], *, at: datetime
) -> RetryConflict:
    """The conflict with the facts of its first question that still hold `at` a time, before the other near facts.

    An answer that was not shown them settles nothing between them. `subjects` are the entities that all these facts
    are about: a fact about another entity, or about a possible twin, is no rival.
    """
    near = {known.fact_id: known for known in conflict.rivals}
    first = {
        stored.fact_id: near.get(stored.fact_id) or _as_candidate(stored)
        for stored in beside
        if stored.state.status == "active" and (stored.ends_at is None or stored.ends_at > at)
    }
    about = subjects_by_fact(subjects)
    subject = about.get(conflict.unresolved.fact_id)
    rivals: list[Candidate] = []
    for known in {**first, **near}.values():
        relation = entity_relation(subject, about.get(known.fact_id))
        rival = known if relation is None else known.model_copy(update={"subject_relation": relation})
        if not rival.is_of_other_entity:
            rivals.append(rival)
    return replace(conflict, rivals=tuple(rivals))


def _as_candidate(stored: StoredFact) -> Candidate:
    """A stored fact whose similarity was not measured. A fact without an event time was said when it began."""
    fact, state = stored.fact, stored.state
    last_said = [time for time in (state.last_confirmed_at, None if fact.event_time else stored.true_from) if time]
    return known_candidate(
        fact,
        fact_id=stored.fact_id,
        confidence=state.confidence,
        true_from=stored.true_from,
        true_to=state.true_to,
        authority=stored.authority,
        unresolved=state.unresolved,
        said_at=max(last_said, default=None),
    )


def retry_events(
    retry_outcome: RetryOutcome, context: DecisionContext, state: TurnState, ordinal: int
) -> Sequence[MemoryEvent]:
    """The events that settle an unresolved fact; none without a valid decision, or where a guard applies.

    Then it stays unresolved: a later turn asks again, or a command settles it.
    """
    conflict, llm_decision = retry_outcome.conflict, retry_outcome.llm_decision
    unresolved = state.open_fact(conflict.unresolved)
    if unresolved is None or isinstance(llm_decision, NoDecision):
        return ()
    reply = llm_decision.reply
    targets = tuple(known for known in state.open_facts(llm_decision.targets) if known.status == "active")
    if reply.verdict != "ADD" and not targets:
        return ()
    stored = conflict.stored
    fact = stored.fact if stored else as_extracted_fact(unresolved)
    statement = StatementContext(
        confidence=unresolved.confidence,
        true_from=unresolved.true_from,
        said_at=unresolved.said_at or unresolved.true_from,
        tells_change_or_end=fact.action_hint != "new",
        has_term=fact.valid_until is not None,
        key=fact.key,
        value=fact.value,
    )
    builder = EventBuilder(  # of the unresolved fact as it was said: by its own speaker, and when that was
        context=replace(context, speaker=stored.speaker, authority=stored.authority) if stored else context,
        state=state,
        ordinal=ordinal,
        fact=fact,
        statement_context=statement,
        vector=llm_decision.merged_vector,
        candidates=conflict.rivals,
    )
    decision, rules = builder.decision("model", reply.reason, llm_decision, before=snapshots(targets)), context.rules
    guard = find_guard(reply.verdict, targets, statement, rules, builder.own_ids, ended_at=reply.ended_at)
    if reply.verdict in ("KEEP", "MERGE") and any(is_outdated(builder, known) for known in targets):
        guard = "late_news"
    if guard is None:
        return tuple(_resolution_events(builder, llm_decision, unresolved, targets, decision))
    if guard != "late_news":
        return ()
    reason = f"{reply.reason}; held back: {GUARD_REASONS[guard]}"
    update = {"by": "policy", "reason": reason, "guard": guard, "before": snapshots([unresolved])}
    fields = builder.event_fields(decision.model_copy(update=update))
    end = next_version_start(targets, unresolved.true_from, state.version_starts)
    return () if end is None else (FactExpired(**fields, targets=(unresolved.fact_id,), ended_at=end[0]),)


def _resolution_events(
    builder: EventBuilder,
    llm_decision: LlmDecision,
    unresolved: Candidate,
    targets: tuple[Candidate, ...],
    decision: Decision,
) -> Iterator[MemoryEvent]:
    called_off, targets = call_off_plans(builder, llm_decision, targets, decision)
    yield from called_off
    fields = builder.event_fields(decision, offset=len(called_off))
    target, target_ids = unresolved.fact_id, tuple(known.fact_id for known in targets)
    ended_at = target_end(builder, llm_decision, targets)
    match llm_decision.reply.verdict:
        case "ADD" | "EXTEND" | "SIMILAR":
            yield ConflictResolved(**fields, target=target, targets=target_ids, action="keep_both")
        case "KEEP" if says_more(unresolved.authority, unresolved.key, targets[0]):
            yield ConflictResolved(**fields, target=target, targets=target_ids, action="keep_both")
        case "KEEP":
            yield ConflictResolved(**fields, target=target, targets=target_ids, action="keep_old")
        case "REPLACE":
            yield ConflictResolved(**fields, target=target, targets=target_ids, action="replace", ended_at=ended_at)
        case "CONTRADICT":
            yield ConflictResolved(**fields, target=target, targets=target_ids, action="contradict")
        case "MERGE":
            yield overwrite_event(builder, llm_decision, (unresolved, *targets), decision)
        case "RETRACT" | "EXPIRE" as verdict:  # the unresolved fact is the statement that says so, and stays
            kind = FactRetracted if verdict == "RETRACT" else FactExpired
            yield kind(**fields, targets=target_ids, ended_at=ended_at, ended_by=target)
            yield ConflictResolved(
                **builder.event_fields(decision, offset=len(called_off) + 1), target=target, action="keep_both"
            )
