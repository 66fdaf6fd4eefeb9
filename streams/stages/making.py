"""What every decision of a turn is made of: its circumstances, and the parts of its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.facts import Candidate, ExtractedFact, NewFact, Statement
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Before, DecidedBy, Decision, Thresholds, Weighed
from mnemolog.schemas.vector import Vector
from mnemolog.streams.prompts.resolve import Verdict
from mnemolog.streams.stages.guarding import Saying, confidence_of
from mnemolog.streams.stages.lookups import PendingCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a reader decided on a contested fact, and which one; `merged_vector` is that of a merged text."""

    verdict: Verdict
    targets: tuple[Candidate, ...] = ()
    merged_vector: Vector | None = None
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """No valid decision on a contested fact could be had, and why."""

    complaint: str
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Whose facts they are, when they were said, and what holds for them; `thresholds` are told in the reasons.

    `pending` has the overwrites that are held back, of all pending facts that these may meet; `chains` has, for known
    facts, the beginnings of the versions before them.
    """

    owner: str
    source_id: str
    occurred_at: datetime
    speaker: str | None
    thresholds: Thresholds
    rules: Rules = field(default_factory=Rules)
    infer: bool = True
    pending: Mapping[UUID, PendingCase] = field(default_factory=dict)
    chains: Mapping[UUID, tuple[datetime, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Makes the parts of the events about one statement; `place` is the ordinal of the first of them.

    `candidates` are told with each decision. A statement without a `vector` brings no fact of its own.
    """

    given: Circumstances
    place: int
    fact: ExtractedFact
    saying: Saying
    vector: Vector | None
    candidates: tuple[Candidate, ...]

    @property
    def statement(self) -> Statement:
        return Statement(text=self.fact.text, excerpt=self.fact.excerpt)

    def head(self, decision: Decision, *, after: int = 0) -> dict[str, Any]:
        """The fields that all events have; `after` counts the events about this statement before it."""
        ordinal = self.place + after
        event_id = ids.event_id(self.given.owner, self.given.source_id, ordinal)
        return {"event_id": event_id, "ordinal": ordinal, "decision": decision}

    def decision(
        self, by: DecidedBy, reason: str, judgement: Judgement | Unjudged | None = None, **fields: Any
    ) -> Decision:
        weighed = (Weighed(fact_id=known.fact_id, similarity=known.similarity) for known in self.candidates)
        verdict = judgement.verdict if isinstance(judgement, Judgement) else None
        return Decision(
            by=by,
            reason=reason,
            candidates=tuple(weighed),
            model=judgement.model if judgement else None,
            prompt_version=judgement.prompt_version if judgement else None,
            verdict=verdict.action if verdict else None,
            **fields,
        )

    def new_fact(self, *, after: int = 0) -> NewFact:
        fact, given = self.fact, self.given
        if self.vector is None:
            raise AssertionError("a statement without a vector brings no fact of its own")
        return NewFact(
            **{name: getattr(fact, name) for name in ExtractedFact.model_fields},
            fact_id=ids.fact_id(given.owner, given.source_id, self.place + after),
            confidence=self.saying.confidence,
            true_from=self.saying.true_from,
            speaker=given.speaker,
            vector=self.vector,
        )

    def merged_fact(self, judgement: Judgement, targets: Sequence[Candidate]) -> NewFact:
        """The richer fact: true since the first of its parents was, as sure as the surest, as risky as the riskiest."""
        fact, verdict = self.new_fact(), judgement.verdict
        return fact.model_copy(
            update={
                "text": verdict.text or fact.text,
                "search_text": verdict.search_text or verdict.text or fact.search_text,
                "true_from": min(fact.true_from, *(known.true_from for known in targets)),
                "confidence": max(fact.confidence, *(known.confidence for known in targets)),
                "vector": judgement.merged_vector or fact.vector,
                **self._inherited(targets),
            }
        )

    def _inherited(self, targets: Sequence[Candidate]) -> dict[str, Any]:
        """What a merged fact has from its targets: slot, subject and end where the statement has none, and risk."""
        fact, rules = self.fact, self.given.rules
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


def said(fact: ExtractedFact, given: Circumstances) -> Saying:
    """How a statement of this turn counts: it holds from its event time on, or from when it was said."""
    return Saying(
        confidence=confidence_of(fact, given.rules),
        true_from=fact.event_time or given.occurred_at,
        said_at=given.occurred_at,
        revises=fact.action_hint != "new",
    )


def before(known: Candidate) -> Before:
    """A known fact as it stands before an event."""
    return Before(
        fact_id=known.fact_id,
        text=known.text,
        key=known.key,
        value=known.value,
        confidence=known.confidence,
        true_from=known.true_from,
    )
