"""What every decision of a turn is made of: its circumstances, and the parts of its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.facts import Candidate, ExtractedFact, NewFact, Statement
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import DecidedBy, Decision, FactSnapshot, Thresholds, WeighedCandidate
from mnemolog.schemas.stored import PendingCase
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.resolve_prompt import ParsedDecision
from mnemolog.streams.resolution.guards import StatementContext, confidence_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDecision:
    """What a reader decided on a contested fact, and which one; `merged_vector` is that of a merged text."""

    reply: ParsedDecision
    targets: tuple[Candidate, ...] = ()
    merged_vector: Vector | None = None
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDecision:
    """No valid decision on a contested fact could be had, and why."""

    complaint: str
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """Whose facts they are, when they were said, and what holds for them; `thresholds` are told in the reasons.

    `pending_cases` has the overwrites that are held back, of all pending facts that these may meet; `version_starts`
    has, for known facts, the beginnings of the versions before them.
    """

    owner: str
    source_id: str
    occurred_at: datetime
    speaker: str | None
    thresholds: Thresholds
    rules: EffectivePolicy = field(default_factory=EffectivePolicy)
    infer: bool = True
    pending_cases: Mapping[UUID, PendingCase] = field(default_factory=dict)
    version_starts: Mapping[UUID, tuple[datetime, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBuilder:
    """Makes the parts of the events about one statement; `ordinal` is the ordinal of the first of them.

    `candidates` are told with each decision. A statement without a `vector` brings no fact of its own.
    """

    context: DecisionContext
    ordinal: int
    fact: ExtractedFact
    statement_context: StatementContext
    vector: Vector | None
    candidates: tuple[Candidate, ...]

    @property
    def statement(self) -> Statement:
        return Statement(text=self.fact.text, excerpt=self.fact.excerpt)

    def event_fields(self, decision: Decision, *, offset: int = 0) -> dict[str, Any]:
        """The fields that all events have; `offset` counts the events about this statement before it."""
        ordinal = self.ordinal + offset
        event_id = ids.event_id(self.context.owner, self.context.source_id, ordinal)
        return {"event_id": event_id, "ordinal": ordinal, "decision": decision}

    def decision(
        self, by: DecidedBy, reason: str, llm_decision: LlmDecision | NoDecision | None = None, **fields: Any
    ) -> Decision:
        weighed = (WeighedCandidate(fact_id=known.fact_id, similarity=known.similarity) for known in self.candidates)
        verdict = llm_decision.reply if isinstance(llm_decision, LlmDecision) else None
        return Decision(
            by=by,
            reason=reason,
            candidates=tuple(weighed),
            model=llm_decision.model if llm_decision else None,
            prompt_version=llm_decision.prompt_version if llm_decision else None,
            verdict=verdict.verdict if verdict else None,
            **fields,
        )

    def new_fact(self, *, offset: int = 0) -> NewFact:
        fact, given = self.fact, self.context
        if self.vector is None:
            raise AssertionError("a statement without a vector brings no fact of its own")
        return NewFact(
            **{name: getattr(fact, name) for name in ExtractedFact.model_fields},
            fact_id=ids.fact_id(given.owner, given.source_id, self.ordinal + offset),
            confidence=self.statement_context.confidence,
            true_from=self.statement_context.true_from,
            speaker=given.speaker,
            vector=self.vector,
        )

    def merged_fact(self, llm_decision: LlmDecision, targets: Sequence[Candidate]) -> NewFact:
        """The richer fact: true since the first of its parents was, as sure as the surest, as risky as the riskiest."""
        fact, verdict = self.new_fact(), llm_decision.reply
        return fact.model_copy(
            update={
                "text": verdict.text or fact.text,
                "search_text": verdict.search_text or verdict.text or fact.search_text,
                "true_from": min(fact.true_from, *(known.true_from for known in targets)),
                "confidence": max(fact.confidence, *(known.confidence for known in targets)),
                "vector": llm_decision.merged_vector or fact.vector,
                **self._inherited(targets),
            }
        )

    def _inherited(self, targets: Sequence[Candidate]) -> dict[str, Any]:
        """What a merged fact has from its targets: slot, subject and end where the statement has none, and risk."""
        fact, rules = self.fact, self.context.rules
        slot = next((known for known in targets if known.key is not None), None) if fact.key is None else None
        risky = (known.category for known in targets if rules.is_high_risk(known.category, known.key))
        ends = (known.valid_until or known.true_to for known in targets)
        return {
            **({"key": slot.key, "value": slot.value} if slot else {}),
            "category": next(risky, fact.category),
            "subject": fact.subject or next((known.subject for known in targets if known.subject), None),
            "valid_until": fact.valid_until or next((end for end in ends if end is not None), None),
            "single_valued": fact.single_valued or any(known.single_valued for known in targets),
        }


def statement_context(fact: ExtractedFact, context: DecisionContext) -> StatementContext:
    """How a statement of this turn counts: it holds from its event time on, or from when it was said."""
    return StatementContext(
        confidence=confidence_of(fact, context.rules),
        true_from=fact.event_time or context.occurred_at,
        said_at=context.occurred_at,
        tells_change_or_end=fact.action_hint != "new",
    )


def fact_before(known: Candidate) -> FactSnapshot:
    """A known fact as it stands before an event."""
    return FactSnapshot(
        fact_id=known.fact_id,
        text=known.text,
        key=known.key,
        value=known.value,
        confidence=known.confidence,
        true_from=known.true_from,
    )
