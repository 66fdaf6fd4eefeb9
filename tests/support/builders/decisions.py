"""Statements, known facts and decisions of the model in few words, for tests of `decide`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from mnemolog.schemas.events import MemoryEvent, Overwrite
from mnemolog.schemas.facts import Authority, Candidate, ExtractedFact, MatchedFact, content_hash
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.provenance import Verdict as Action
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.resolve_prompt import ParsedDecision
from mnemolog.streams.resolution.classify import Conflict
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.events import DecisionContext, LlmDecision

OWNER, SOURCE = "default/mira", "t1"
TODAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
LAST_YEAR = datetime(2025, 3, 1, 12, tzinfo=UTC)
NEXT_YEAR = datetime(2027, 3, 1, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(
    embedding_model="m", duplicate=0.98, raw_duplicate=0.95, conflict=0.65, near_duplicate=0.85, ending=0.40
)
VECTOR = Vector.from_values("m", [1.0, 0.0])
MERGED_VECTOR = Vector.from_values("m", [0.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOverwrite:
    """A pending overwrite as the tables have it."""

    fact_id: UUID
    targets: tuple[UUID, ...]
    successors: tuple[UUID, ...] = ()
    action: Overwrite = "replace"
    ended_at: datetime | None = TODAY
    needs_human: bool = False
    authority: Authority = "extracted"
    speaker: str | None = "Mira"
    said_at: datetime = LAST_YEAR


def known_fact(similarity: float = 0.8, text: str = "Mira lives in Berlin.", **fields: Any) -> Candidate:
    defaults: dict[str, Any] = {
        "fact_id": uuid4(),
        "similarity": similarity,
        "text": text,
        "content_hash": content_hash(text),
        "confidence": 0.8,
        "true_from": LAST_YEAR,
    }
    return Candidate(**defaults | fields)


def matched_fact(*candidates: Candidate, text: str = "Mira lives in Munich.", **fields: Any) -> MatchedFact:
    fact = ExtractedFact(**{"text": text, "search_text": text, "excerpt": text, **fields})
    return MatchedFact(fact=fact, vector=VECTOR, candidates=candidates)


def llm_decision(
    action: Action, *targets: Candidate, text: str | None = None, ended_at: datetime | None = None
) -> LlmDecision:
    merged = text or "Mira lives in Berlin and Munich."
    verdict = ParsedDecision(
        number=1,
        verdict=action,
        targets=tuple(range(1, len(targets) + 1)),
        text=merged if action == "MERGE" else None,
        search_text=None,
        reason="because",
        ended_at=ended_at,
    )
    vector = MERGED_VECTOR if action == "MERGE" else None
    return LlmDecision(reply=verdict, targets=targets, merged_vector=vector, model="judge", prompt_version="resolve-2")


def decision_context(
    *pending: PendingOverwrite, rules: EffectivePolicy | None = None, infer: bool = True, **fields: Any
) -> DecisionContext:
    defaults: dict[str, Any] = {
        "owner": OWNER,
        "source_id": SOURCE,
        "occurred_at": TODAY,
        "speaker": "Mira",
        "thresholds": THRESHOLDS,
        "rules": rules or EffectivePolicy(),
        "infer": infer,
        "pending_cases": {case.fact_id: case for case in pending},
    }
    return DecisionContext(**defaults | fields)


def decide_one(fact: MatchedFact, decision: LlmDecision, context: DecisionContext | None = None) -> Any:
    """The one event of one contested fact."""
    (event,) = decide_all([fact], {0: decision}, context)
    return event


def decide_all(
    facts: Sequence[MatchedFact], decisions: Mapping[int, LlmDecision], context: DecisionContext | None = None
) -> tuple[MemoryEvent, ...]:
    """The events of contested facts."""
    return decide([Conflict(fact, fact.candidates) for fact in facts], decisions, context or decision_context())
