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
from mnemolog.streams.llm.ports import Question
from mnemolog.streams.llm.reply_checks import ParsedDecision
from mnemolog.streams.resolution.classify import Conflict
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.events import DecisionContext, Judgement, LlmDecision, NoDecision
from mnemolog.streams.resolution.guards import TurnRules

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
        reason="because",
        ended_at=ended_at,
    )
    vector = MERGED_VECTOR if action == "MERGE" else None
    return LlmDecision(reply=verdict, targets=targets, merged_vector=vector, model="judge", prompt_version="resolve-2")


def turn_rules(policy: EffectivePolicy | None = None, **fields: Any) -> TurnRules:
    return TurnRules(**{"policy": policy or EffectivePolicy(), "thresholds": THRESHOLDS, **fields})


def decision_context(
    *pending: PendingOverwrite,
    rules: EffectivePolicy | None = None,
    infer: bool = True,
    user_names: tuple[str, ...] = (),
    **fields: Any,
) -> DecisionContext:
    defaults: dict[str, Any] = {
        "owner": OWNER,
        "source_id": SOURCE,
        "occurred_at": TODAY,
        "speaker": "Mira",
        "rules": turn_rules(rules, infer=infer, user_names=user_names),
        "pending_cases": {case.fact_id: case for case in pending},
    }
    return DecisionContext(**defaults | fields)


def judgement(answer: LlmDecision | NoDecision, *, place: int | None = 0, **fields: Any) -> Judgement:
    """What a model makes of a statement at its place; `fields` are others of the question."""
    question: dict[str, Any] = {"fact": matched_fact().fact, "candidates": (), "place": place}
    return Judgement(question=Question(**question | fields), answer=answer)


def decide_one(fact: MatchedFact, decision: LlmDecision, context: DecisionContext | None = None) -> Any:
    """The one event of one contested fact."""
    (event,) = decide_all([fact], {0: decision}, context)
    return event


def decide_all(
    facts: Sequence[MatchedFact], decisions: Mapping[int, LlmDecision], context: DecisionContext | None = None
) -> tuple[MemoryEvent, ...]:
    """The events of contested facts."""
    classified = [Conflict(fact, fact.candidates) for fact in facts]
    return decide(classified, judged(decisions), context or decision_context())


def judged(decisions: Mapping[int, LlmDecision | NoDecision]) -> list[Judgement]:
    """What a model makes of the statements at these places."""
    return [judgement(answer, place=place) for place, answer in decisions.items()]
