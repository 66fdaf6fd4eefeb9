"""Events of a decision that ends known facts: carried out, or held back as a pending fact where a guard says so.

`HeldOverwriteCloser` rejects held overwrites whose targets have all ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import (
    OVERWRITE_OF_VERDICT,
    VERDICTS_WITH_END_TIME,
    FactContradicted,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactsMerged,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.provenance import Decision, Guard
from mnemolog.streams.resolution.events import (
    EventBuilder,
    LlmDecision,
    confirm_pending,
    own_end,
    rejections_of_challenges,
    snapshots,
)
from mnemolog.streams.resolution.guards import (
    KEPT_BESIDE,
    Cleared,
    clear_held,
    is_late_news,
    is_plan,
    is_planned,
    next_version_start,
)
from mnemolog.streams.resolution.ports import ChallengeReader


def apply_overwrite(  # noqa: PLR0911 - one return a case
    builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate]
) -> Sequence[MemoryEvent]:
    """The events of a verdict of `OVERWRITE_OF_VERDICT` on at least one target."""
    reply, statement = llm_decision.reply, builder.statement_context
    newer = [
        known
        for known in targets
        if known.status == "active" and is_late_news(reply.verdict, [known], statement, reply.ended_at)
    ]
    older = [known for known in targets if known not in newer]
    if newer and older:
        return _overwrite_older(builder, llm_decision, older, newer)
    guard = builder.clear(reply.verdict, targets, reply.ended_at)
    pending = next((known for known in targets if known.status == "pending_confirmation"), None)
    if pending is not None and reply.verdict == "MERGE" and guard not in KEPT_BESIDE:
        return _enrich_pending(builder, llm_decision, pending)
    if isinstance(guard, Cleared):
        if held := _in_place_of_held(builder, llm_decision, targets):
            return held
        decision = builder.decision("model", reply.reason, llm_decision, before=snapshots(targets))
        called_off, begun = call_off_plans(builder, llm_decision, guard, targets, decision)
        stated_again = list(filter(builder.has_value_of, targets)) if reply.verdict == "MERGE" else ()
        before = (*called_off, *rejections_of_challenges(builder, stated_again, decision))
        last = overwrite_event(builder, llm_decision, guard, begun, decision, offset=len(before))
        return *before, last
    decision = builder.held_back(llm_decision, guard, targets)
    if guard in KEPT_BESIDE:
        return (builder.added(decision),)
    if guard == "late_news":
        newer = [known for known in targets if known.status == "active"]
        if reply.verdict != "REPLACE" or not statement.is_plan or not all(map(is_plan, newer)):
            return (builder.added_as_history(newer, decision),)
        return builder.added_and_denied(decision)  # a plan that another plan has replaced since never was true
    merges = reply.verdict == "MERGE"
    event = FactPending(
        **builder.event_fields(decision),
        targets=tuple(known.fact_id for known in targets),
        action=OVERWRITE_OF_VERDICT[reply.verdict],
        ended_at=target_end(builder, llm_decision, targets) if reply.verdict in VERDICTS_WITH_END_TIME else None,
        guard=guard,
        needs_human=guard == "human_word",
        fact=builder.merged_fact(llm_decision, targets) if merges else builder.new_fact(),
    )
    return (event,)


def _overwrite_older(
    builder: EventBuilder, llm_decision: LlmDecision, older: Sequence[Candidate], newer: Sequence[Candidate]
) -> Sequence[MemoryEvent]:
    """The events of a late statement that ends older facts and is itself older than `newer` facts, which stay.

    The fact that it adds held until the first of the newer facts began.
    """
    *before, last = apply_overwrite(builder, llm_decision, older)
    if last.new_fact is None or isinstance(last, FactPending) or last.moved_ends:
        return *before, last
    end = next_version_start(newer, builder.statement_context.true_from, builder.state.version_starts)
    if end is None:
        return *before, last
    ended_at, ended_by = end
    return *before, last.model_copy(update={"moved_ends": (own_end(last, ended_at, ended_by),)})


def call_off_plans(
    builder: EventBuilder, llm_decision: LlmDecision, cleared: Cleared, targets: Sequence[Candidate], decision: Decision
) -> tuple[tuple[MemoryEvent, ...], tuple[Candidate, ...]]:
    """The event that calls off the plans among cleared facts that a statement ends, and the other facts.

    No event, and all facts, where all of them are plans or none is.
    """
    plans = [known for known in targets if is_planned(known, builder.statement_context)]
    begun = tuple(known for known in targets if known not in plans)
    if llm_decision.reply.verdict not in ("REPLACE", "RETRACT") or not begun or not plans:
        return (), tuple(targets)
    cleared = cleared.part(known.fact_id for known in plans)
    return (builder.ending(FactRetracted, cleared, decision, ended_at=None),), begun


def overwrite_event(
    builder: EventBuilder,
    llm_decision: LlmDecision,
    cleared: Cleared,
    targets: Sequence[Candidate],
    decision: Decision,
    *,
    offset: int = 0,
) -> MemoryEvent:
    """The event of an overwrite of cleared facts. A plan that is called off never was true."""
    cleared, ending = cleared.part(known.fact_id for known in targets), builder.ending
    ended_at = target_end(builder, llm_decision, targets)
    never_began = all(is_planned(known, builder.statement_context) for known in targets)
    match llm_decision.reply.verdict:
        case "MERGE":
            fact = builder.merged_fact(llm_decision, targets, offset=offset)
            return ending(FactsMerged, cleared, decision, offset=offset, statement=builder.statement, fact=fact)
        case "REPLACE" if not never_began:
            fact = builder.new_fact(offset=offset)
            return ending(FactReplaced, cleared, decision, offset=offset, ended_at=ended_at, fact=fact)
        case "CONTRADICT" | "REPLACE":
            return ending(FactContradicted, cleared, decision, offset=offset, fact=builder.new_fact(offset=offset))
        case "RETRACT":
            end, fact = None if never_began else ended_at, builder.new_fact(offset=offset)
            return ending(FactRetracted, cleared, decision, offset=offset, ended_at=end, fact=fact)
        case "EXPIRE":
            return ending(FactExpired, cleared, decision, ended_at=ended_at, fact=builder.new_fact())
        case verdict:
            raise AssertionError(f"{verdict} ends nothing")


def target_end(builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate]) -> datetime:
    """When the targets ended: at the given end, else when the statement began to hold; not before they began.

    An end on the day on which they began, given as a date, is when the statement began to hold, within that day.
    """
    true_from, ended_at = builder.statement_context.true_from, llm_decision.reply.ended_at
    begun = max((known.true_from for known in targets), default=true_from)
    if ended_at is not None and ended_at < begun:
        return max(begun, min(true_from, ended_at + timedelta(days=1)))
    return max(begun, ended_at or true_from)


def _enrich_pending(builder: EventBuilder, llm_decision: LlmDecision, pending: Candidate) -> Sequence[MemoryEvent]:
    """The events of a statement that repeats a pending fact with more detail.

    A statement of another turn confirms the pending fact, and the detail is added beside it. A statement that cannot
    confirm it makes the merged fact pending too.
    """
    state, context = builder.state, builder.context
    case, own = context.pending_cases.get(pending.fact_id), state.held_back.get(pending.fact_id)
    decision = builder.decision("model", llm_decision.reply.reason, llm_decision, before=snapshots([pending]))
    cleared = clear_held(case, pending, builder.statement_context, builder.speaker, context.rules) if case else None
    if case and isinstance(cleared, Cleared):
        fields = builder.event_fields(decision, offset=1)
        detail = FactExtended(**fields, targets=(pending.fact_id,), fact=builder.new_fact(offset=1))
        return (confirm_pending(builder, case, cleared, decision), detail)
    held = own or case
    if held is None:
        return (builder.added(decision),)
    guard: Guard = own.guard if own else "human_word" if held.needs_human else "late_news"
    event = FactPending(
        **builder.event_fields(decision.model_copy(update={"by": "policy", "guard": guard})),
        targets=tuple(dict.fromkeys((*state.open_ids(held.targets), pending.fact_id))),
        action=held.action,
        ended_at=held.ended_at,
        guard=guard,
        needs_human=held.needs_human,
        fact=builder.merged_fact(llm_decision, [pending]),
    )
    return (event,)


def _in_place_of_held(
    builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate]
) -> Sequence[MemoryEvent]:
    """The events of a statement that takes the place of a held overwrite: it waits too, if a guard holds it as well.

    "Oslo, rather Chur" ends no home that a human stated. No events where none of the targets is such an overwrite.
    """
    state, verdict = builder.state, llm_decision.reply.verdict
    if verdict not in ("REPLACE", "CONTRADICT") or any(known.status == "active" for known in targets):
        return ()
    for known in targets:
        held = state.held_back.get(known.fact_id) or builder.context.pending_cases.get(known.fact_id)
        if held is None or held.action not in ("replace", "contradict"):
            continue
        open_ids = state.open_ids(held.targets)
        # What a held statement was to take back, as the statement of an end, does not speak against another one.
        statements_of_ends = {one.fact_id for one in state.compared_facts(open_ids) if one.action_hint == "retract"}
        rejected = {one.fact_id for one in targets}
        open_ids = tuple(one for one in open_ids if one not in statements_of_ends | rejected)
        challenged = state.compared_facts(open_ids)
        if not open_ids:
            continue
        cleared = builder.clear("REPLACE" if held.action == "replace" else "CONTRADICT", challenged)
        guard: Cleared | Guard = "human_word" if held.needs_human else cleared
        if isinstance(guard, Cleared) or guard in KEPT_BESIDE or guard == "late_news":
            continue
        ended_at = target_end(builder, llm_decision, challenged)
        if len(challenged) < len(open_ids):  # a challenged fact that is no candidate had begun by the end that was held
            ended_at = max(ended_at, held.ended_at or ended_at)
        decision = builder.held_back(llm_decision, guard, targets)
        rejections = [
            PendingRejected(**builder.event_fields(decision, offset=offset), target=one.fact_id)
            for offset, one in enumerate(targets)
        ]
        pending = FactPending(
            **builder.event_fields(decision, offset=len(rejections)),
            targets=open_ids,
            action=held.action,
            ended_at=ended_at if held.action == "replace" else None,
            guard=guard,
            needs_human=guard == "human_word",
            fact=builder.new_fact(offset=len(rejections)),
        )
        return *rejections, pending
    return ()


@dataclass(frozen=True, slots=True)
class HeldOverwriteCloser:
    """Adds to the events of a source the rejections of held overwrites whose last challenged fact these events end.

    An undo needs no such rejection: it also takes back the closing, or is refused while a held overwrite depends on it.
    """

    reader: ChallengeReader

    async def __call__(
        self, envelope: MatchedFacts, events: Sequence[MemoryEvent], now: datetime
    ) -> tuple[MemoryEvent, ...]:
        """The events, and the rejections that follow from them. Looks up only where something ends by `now`."""
        ended: set[UUID] = set()
        for event in events:
            # A merged or corrected fact goes on in its successor.
            if event.overwrite != "merge" and (event.end_time is None or event.end_time <= now):
                ended.update(event.ended_ids)
            for moved in event.moved_ends:
                if moved.ended_at is None or moved.ended_at > now:
                    ended.discard(moved.fact_id)
        if not ended or envelope.scope is None:
            return tuple(events)
        challenges = await self.reader.challenges(envelope.scope, sorted(ended))
        own = {event.fact.fact_id: event.targets for event in events if isinstance(event, FactPending)}
        without_targets = _without_targets({**challenges, **own}, ended, events)
        rejections = [
            PendingRejected(
                event_id=ids.event_id(envelope.owner, envelope.id_source, ordinal),
                ordinal=ordinal,
                decision=Decision(by="policy", reason="everything that it challenged has ended"),
                target=pending,
            )
            for ordinal, pending in enumerate(without_targets, len(events))
        ]
        return (*events, *rejections)


def _without_targets(
    challenges: Mapping[UUID, Sequence[UUID]], ended: set[UUID], events: Sequence[MemoryEvent]
) -> Iterator[UUID]:
    """The held overwrites whose challenged facts are all among `ended`, or are such held overwrites themselves."""
    confirmed = {event.target for event in events if isinstance(event, PendingConfirmed)}
    merged = {target for event in events if event.overwrite == "merge" for target in event.ended_ids}
    waiting = {pending: fact_ids for pending, fact_ids in challenges.items() if pending not in confirmed | merged}
    gone = set(ended)
    while closed := [pending for pending, fact_ids in waiting.items() if gone.issuperset(fact_ids)]:
        for pending in closed:
            del waiting[pending]
            if pending not in gone:
                yield pending
        gone.update(closed)
