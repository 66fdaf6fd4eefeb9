"""Asks again about unresolved facts that a turn has come near, and settles them."""

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
from mnemolog.streams.resolution.events import DecisionContext, EventBuilder, LlmDecision, NoDecision, snapshots
from mnemolog.streams.resolution.guards import GUARD_REASONS, StatementContext, find_guard, next_version_start
from mnemolog.streams.resolution.late_statements import is_outdated
from mnemolog.streams.resolution.overwrites import call_off_plans, overwrite_event, target_end
from mnemolog.streams.text.differences import EntityRelation

MAX_RETRIED_CONFLICTS: Final = 3
"""How many unresolved facts one call asks about again, so that one turn does not pay for many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConflict:
    """An unresolved fact that a turn has come near, and the known facts near both, or that it was put beside.

    `stored` has what was said of it, and by whom.
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
    """The unresolved facts near `facts`, each with what else is near; of two of them one is the other's rival."""
    unresolved: dict[UUID, Candidate] = {}
    rivals: dict[UUID, dict[UUID, Candidate]] = {}
    for matched in facts:
        found = conflicting_facts(matched, thresholds, rules, user_names)
        near = [known for known in found if known.status == "active"]
        for known in near:
            if known.unresolved and (known.fact_id in unresolved or len(unresolved) < MAX_RETRIED_CONFLICTS):
                unresolved.setdefault(known.fact_id, _not_held_against_turn(known))
                others = {one.fact_id: _not_held_against_turn(one) for one in near if one.fact_id not in unresolved}
                rivals.setdefault(known.fact_id, {}).update(others)
    return tuple(
        RetryConflict(unresolved=known, rivals=tuple(rivals[fact_id].values()))
        for fact_id, known in unresolved.items()
        if rivals[fact_id]
    )


def _not_held_against_turn(known: Candidate) -> Candidate:
    """A candidate without what was found of it and the turn's fact."""
    return known.model_copy(update={"subject_relation": None})


def with_facts_beside(
    conflict: RetryConflict, beside: Sequence[StoredFact], subjects: Sequence[KnownEntity], *, at: datetime
) -> RetryConflict:
    """The conflict with the facts of its first question, as far as they hold `at` a time, before what else is near.

    An answer that was not shown them settles nothing between them. `subjects` are the entities that all of these are
    about: what is known of another one, or of a possible twin, is no rival.
    """
    near = {known.fact_id: known for known in conflict.rivals}
    still_active = (stored for stored in beside if stored.state.status == "active")
    held = (stored for stored in still_active if stored.ends_at is None or stored.ends_at > at)
    first = {stored.fact_id: near.get(stored.fact_id) or _as_candidate(stored) for stored in held}
    about = subjects_by_fact(subjects)
    subject = about.get(conflict.unresolved.fact_id)
    rivals = (_about(known, entity_relation(subject, about.get(known.fact_id))) for known in {**first, **near}.values())
    return replace(conflict, rivals=tuple(known for known in rivals if not known.is_of_other_entity))


def _about(known: Candidate, relation: EntityRelation | None) -> Candidate:
    return known if relation is None else known.model_copy(update={"subject_relation": relation})


def _as_candidate(stored: StoredFact) -> Candidate:
    """A known fact whose distance was not measured. What began at a time of its own was said then or before."""
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
    unresolved, llm_decision = state.open_fact(retry_outcome.conflict.unresolved), retry_outcome.llm_decision
    if unresolved is None or isinstance(llm_decision, NoDecision):
        return ()
    reply = llm_decision.reply
    targets = tuple(known for known in state.open_facts(llm_decision.targets) if known.status == "active")
    if reply.verdict != "ADD" and not targets:
        return ()
    builder = _as_statement(retry_outcome, unresolved, context, state, ordinal)
    decision = builder.decision("model", reply.reason, llm_decision, before=snapshots(targets))
    statement, rules = builder.statement_context, context.rules
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


def _as_statement(
    retry_outcome: RetryOutcome, unresolved: Candidate, context: DecisionContext, state: TurnState, ordinal: int
) -> EventBuilder:
    """The builder of events about an unresolved fact as it was said: by its own speaker, and when that was."""
    stored, began = retry_outcome.conflict.stored, unresolved.true_from
    fact = stored.fact if stored else as_extracted_fact(unresolved)
    decided = retry_outcome.llm_decision
    return EventBuilder(
        context=replace(context, speaker=stored.speaker, authority=stored.authority) if stored else context,
        state=state,
        ordinal=ordinal,
        fact=fact,
        statement_context=StatementContext(
            confidence=unresolved.confidence,
            true_from=began,
            said_at=unresolved.said_at or began,
            tells_change_or_end=fact.action_hint != "new",
        ),
        vector=decided.merged_vector if isinstance(decided, LlmDecision) else None,
        candidates=retry_outcome.conflict.rivals,
    )


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
