"""Builds the events of statements that come late: about facts that have ended since, or of a time before them."""

from collections.abc import Sequence

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT, FactAdded, MemoryEvent
from mnemolog.schemas.facts import Candidate, MovedEnd
from mnemolog.streams.resolution.classify import Obsolete
from mnemolog.streams.resolution.events import EventBuilder, LlmDecision, snapshots
from mnemolog.streams.resolution.guards import GUARD_REASONS, Cleared, is_late_news, is_planned, predates
from mnemolog.streams.resolution.overwrites import target_end
from mnemolog.streams.text.differences import relate_subjects


def apply_to_ended(builder: EventBuilder, llm_decision: LlmDecision, ended: Sequence[Candidate]) -> MemoryEvent:
    """The event of a late statement about facts that have ended since it was said.

    The statement repeats an ended fact; or it adds to ended facts, and ended with them; or it is of a time before them.
    Else it is news, which may end them earlier than was known.
    """
    reply, statement, names = llm_decision.reply, builder.statement_context, builder.context.rules.user_names
    decision = builder.decision("model", reply.reason, llm_decision)
    history = decision.model_copy(update={"by": "policy", "guard": "late_news", "before": snapshots(ended)})
    held = [known for known in ended if known.true_to is not None and statement.true_from < known.true_to]
    if reply.verdict == "KEEP" and held:
        nearest = max(held, key=lambda known: known.similarity)
        if not builder.is_outdated(nearest):
            return builder.skipped(nearest, decision)
        return add_as_history(builder, nearest, llm_decision)
    added_to: list[Candidate] = []
    if reply.verdict in ("MERGE", "EXTEND"):
        added_to = [known for known in held if relate_subjects(builder.fact, known, names) != "other"]
    elif reply.verdict == "SIMILAR":
        added_to = [known for known in held if builder.has_value_of(known)]
    if added_to:
        last = max(added_to, key=lambda known: known.true_to or statement.true_from)
        # The statement ended in favour of the fact that ended `last`: `move_ends` knows which fact that is.
        ended_by = None if last.fact_id in builder.state.own_ids else last.fact_id
        reason = f"{reply.reason}; it adds to what has ended since: kept as history"
        return builder.added(history.model_copy(update={"reason": reason}), ended_at=last.true_to, ended_by=ended_by)
    newer = [known for known in ended if is_late_news(reply.verdict, [known], statement, reply.ended_at)]
    if reply.verdict in OVERWRITE_OF_VERDICT and newer:
        return builder.added_as_history(newer, builder.held_back(llm_decision, "late_news", ended))
    moved = _earlier_ends(builder, llm_decision, held) if reply.verdict in OVERWRITE_OF_VERDICT else ()
    if not moved:
        return builder.added(decision)
    corrected = next(known for known in held if known.fact_id == moved[0].fact_id)
    fields = {"ended_at": corrected.true_to} if reply.verdict == "CONTRADICT" else {}  # it takes its place
    return builder.added(history.model_copy(update={"by": decision.by, "guard": None}), moved_ends=moved, **fields)


def _earlier_ends(builder: EventBuilder, llm_decision: LlmDecision, held: Sequence[Candidate]) -> tuple[MovedEnd, ...]:
    """The earlier ends that a statement gives to facts that something else ended later.

    What it corrects within its turn never held. None where a guard would hold the statement back, or where it calls off
    facts that were a plan then.
    """
    reply = llm_decision.reply
    begun = [known for known in held if not is_planned(known, builder.statement_context)]
    as_they_were = [known.model_copy(update={"status": "active"}) for known in begun]
    cleared = builder.clear(reply.verdict, as_they_were, reply.ended_at)
    if not begun or not isinstance(cleared, Cleared):
        return ()
    if reply.verdict == "CONTRADICT":
        ends = [(known, known.true_from) for known in begun if known.fact_id in builder.own_ids]
    else:
        ended_at = target_end(builder, llm_decision, begun)
        ends = [(known, ended_at) for known in begun]
    fact_id = builder.new_fact().fact_id
    return tuple(
        MovedEnd(fact_id=known.fact_id, ender=fact_id, ended_at=ended_at, ended_by=fact_id)
        for known, ended_at in ends
        if known.fact_id in cleared.fact_ids and known.true_to is not None and ended_at < known.true_to
    )


def add_obsolete(builder: EventBuilder, obsolete: Obsolete) -> FactAdded:
    """The statement held until the next newer value of its slot began, be that value open or ended."""
    statement = builder.statement_context
    open_values = builder.state.open_facts(filter(builder.shares_slot, builder.candidates))
    newer = [known for known in open_values if predates(statement.true_from, statement, known)]
    decision = builder.decision("policy", "the key had a newer value, which has ended too", guard="late_news")
    return builder.added_as_history([*obsolete.newer_values, *newer], decision)


def add_as_history(builder: EventBuilder, known: Candidate, llm_decision: LlmDecision | None = None) -> FactAdded:
    """The statement is of a time before another value, which held before `known` began."""
    reason = f"another value held between this statement and the known fact: {GUARD_REASONS['late_news']}"
    decision = builder.decision("policy", reason, llm_decision, guard="late_news", before=snapshots([known]))
    return builder.added_as_history([known], decision)
