"""Builds the events about one statement: added, skipped, confirmed or merged facts, and settled pending overwrites."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.events import (
    ConflictResolved,
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactExpired,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactSkipped,
    FactsMerged,
    MemoryEvent,
    Overwrite,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.facts import (
    Authority,
    Candidate,
    ExtractedFact,
    MatchedFact,
    MovedEnd,
    NewFact,
    PromotedFrom,
    Statement,
)
from mnemolog.schemas.provenance import DecidedBy, Decision, FactSnapshot, Guard, Verdict, WeighedCandidate, answered_by
from mnemolog.schemas.stored import PendingCase
from mnemolog.schemas.vector import Vector
from mnemolog.streams.ends import DOUBTFUL_BELOW, same_value
from mnemolog.streams.llm.ports import Question
from mnemolog.streams.llm.reply_checks import ParsedDecision
from mnemolog.streams.merges import fill_one_slot, merged, says_more
from mnemolog.streams.resolution.classify import TurnState
from mnemolog.streams.resolution.guards import (
    GUARD_REASONS,
    Cleared,
    StatementContext,
    TurnRules,
    clear,
    clear_held,
    clear_own,
    clear_repeated,
    goes_on,
    is_outdated,
    is_planned,
    is_resend,
    next_version_start,
    statement_confidence,
)
from mnemolog.streams.text.times import is_ahead
from mnemolog.streams.text.tokens import words_of

EndT = TypeVar(
    "EndT", FactReplaced, FactContradicted, FactRetracted, FactExpired, FactsMerged, ConflictResolved, PendingConfirmed
)
"""Events that end known facts, or settle one of them; they are made of cleared facts alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedConflict:
    """A conflict that a model was asked about: the known facts that it was, or was to be, `shown`."""

    shown: tuple[Candidate, ...] = ()
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDecision(AskedConflict):
    """The model's verdict; `targets` are the shown facts that it named, `merged_vector` is that of a merged text."""

    reply: ParsedDecision
    targets: tuple[Candidate, ...] = ()
    merged_vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDecision(AskedConflict):
    """Why there is no valid verdict."""

    complaint: str


