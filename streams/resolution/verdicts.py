"""Events of one statement by its classification and the model's verdict.

An overwrite, which ends known facts, is carried out, held back as a pending fact, or late.
A late statement is about facts that have ended since, or of a time before them. What follows from the events of a turn:
`HeldOverwriteCloser` rejects held overwrites whose targets have all ended, `with_raw_facts` ends what a failed attempt
has kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import (
    OVERWRITE_OF_VERDICT,
    VERDICTS_WITH_END_TIME,
    ConflictResolved,
    FactAdded,
    FactContradicted,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactsMerged,
    FactsRelated,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.facts import Candidate, MovedEnd
from mnemolog.schemas.filters import EVERYTHING
from mnemolog.schemas.provenance import Decision, Guard, Verdict
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import PendingCase, StoredFact
from mnemolog.streams.ends import same_value
from mnemolog.streams.llm.resolve_prompt import MAX_CANDIDATES
from mnemolog.streams.resolution.classify import (
    Classification,
    Conflict,
    Duplicate,
    New,
    Obsolete,
    conflicting_facts,
    tells_again,
)
from mnemolog.streams.resolution.events import (
    NOT_ASKED,
    EventBuilder,
    LlmDecision,
    NoDecision,
    as_unresolved,
    confirm_pending,
    rejections_of_challenges,
    repetition_events,
    snapshots,
    with_own_end,
)
from mnemolog.streams.resolution.guards import (
    GUARD_REASONS,
    KEPT_BESIDE,
    Cleared,
    clear_held,
    clear_raw,
    goes_on,
    is_late_news,
    is_plan,
    is_planned,
    next_version_start,
    predates,
)
from mnemolog.streams.text.differences import relate_subjects

if TYPE_CHECKING:
    from mnemolog.projections.stores.facts import FactStore


_OF_ONE_SUBJECT: Final = frozenset({"KEEP", *OVERWRITE_OF_VERDICT})
"""Verdicts that may only concern facts of one subject: the other verdicts say that both facts hold."""


def statement_events(  # noqa: PLR0911 - one return a case
    builder: EventBuilder, classification: Classification, llm_decision: LlmDecision | NoDecision | None
) -> Sequence[MemoryEvent]:
    """The events of a statement; `llm_decision` is the answer about its conflict."""
    match classification:
        case New(guard=guard):
            far = f"no known fact reaches similarity {builder.context.rules.thresholds.conflict:g}"
            return (builder.added(builder.decision("rule", GUARD_REASONS[guard] if guard else far, guard=guard)),)
        case Obsolete(newer_values=ended):  # it held until the next newer value began, be that open or ended
            values = builder.state.open_facts(filter(builder.shares_slot, builder.candidates))
            statement = builder.statement_context
            newer = [known for known in values if predates(statement.true_from, statement, known)]
            decision = builder.decision("rule", "the key had a newer value, which has ended too", guard="late_news")
            return (builder.added_as_history([*ended, *newer], decision),)
        case Duplicate(candidate=candidate):
            is_equal = candidate.content_hash == builder.fact.content_hash
            near = f"similarity {candidate.similarity:.3f} is that of a duplicate"
            decision = builder.decision("rule", "same words as a known fact" if is_equal else near)
            known = builder.state.current_fact(candidate)
            if known.status != "ended" and not builder.state.open_facts([known]):
                candidates = conflicting_facts(builder.fact, builder.candidates, builder.context.rules)
                others = builder.state.open_facts(candidates)
                beside = tuple(one.fact_id for one in others if one.status == "active")
                decision = builder.decision("rule", "the fact it repeats was ended earlier in this turn")
                event = builder.added(decision)
                return (as_unresolved(event, beside) if beside else event,)
            if builder.is_outdated(known):
                return (add_as_history(builder, known),)
            return repetition_events(builder, known, decision, raises_confidence=False)
        case Conflict() if isinstance(llm_decision, LlmDecision):
            return _apply_llm_decision(builder, llm_decision)
        case Conflict(candidates=candidates):
            none = llm_decision or NOT_ASKED
            none = replace(none, shown=none.shown or candidates[:MAX_CANDIDATES])
            decision = builder.decision("rule", f"added as unresolved: {none.complaint}", none)
            return (builder.added(decision, unresolved=True),)


def _apply_llm_decision(  # noqa: C901, PLR0911, PLR0912 - one return a verdict
    builder: EventBuilder, llm_decision: LlmDecision
) -> Sequence[MemoryEvent]:
    """The events of a decision; a statement repeats and ends only facts about its own subject."""
    reply, state, statement = llm_decision.reply, builder.state, builder.statement_context
    of_others = [known for known in llm_decision.targets if known.is_of_other_entity]
    if of_others and reply.verdict in _OF_ONE_SUBJECT:
        of_subject = tuple(known for known in llm_decision.targets if known not in of_others)
        if not of_subject:
            return (builder.added(builder.held_back(llm_decision, "other_subject", of_others)),)
        llm_decision = replace(llm_decision, targets=of_subject)
    targets, ended = state.open_facts(llm_decision.targets), state.ended_facts(llm_decision.targets)
    if ended and not targets:
        return (apply_to_ended(builder, llm_decision, ended),)
    newer: list[Candidate] = []
    if reply.verdict in ("EXTEND", "SIMILAR", "EXPIRE"):  # these say nothing about a pending fact
        targets = tuple(known for known in targets if known.status == "active")
    elif reply.verdict in OVERWRITE_OF_VERDICT:  # it ends no pending fact that is newer than the statement
        pending = (known for known in targets if known.status == "pending_confirmation")
        newer = [known for known in pending if is_late_news(reply.verdict, [known], statement)]
        targets = tuple(known for known in targets if known not in newer)
    of_slot = tuple({known.fact_id: known for known in (*targets, *builder.of_slot())}.values())
    if reply.verdict == "REPLACE" and targets and any(known.unresolved for known in of_slot):
        targets = of_slot
    outdated = next((known for known in targets if builder.is_outdated(known)), None)
    decision = builder.decision("model", reply.reason, llm_decision)
    match reply.verdict:
        case _ if not targets:
            if newer:  # it stays open which of them holds
                reason = f"{decision.reason}; held back: older than what waits for a confirmation"
                update = {"by": "rule", "reason": reason, "guard": "late_news", "before": snapshots(newer)}
                decision = decision.model_copy(update=update)
            return (builder.added(decision, unresolved=bool(newer)),)
        case "KEEP" | "MERGE" if outdated is not None:
            return (add_as_history(builder, outdated, llm_decision),)
        case "KEEP":
            repeated = max(targets, key=lambda known: (known.value == builder.fact.value, known.similarity))
            is_again = tells_again(builder.fact, repeated, builder.candidates, builder.context.rules)
            if repeated.status == "active" and not is_again:
                fields = builder.event_fields(decision)
                return (FactsRelated(**fields, targets=(repeated.fact_id,), fact=builder.new_fact()),)
            return repetition_events(builder, repeated, decision, raises_confidence=True)
        case "EXTEND" | "SIMILAR":
            kind = FactExtended if reply.verdict == "EXTEND" else FactsRelated
            return (_detail_event(builder, kind, decision, targets),)
        case "ADD":
            return (builder.added(decision),)
        case _:
            return apply_overwrite(builder, llm_decision, targets)


def _detail_event(
    builder: EventBuilder, kind: type[FactExtended | FactsRelated], decision: Decision, targets: Sequence[Candidate]
) -> FactExtended | FactsRelated:
    """The event of a detail of known facts, or of a similar fact.

    It shares the announced end of a value that it is a detail of, that it says as well, or that is newer.
    """
    fact, statement = builder.new_fact(), builder.statement_context
    ends = [
        (known.true_to, known.fact_id)
        for known in targets
        if known.true_to is not None and known.true_to > fact.true_from and builder.shares_slot(known)
        if kind is FactExtended or builder.has_value_of(known) or predates(statement.true_from, statement, known)
    ]
    moved = tuple(
        MovedEnd(fact_id=fact.fact_id, ender=ender, ended_at=at) for at, ender in sorted(ends, key=itemgetter(0))[:1]
    )
    target_ids = tuple(known.fact_id for known in targets)
    return kind(**builder.event_fields(decision), targets=target_ids, fact=fact, moved_ends=moved)


def apply_overwrite(  # noqa: PLR0911 - one return a case
    builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate]
) -> Sequence[MemoryEvent]:
    """The events of a verdict of `OVERWRITE_OF_VERDICT` on at least one target.

    Of a late statement that is older than some targets, which stay: it ends the others and held until the first newer
    one began.
    """
    reply, statement = llm_decision.reply, builder.statement_context
    newer = [
        known
        for known in targets
        if known.status == "active" and is_late_news(reply.verdict, [known], statement, reply.ended_at)
    ]
    if any(goes_on(statement, known) for known in newer):
        return (builder.added_as_history(newer, builder.held_back(llm_decision, "late_news", newer)),)
    if newer and (older := [known for known in targets if known not in newer]):
        *before, last = apply_overwrite(builder, llm_decision, older)
        end = next_version_start(newer, statement.true_from, builder.state.version_starts)
        if end and last.new_fact is not None and not isinstance(last, FactPending) and not last.moved_ends:
            last = with_own_end(last, *end)
        return *before, last
    guard = builder.clear(reply.verdict, targets, reply.ended_at)
    pending = next((known for known in targets if known.status == "pending_confirmation"), None)
    if pending is not None and reply.verdict == "MERGE" and guard not in KEPT_BESIDE:
        return _enrich_pending(builder, llm_decision, pending)
    if isinstance(guard, Cleared):
        if held := _in_place_of_held(builder, llm_decision, targets):
            return held
        decision = builder.decision("model", reply.reason, llm_decision, before=snapshots(targets))
        of_key = [one for one in targets if one.key == builder.fact.key and reply.verdict == "MERGE"]
        stated_again = [one for one in of_key if same_value(builder.fact, one)]
        rejections = rejections_of_challenges(builder, stated_again, decision)
        return *rejections, *overwrite_events(builder, llm_decision, guard, targets, decision, offset=len(rejections))
    decision = builder.held_back(llm_decision, guard, targets)
    if guard in KEPT_BESIDE:
        return (builder.added(decision),)
    if guard == "late_news":
        newer = [known for known in targets if known.status == "active"]
        if reply.verdict != "REPLACE" or not statement.is_plan or not all(map(is_plan, newer)):
            return (builder.added_as_history(newer, decision),)
        return builder.added_and_denied(decision)  # a plan that another plan has replaced since never was true
    ended_at = target_end(builder, llm_decision, targets) if reply.verdict in VERDICTS_WITH_END_TIME else None
    fact = builder.merged_fact(llm_decision, targets) if reply.verdict == "MERGE" else builder.new_fact()
    target_ids, action = (known.fact_id for known in targets), OVERWRITE_OF_VERDICT[reply.verdict]
    return (builder.pending(decision, target_ids, action, ended_at=ended_at, fact=fact),)


def overwrite_events(
    builder: EventBuilder,
    llm_decision: LlmDecision,
    cleared: Cleared,
    targets: Sequence[Candidate],
    decision: Decision,
    *,
    offset: int = 0,
) -> tuple[MemoryEvent, ...]:
    """The events of an overwrite of cleared facts: by the statement, or by the known fact that is asked about again.

    A plan that is called off never was true: beside other targets it has an event of its own.
    """
    verdict, known_id, ending = llm_decision.reply.verdict, builder.known_id, builder.ending
    plans = [known for known in targets if is_planned(known, builder.statement_context)]
    begun = [known for known in targets if known not in plans]
    called_off: tuple[MemoryEvent, ...] = ()
    if verdict in ("REPLACE", "RETRACT") and begun and plans:
        never_began = cleared.part(known.fact_id for known in plans)
        called_off = (ending(FactRetracted, never_began, decision, offset=offset, ended_at=None),)
        targets, offset = begun, offset + 1
    cleared, ended_at = cleared.part(known.fact_id for known in targets), target_end(builder, llm_decision, targets)
    if verdict == "MERGE":
        fact = builder.merged_fact(llm_decision, targets, offset=offset)
        merged = ending(FactsMerged, cleared, decision, offset=offset, statement=builder.statement, fact=fact)
        return (merged,)
    fields: dict[str, Any] = {"offset": offset}
    if verdict == "REPLACE" and begun:
        fields["ended_at"] = ended_at
    elif verdict in ("RETRACT", "EXPIRE"):
        fields["ended_at"] = ended_at if begun or verdict == "EXPIRE" else None
    if known_id is not None and verdict in ("REPLACE", "CONTRADICT"):
        action = "replace" if "ended_at" in fields else "contradict"
        return *called_off, ending(ConflictResolved, cleared, decision, target=known_id, action=action, **fields)
    fields |= {"fact": builder.new_fact(offset=offset)} if known_id is None else {"ended_by": known_id}
    kinds: dict[Verdict, Any] = {"RETRACT": FactRetracted, "EXPIRE": FactExpired}
    kind = kinds.get(verdict, FactReplaced if "ended_at" in fields else FactContradicted)
    return *called_off, ending(kind, cleared, decision, **fields)


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
    state, context, statement = builder.state, builder.context, builder.statement_context
    case, own = context.pending_cases.get(pending.fact_id), state.held_back.get(pending.fact_id)
    decision = builder.decision("model", llm_decision.reply.reason, llm_decision, before=snapshots([pending]))
    cleared = clear_held(case, pending, statement, context.speaker, context.rules) if case else None
    if case and isinstance(cleared, Cleared):
        fields = builder.event_fields(decision, offset=1)
        detail = FactExtended(**fields, targets=(pending.fact_id,), fact=builder.new_fact(offset=1))
        return (confirm_pending(builder, case, cleared, decision), detail)
    held = own or case
    if held is None:
        return (builder.added(decision),)
    guard: Guard = own.guard if own else "human_word" if held.needs_human else "late_news"
    decision = decision.model_copy(update={"by": "rule", "guard": guard})
    target_ids, fact = (*state.open_ids(held.targets), pending.fact_id), builder.merged_fact(llm_decision, [pending])
    return (builder.pending(decision, target_ids, held.action, ended_at=held.ended_at, fact=fact),)


def _in_place_of_held(
    builder: EventBuilder, llm_decision: LlmDecision, targets: Sequence[Candidate]
) -> Sequence[MemoryEvent]:
    """The events of a statement that takes the place of a held overwrite: it waits too, if a guard holds it as well.

    "Oslo, rather Chur" ends no home that a human stated. No events where none of the targets is such an overwrite.
    """
    state, verdict = builder.state, llm_decision.reply.verdict
    if verdict not in ("REPLACE", "CONTRADICT") or any(known.status == "active" for known in targets):
        return ()
    rejected = [one.fact_id for one in targets]
    for known in targets:
        held = state.held_back.get(known.fact_id) or builder.context.pending_cases.get(known.fact_id)
        if held is None or held.action not in ("replace", "contradict"):
            continue
        open_ids = state.open_ids(held.targets)
        # What a held statement was to take back, as the statement of an end, does not speak against another one.
        statements_of_ends = [one.fact_id for one in state.compared_facts(open_ids) if one.action_hint == "retract"]
        open_ids = tuple(one for one in open_ids if one not in (*statements_of_ends, *rejected))
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
        decision, offset = builder.held_back(llm_decision, guard, targets), len(rejected)
        fields = {"ended_at": ended_at if held.action == "replace" else None, "fact": builder.new_fact(offset=offset)}
        return *(
            PendingRejected(**builder.event_fields(decision, offset=place), target=fact_id, overtaken=True)
            for place, fact_id in enumerate(rejected)
        ), builder.pending(decision, open_ids, held.action, offset=offset, **fields)
    return ()


def apply_to_ended(builder: EventBuilder, llm_decision: LlmDecision, ended: Sequence[Candidate]) -> MemoryEvent:
    """The event of a late statement about facts that have ended since it was said.

    The statement repeats an ended fact; or it adds to ended facts, and ended with them; or it is of a time before them.
    Else it is news, which may end them earlier than was known.
    """
    reply, statement, names = llm_decision.reply, builder.statement_context, builder.context.rules.user_names
    decision = builder.decision("model", reply.reason, llm_decision)
    history = decision.model_copy(update={"by": "rule", "guard": "late_news", "before": snapshots(ended)})
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
        ended_by = None if last.fact_id in builder.state.said_by else last.fact_id
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


def add_as_history(builder: EventBuilder, known: Candidate, llm_decision: LlmDecision | None = None) -> FactAdded:
    """The statement is of a time before another value, which held before `known` began."""
    reason = f"another value held between this statement and the known fact: {GUARD_REASONS['late_news']}"
    decision = builder.decision("rule", reason, llm_decision, guard="late_news", before=snapshots([known]))
    return builder.added_as_history([known], decision)


@dataclass(frozen=True, slots=True)
class HeldOverwriteCloser:
    """Adds to the events of a source what becomes of held overwrites whose last challenged fact these events end.

    They are rejected; but another value of which nothing speaks any more, since a person deleted all that it
    challenged, holds. An undo needs none of it: it also takes back the closing, or is refused while a held overwrite
    depends on it.
    """

    reader: "FactStore"

    async def __call__(
        self, envelope: MatchedFacts, events: Sequence[MemoryEvent], now: datetime
    ) -> tuple[MemoryEvent, ...]:
        """The events, and what follows from them. Looks up only where something ends by `now`."""
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
        settled = {event.target for event in events if isinstance(event, PendingConfirmed)}
        settled.update(*(event.ended_ids for event in events if event.overwrite == "merge"))
        waiting = {pending: known for pending, known in {**challenges, **own}.items() if pending not in settled}
        added: list[MemoryEvent] = []
        for pending, case in (await self._unopposed(envelope.scope, events, waiting, now)).items():
            del waiting[pending]
            decision = Decision(by="rule", reason="everything that it challenged was deleted")
            fields = _fields_after(envelope, (*events, *added)) | {"action": case.action, "ended_at": case.ended_at}
            added.append(PendingConfirmed(**fields, decision=decision, target=pending, targets=()))
        # What waits for the end of another held overwrite is closed with that.
        while closed := [pending for pending, fact_ids in waiting.items() if ended.issuperset(fact_ids)]:
            for pending in closed:
                del waiting[pending]
                if pending not in ended:
                    decision = Decision(by="rule", reason="everything that it challenged has ended")
                    fields = _fields_after(envelope, (*events, *added))
                    added.append(PendingRejected(**fields, decision=decision, target=pending, overtaken=True))
            ended.update(closed)
        return (*events, *added)

    async def _unopposed(
        self, scope: Scope, events: Sequence[MemoryEvent], waiting: Mapping[UUID, Sequence[UUID]], now: datetime
    ) -> Mapping[UUID, PendingCase]:
        """The other value that waits, where a person deleted all that it challenges, and its key has nothing else."""
        commands = [event for event in events if event.event == "fact_retracted" and event.decision.by == "person"]
        deleted = {fact_id for event in commands for fact_id in event.disbelieved_ids}
        alone = [one for one, known in waiting.items() if one not in deleted and deleted.issuperset(known)]
        if len(alone) != 1 or any(moved.ended_at is None for event in events for moved in event.moved_ends):
            return {}
        (case,) = (await self.reader.pending_cases(alone)).values()
        (stored,) = (await self.reader.facts(alone)).values()
        key, limit, others = stored.fact.key, len(deleted) + 2, set[UUID]()
        if key is not None:
            found = await self.reader.scope_facts(scope, key=key, category=None, wanted=EVERYTHING, at=now, limit=limit)
            others = {*found.fact_ids} - deleted - {case.fact_id}
        is_value = case.action in ("replace", "contradict") and stored.fact.action_hint != "retract"
        return {case.fact_id: case} if is_value and not others else {}


def _fields_after(envelope: MatchedFacts, events: Sequence[MemoryEvent]) -> dict[str, Any]:
    ordinal = len(events)
    return {"event_id": ids.event_id(envelope.owner, envelope.id_source, ordinal), "ordinal": ordinal}


def with_raw_facts(
    envelope: MatchedFacts, events: Sequence[MemoryEvent], raw: Mapping[UUID, StoredFact]
) -> tuple[MemoryEvent, ...]:
    """The events, marked where no model could read the turn; else with the end of the `raw` facts of a failed attempt.

    A turn that has failed may be published again. Its raw facts are believed until then, where its policy says so.
    """
    if envelope.end is not None and envelope.end.outcome == "failed":
        reason = f"{envelope.end.reason}: no model could read the turn, so what was said is kept as it is"
        return tuple(
            event.model_copy(update={"decision": event.decision.model_copy(update={"reason": reason})})
            if isinstance(event, FactAdded)
            else event
            for event in events
        )
    cleared = clear_raw(raw.values(), is_immutable=envelope.immutable)
    if not cleared.fact_ids:
        return tuple(events)
    decision = Decision(
        by="rule",
        reason="the turn has been read: its facts take the place of what was kept as it was said",
        before=tuple(raw[fact_id].snapshot for fact_id in cleared.fact_ids),
    )
    fields = _fields_after(envelope, events)
    return (*events, FactRetracted(**fields, decision=decision, targets=cleared.fact_ids, ended_at=None))
