"""What a new fact means for the known ones: pure functions from similarities and verdicts to events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from schemas import ids
from schemas.events import (
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactReplaced,
    FactSkipped,
    FactsMerged,
    MemoryEvent,
)
from schemas.facts import CONFIDENCE, Candidate, ExtractedFact, MatchedFact, NewFact, Statement
from schemas.provenance import Decision, Thresholds, Weighed
from schemas.vector import Vector
from streams.prompts.resolve import Verdict
from streams.stages.likeness import vouched


@dataclass(frozen=True, slots=True)
class Fresh:
    """No known fact is near: add."""

    matched: MatchedFact


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A known fact says the same, word for word (`by` hash) or nearly so (`by` threshold): skip."""

    matched: MatchedFact
    candidate: Candidate
    by: Literal["hash", "threshold"]


@dataclass(frozen=True, slots=True)
class Contested:
    """Known facts are near, and only a reader can tell what the new one means for them."""

    matched: MatchedFact
    candidates: tuple[Candidate, ...]


Weight = Fresh | Duplicate | Contested


def weigh(matched: MatchedFact, thresholds: Thresholds, *, infer: bool) -> Weight:
    """Sort a fact into its band. A raw store knows only duplicate and new."""
    same = next((known for known in matched.candidates if known.content_hash == matched.fact.content_hash), None)
    if same is not None:
        return Duplicate(matched, same, "hash")
    alike = (known for known in matched.candidates if vouched(matched.fact.text, known.text))
    nearest = max(alike, key=lambda known: known.similarity, default=None)
    if nearest is not None and nearest.similarity > (thresholds.duplicate if infer else thresholds.raw_duplicate):
        return Duplicate(matched, nearest, "threshold")
    near = tuple(known for known in matched.candidates if known.similarity >= thresholds.conflict)
    return Contested(matched, near) if infer and near else Fresh(matched)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What was decided on a contested fact, by whom. Without a verdict no valid one could be had."""

    verdict: Verdict | None
    targets: tuple[Candidate, ...] = ()
    merged_vector: Vector | None = None
    model: str | None = None
    prompt_version: str | None = None
    complaint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Whose facts they are and when they were said; `thresholds` are told in the reasons."""

    owner: str
    source_id: str
    occurred_at: datetime
    speaker: str | None
    thresholds: Thresholds