NOT_ASKED: Final = NoDecision(complaint="the turn has more conflicts than one question holds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a model makes of a question."""

    question: Question
    answer: LlmDecision | NoDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """What all decisions of a turn share.

    `authority` and `metadata` are those of the turn's facts, `pending_cases` are the pending overwrites that they may
    meet, `version_starts` the starts of the versions before a known fact.
    """

    owner: str
    source_id: str
    occurred_at: datetime
    speaker: str | None
    rules: TurnRules
    authority: Authority = "extracted"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pending_cases: Mapping[UUID, PendingCase] = field(default_factory=dict)
    version_starts: Mapping[UUID, tuple[datetime, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBuilder:
    """Makes the events about one statement, the first with `ordinal`; each decision names the `candidates`.

    A statement without a `vector` adds no fact of its own; one that is asked about again is the known fact `known_id`.
    Of a promoted statement the context has the speaker, the authority and the metadata of its original, which `began`
    at a time and may have been said again since.
    """

    context: DecisionContext
    state: TurnState
    ordinal: int
    fact: ExtractedFact
    statement_context: StatementContext
    vector: Vector | None
    candidates: tuple[Candidate, ...]
    promoted_from: PromotedFrom | None = None
    began: datetime | None = None
    known_id: UUID | None = None

    @property
    def statement(self) -> Statement:
        return Statement(text=self.fact.text, excerpt=self.fact.excerpt)

    @property
    def own_ids(self) -> frozenset[UUID]:
        """The facts that the statement's turn (of a promoted statement: the turn of its original) has said before."""
        return self.state.facts_of(None if self.promoted_from is None else self.promoted_from.source_id)

    def clear(
        self, verdict: Verdict, targets: Sequence[Candidate], ended_at: datetime | None = None
    ) -> Cleared | Guard:
        policy, starts = self.context.rules.policy, self.state.version_starts
        return clear(verdict, targets, self.statement_context, policy, self.own_ids, starts, ended_at=ended_at)

    def clear_itself(self, others: Cleared | None = None) -> Cleared:
        """As `guards.clear_own`, for the fact of the statement: a known one, or the one that its first event adds."""
        own_id = self.known_id or ids.fact_id(self.context.owner, self.context.source_id, self.ordinal)
        return clear_own(own_id, others)

    def is_outdated(self, known: Candidate) -> bool:
        return is_outdated(self.statement_context, known, self.state.version_starts)

    def shares_slot(self, known: Candidate) -> bool:
        """Whether both are certainly values of one slot."""
        return self.context.rules.slot_relation(self.fact, known) == "same"

    def has_value_of(self, known: Candidate) -> bool:
        """Whether both say one lasting value of one slot, perhaps with other details."""
        return same_value(self.fact, known) and self.shares_slot(known)

    def of_slot(self) -> tuple[Candidate, ...]:
        """The active facts that say a value of the slot that the statement fills, if both hold by now."""
        statement = self.statement_context
        if not self.context.rules.fills_slot(self.fact) or statement.is_plan:
            return ()
        begun = (one for one in self.state.open_facts(self.candidates) if not is_planned(one, statement))
        stated = (one for one in begun if one.status == "active" and one.action_hint != "retract")
        return tuple(one for one in stated if one.valid_until is None and self.shares_slot(one))

    def rivals(self) -> tuple[Candidate, ...]:
        """The facts of its slot that say another value."""
        return tuple(one for one in self.of_slot() if not self.has_value_of(one))

    @property
    def true_from(self) -> datetime:
        """Since when its fact holds: a promoted one since it began, unless another value took its place meanwhile."""
        since = self.statement_context.true_from
        return since if self.began is None or self.rivals() else min(self.began, since)

    def event_fields(self, decision: Decision, *, offset: int = 0) -> dict[str, Any]:
        """The fields that all events have; `offset` counts the events about this statement before it."""
        ordinal = self.ordinal + offset
        event_id = ids.event_id(self.context.owner, self.context.source_id, ordinal)
        return {"event_id": event_id, "ordinal": ordinal, "decision": decision, "promoted_from": self.promoted_from}

    def decision(
        self, by: DecidedBy, reason: str, llm_decision: LlmDecision | NoDecision | None = None, **fields: Any
    ) -> Decision:
        weighed = (WeighedCandidate(fact_id=known.fact_id, similarity=known.similarity) for known in self.candidates)
        asked = llm_decision or AskedConflict()
        return Decision(
            by=answered_by(asked.model) if by == "model" else by,
            reason=reason,
            candidates=tuple(weighed),
            model=asked.model,
            prompt_version=asked.prompt_version,
            verdict=asked.reply.verdict if isinstance(asked, LlmDecision) else None,
            shown=tuple(dict.fromkeys(self.state.current_fact(known).fact_id for known in asked.shown)),
            **fields,
        )

    def held_back(self, llm_decision: LlmDecision, guard: Guard, known: Sequence[Candidate]) -> Decision:
        """The decision of a guard that keeps a verdict from known facts."""
        reason = f"{llm_decision.reply.reason}; held back: {GUARD_REASONS[guard]}"
        return self.decision("rule", reason, llm_decision, guard=guard, before=snapshots(known))

    def added(self, decision: Decision, **fields: Any) -> FactAdded:
        return FactAdded(**self.event_fields(decision), fact=self.new_fact(), **fields)

    def added_and_denied(self, decision: Decision, shown: Sequence[UUID] = ()) -> tuple[FactAdded, FactRetracted]:
        """The events of a statement that never was true, by the facts that are `shown`."""
        added = self.added(decision.model_copy(update={"shown": shown}) if shown else decision)
        denied = decision.model_copy(update={"shown": (added.fact.fact_id, *shown)}) if shown else decision
        return added, self.ending(FactRetracted, self.clear_itself(), denied, offset=1, ended_at=None)

    def ending(self, kind: type[EndT], cleared: Cleared, decision: Decision, *, offset: int = 0, **fields: Any) -> EndT:
        """The event that ends cleared facts, or settles what the statement means for them."""
        return kind(**self.event_fields(decision, offset=offset), targets=cleared.fact_ids, **fields)

    def pending(
        self, decision: Decision, targets: Iterable[UUID], action: Overwrite, *, offset: int = 0, **fields: Any
    ) -> FactPending:
        """The event of an overwrite that the guard of the decision holds back.

        Only a person confirms one against a human's word.
        """
        fields |= {"guard": decision.guard, "needs_human": decision.guard == "human_word"}
        targets = tuple(dict.fromkeys(targets))
        return FactPending(**self.event_fields(decision, offset=offset), targets=targets, action=action, **fields)

    def added_as_history(self, newer: Sequence[Candidate], decision: Decision) -> FactAdded:
        """The event of a statement that is older than a fact of `newer`: it held until the next version began.

        Of a state that goes on beside such a fact it is open which of them holds.
        """
        if beside := [known for known in newer if goes_on(self.statement_context, known)]:
            reason = "it began before the known fact and is said to hold: both are kept"
            decision = decision.model_copy(update={"by": "rule", "reason": reason, "guard": None})
            return as_unresolved(self.added(decision), [known.fact_id for known in beside])
        end = next_version_start(newer, self.statement_context.true_from, self.state.version_starts)
        return self.added(decision, **({"ended_at": end[0], "ended_by": end[1]} if end else {}))

    def repetition_fields(self, known: Candidate, decision: Decision) -> dict[str, Any]:
        """The fields of the event of a repetition."""
        fields = {"target": known.fact_id, "statement": self.statement, "true_from": self.earlier_beginning(known)}
        return self.event_fields(decision) | fields

    def skipped(self, known: Candidate, decision: Decision) -> FactSkipped:
        return FactSkipped(**self.repetition_fields(known, decision), of_ended=known.status == "ended")

    def earlier_beginning(self, known: Candidate) -> datetime | None:
        """Since when an active or ended fact is true by this repetition, if that is earlier than was known."""
        true_from = self.true_from
        is_earlier = true_from < known.true_from and not self.repeats_plan(known)
        return true_from if known.status != "pending_confirmation" and is_earlier else None

    def repeats_plan(self, known: Candidate) -> bool:
        """Whether the statement tells a plan without its time, and not that it has begun: its time stays."""
        is_undated = self.fact.event_time is None and is_planned(known, self.statement_context)
        return is_undated and is_ahead(self.fact.text)

    def new_fact(self, *, offset: int = 0) -> NewFact:
        if self.vector is None:
            raise AssertionError("a statement without a vector adds no fact of its own")
        of_entities = ("entities", "relations", "unlinked")  # events of their own in the log, or a part of a step
        return NewFact(
            **{name: getattr(self.fact, name) for name in ExtractedFact.model_fields if name not in of_entities},
            fact_id=ids.fact_id(self.context.owner, self.context.source_id, self.ordinal + offset),
            confidence=self.statement_context.confidence,
            true_from=self.true_from,
            speaker=self.context.speaker,
            authority=self.context.authority,
            said_at=self._own_time(self.statement_context.said_at),
            metadata=(dict(self.context.metadata) or None) if self.promoted_from else None,
            vector=self.vector,
        )

    def merged_fact(
        self,
        llm_decision: LlmDecision | None,
        targets: Sequence[Candidate],
        *,
        offset: int = 0,
        worded_by: Candidate | None = None,
    ) -> NewFact:
        """The statement with all that the targets have, in the words of the model, of a target, or its own.

        It was said when its last parent was, and a doubtful statement makes it as doubtful. All parents have one term.
        """
        reply = llm_decision and llm_decision.reply
        fact = self.new_fact(offset=offset).model_copy(update={"metadata": dict(self.context.metadata)})
        if plan := next(filter(self.repeats_plan, targets), None):
            fact = fact.model_copy(update={"true_from": plan.true_from, "event_time": plan.event_time})
        fact = merged(fact, targets, worded_by=worded_by)
        said_at = max([self.statement_context.said_at, *(known.said_at for known in targets if known.said_at)])
        confidence = self.statement_context.confidence
        doubt = {"confidence": confidence} if confidence < DOUBTFUL_BELOW else {}
        text = {"text": reply.text, "search_text": reply.text} if reply and reply.text else {}
        vector = (llm_decision and llm_decision.merged_vector) or fact.vector
        return fact.model_copy(update={"said_at": self._own_time(said_at), "vector": vector, **doubt, **text})

    def _own_time(self, said_at: datetime) -> datetime | None:
        """None where it is the time of the source."""
        return None if said_at == self.context.occurred_at else said_at


def with_own_end(event: MemoryEvent, ended_at: datetime, ended_by: UUID) -> MemoryEvent:
    """The event, whose new fact ends before what it ends itself."""
    if event.new_fact is None:
        raise AssertionError("an event without a new fact has no end of its own")
    own = MovedEnd(fact_id=event.new_fact.fact_id, ender=ended_by, ended_at=ended_at, ended_by=ended_by)
    return event.model_copy(update={"moved_ends": (own, *event.moved_ends)})


def as_unresolved(event: FactAdded, beside: Iterable[UUID]) -> FactAdded:
    """The event, whose fact stands beside facts without a decision on both."""
    shown = tuple(dict.fromkeys((*event.decision.shown, *beside)))
    decision = event.decision.model_copy(update={"shown": shown})
    return event.model_copy(update={"unresolved": True, "decision": decision})


def statement_context(matched: MatchedFact, context: DecisionContext) -> StatementContext:
    """The certainty and the times of a statement: it holds since its event time, or since it was said."""
    return StatementContext(
        fact=matched.fact,
        confidence=statement_confidence(matched, context.rules.policy),
        true_from=matched.holds_since(context.occurred_at),
        said_at=matched.said_at(context.occurred_at),
    )


def snapshots(known_facts: Sequence[Candidate]) -> tuple[FactSnapshot, ...]:
    """Known facts as they are before an event."""
    names = ("fact_id", "text", "key", "value", "confidence", "true_from")
    return tuple(FactSnapshot(**{name: getattr(known, name) for name in names}) for known in known_facts)


def repetition_events(  # noqa: PLR0911 - one return a case
    builder: EventBuilder, known: Candidate, decision: Decision, *, raises_confidence: bool
) -> Sequence[MemoryEvent]:
    """The events of a statement that repeats `known`; `raises_confidence`: the LLM saw it in other words.

    The repetition confirms a pending fact that was said before it, and rejects earlier pending overwrites of `known`
    that are no human's word. A raw turn, a turn under `add_only`, a repetition of an ended fact, and a resend do
    neither.
    """
    rules, statement = builder.context.rules, builder.statement_context
    if enriched := _enriched(builder, known, decision):
        return enriched
    if not rules.uses_llm or known.status == "ended":
        return (builder.skipped(known, decision),)
    case = builder.context.pending_cases.get(known.fact_id) if known.status == "pending_confirmation" else None
    cleared = clear_held(case, known, statement, builder.context.speaker, rules) if case else None
    if case and isinstance(cleared, Cleared):
        then, active = replace(builder, ordinal=builder.ordinal + 1), known.model_copy(update={"status": "active"})
        return (confirm_pending(builder, case, cleared, decision), *_enriched(then, active, decision))
    if cleared:
        return (FactConfirmed(**builder.repetition_fields(known, decision.model_copy(update={"guard": cleared}))),)
    if rejections := rejections_of_challenges(builder, [known], decision):
        fields = builder.repetition_fields(known, decision) | {"target": rejections[0].target}
        return (PendingRejected(**fields, confirmed=known.fact_id), *rejections[1:])
    is_first = known.fact_id not in builder.state.confirmed_ids
    if raises_confidence and is_first and not is_resend(known, statement, rules):
        return (FactConfirmed(**builder.repetition_fields(known, decision)),)
    return (builder.skipped(known, decision),)


def _enriched(builder: EventBuilder, known: Candidate, decision: Decision) -> Sequence[MemoryEvent]:
    """The events of a statement that repeats an active fact and `says_more`; none where it does not.

    The fact goes on with what the statement adds, and its pending overwrites are rejected as by any repetition. It
    keeps its own text and slot unless the statement has all of its words and more. Under `add_only`, and beside a
    human's word, the statement is a fact of its own; so it is, unresolved, where its key has another value.
    """
    if known.status != "active" or builder.vector is None:
        return ()
    if not says_more(builder.fact, builder.context.authority, builder.context.metadata, known):
        return ()
    rivals = (other for other in builder.candidates if other.status == "active" and other.fact_id != known.fact_id)
    if known.key is None and any(builder.shares_slot(other) for other in rivals):
        return (builder.added(decision, unresolved=True),)
    cleared = clear_repeated(known, builder.context.rules.policy)
    has_more_words = set(words_of(known.text)) < set(words_of(builder.fact.text))
    if cleared is None or (has_more_words and not fill_one_slot((known, builder.fact))):
        return (builder.added(decision),)
    rejections = rejections_of_challenges(builder, [known], decision) if builder.context.rules.infer else ()
    reason = f"{decision.reason}, and more: both are one fact"
    decision = decision.model_copy(update={"reason": reason, "before": snapshots([known])})
    offset = len(rejections)
    fact = builder.merged_fact(None, [known], offset=offset, worded_by=None if has_more_words else known)
    repeated = builder.ending(FactsMerged, cleared, decision, offset=offset, statement=builder.statement, fact=fact)
    return (*rejections, repeated)


def confirm_pending(builder: EventBuilder, case: PendingCase, cleared: Cleared, decision: Decision) -> PendingConfirmed:
    """The event that carries a pending overwrite out, on the cleared targets that this turn has not ended.

    The fact is unresolved beside the successors of other targets, and beside active values of its slot that the
    decision on it did not weigh.
    """
    state = builder.state
    others = [known.fact_id for known in builder.rivals() if known.fact_id not in case.targets]
    beside = tuple(dict.fromkeys(state.open_ids((*case.successors, *others))))
    update = {"before": snapshots(state.compared_facts(case.targets))} | ({"shown": beside} if beside else {})
    return builder.ending(
        PendingConfirmed,
        cleared.part(state.open_ids(cleared.fact_ids)),
        decision.model_copy(update=update),
        target=case.fact_id,
        unresolved=bool(beside),
        action=case.action,
        ended_at=case.ended_at,
        statement=builder.statement,
    )


def rejections_of_challenges(
    builder: EventBuilder, stated_again: Sequence[Candidate], decision: Decision
) -> Sequence[PendingRejected]:
    """Rejects each earlier pending overwrite of known facts that the statement states again.

    It contradicts that they have ended or never were true; a pending term or merge it does not contradict.
    """
    challengers = dict.fromkeys(fact_id for known in stated_again for fact_id in known.challenged_by)
    cases = (builder.context.pending_cases.get(fact_id) for fact_id in builder.state.open_ids(challengers))
    contradicted = (
        case
        for case in cases
        if case
        and case.action in ("replace", "contradict", "retract")
        and case.said_at < builder.statement_context.said_at
        if case.authority != "human"
    )
    return [
        PendingRejected(**builder.event_fields(decision, offset=offset), target=case.fact_id)
        for offset, case in enumerate(contradicted)
    ]