def events(
    weights: Sequence[Weight], judgements: Mapping[int, Judgement], circumstances: Circumstances
) -> tuple[MemoryEvent, ...]:
    """One event for each fact, in order. A known fact is ended by at most one of them, the first."""
    spent: set[UUID] = set()
    made: list[MemoryEvent] = []
    for ordinal, weight in enumerate(weights):
        maker = _Maker(circumstances, ordinal, weight.matched)
        event = maker.event(weight, judgements.get(ordinal), spent)
        spent.update(getattr(event, "targets", ()))
        made.append(event)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the event of one fact of one turn."""

    circumstances: Circumstances
    ordinal: int
    matched: MatchedFact

    def event(self, weight: Weight, judgement: Judgement | None, spent: set[UUID]) -> MemoryEvent:
        match weight:
            case Fresh():
                return self._added(self._decision("threshold", self._fresh_reason()))
            case Duplicate(_, candidate, by) if candidate.fact_id in spent:
                return self._added(self._decision(by, "what it repeats has been ended by this very turn"))
            case Duplicate(_, candidate, by):
                return self._skipped(candidate, by)
            case Contested():
                return self._judged(judgement or Judgement(verdict=None, complaint="it was never asked"), spent)

    def _judged(self, judgement: Judgement, spent: set[UUID]) -> MemoryEvent:
        verdict = judgement.verdict
        if verdict is None:
            decision = self._decision("fallback", f"unresolved, kept beside: {judgement.complaint}", judgement)
            return self._added(decision, unresolved=True)
        decision = self._decision("model", verdict.reason, judgement)
        targets = tuple(known for known in judgement.targets if known.fact_id not in spent)
        if not targets:
            return self._added(decision)
        return self._applied(verdict, targets, decision, judgement.merged_vector)

    def _applied(
        self, verdict: Verdict, targets: tuple[Candidate, ...], decision: Decision, merged_vector: Vector | None
    ) -> MemoryEvent:
        target_ids = tuple(known.fact_id for known in targets)
        match verdict.action:
            case "KEEP":
                nearest = max(targets, key=lambda known: known.similarity)
                return FactConfirmed(**self._common(decision), target=nearest.fact_id, statement=self._statement)
            case "REPLACE":
                fact = self._new_fact()
                # A turn that is told late may be older than what it replaces: nothing ends before it began.
                ended_at = max(fact.true_from, *(known.true_from for known in targets))
                return FactReplaced(**self._common(decision), targets=target_ids, ended_at=ended_at, fact=fact)
            case "CONTRADICT":
                return FactContradicted(**self._common(decision), targets=target_ids, fact=self._new_fact())
            case "MERGE":
                fact = self._merged_fact(verdict, targets, merged_vector)
                return FactsMerged(**self._common(decision), targets=target_ids, statement=self._statement, fact=fact)
            case _:
                return self._added(decision)

    def _added(self, decision: Decision, *, unresolved: bool = False) -> FactAdded:
        return FactAdded(**self._common(decision), fact=self._new_fact(), unresolved=unresolved)

    def _skipped(self, candidate: Candidate, by: str) -> FactSkipped:
        if by == "hash":
            decision = self._decision("hash", "the same words are known")
        else:
            decision = self._decision("threshold", f"similarity {candidate.similarity:.3f} is that of a duplicate")
        return FactSkipped(**self._common(decision), target=candidate.fact_id, statement=self._statement)

    @property
    def _statement(self) -> Statement:
        return Statement(text=self.matched.fact.text, excerpt=self.matched.fact.excerpt)

    def _common(self, decision: Decision) -> dict[str, Any]:
        given = self.circumstances
        event_id = ids.event_id(given.owner, given.source_id, self.ordinal)
        return {"event_id": event_id, "ordinal": self.ordinal, "decision": decision}

    def _decision(
        self, by: Literal["threshold", "hash", "model", "fallback"], reason: str, judgement: Judgement | None = None
    ) -> Decision:
        return Decision(
            by=by,
            reason=reason,
            candidates=tuple(
                Weighed(fact_id=known.fact_id, similarity=known.similarity) for known in self.matched.candidates
            ),
            model=judgement.model if judgement else None,
            prompt_version=judgement.prompt_version if judgement else None,
        )

    def _fresh_reason(self) -> str:
        return f"no known fact reaches similarity {self.circumstances.thresholds.conflict:g}"

    def _new_fact(self) -> NewFact:
        given, fact = self.circumstances, self.matched.fact
        return NewFact(
            **{name: getattr(fact, name) for name in ExtractedFact.model_fields},
            fact_id=ids.fact_id(given.owner, given.source_id, self.ordinal),
            confidence=CONFIDENCE[fact.certainty],
            true_from=fact.event_time or given.occurred_at,
            speaker=given.speaker,
            vector=self.matched.vector,
        )

    def _merged_fact(self, verdict: Verdict, targets: tuple[Candidate, ...], vector: Vector | None) -> NewFact:
        """The richer fact: true since the first of its parents was, and as sure as the surest."""
        fact = self._new_fact()
        return fact.model_copy(
            update={
                "text": verdict.text or fact.text,
                "search_text": verdict.search_text or verdict.text or fact.search_text,
                "true_from": min(fact.true_from, *(known.true_from for known in targets)),
                "confidence": max(fact.confidence, *(known.confidence for known in targets)),
                "vector": vector or fact.vector,
            }
        )
