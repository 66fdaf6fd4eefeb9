"""Statements, known facts and verdicts in few words, for tests of what is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from mnemolog.schemas.events import MemoryEvent, Overwrite
from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact, content_hash
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.provenance import Verdict as Action
from mnemolog.schemas.vector import Vector
from mnemolog.streams.prompts.resolve import Verdict
from mnemolog.streams.stages.deciding import events
from mnemolog.streams.stages.making import Circumstances, Judgement
from mnemolog.streams.stages.weighing import Contested

OWNER, SOURCE = "default/mira", "t1"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LAST_YEAR = datetime(2025, 3, 1, 12, tzinfo=UTC)
NEXT_YEAR = datetime(2027, 3, 1, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(
    embedding_model="m", duplicate=0.98, raw_duplicate=0.95, conflict=0.65, near_duplicate=0.85, ending=0.40
)
VECTOR = Vector.of("m", [1.0, 0.0])
MERGED = Vector.of("m", [0.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An overwrite that is held back, as the tables tell of it."""

    fact_id: UUID
    targets: tuple[UUID, ...]
    action: Overwrite = "replace"
    ended_at: datetime | None = NOON
    needs_human: bool = False
    said_at: datetime = LAST_YEAR


def known(similarity: float = 0.8, text: str = "Mira lives in Berlin.", **fields: Any) -> Candidate:
    defaults: dict[str, Any] = {
        "fact_id": uuid4(),
        "similarity": similarity,
        "text": text,
        "content_hash": content_hash(text),
        "confidence": 0.8,
        "true_from": LAST_YEAR,
    }
    return Candidate(**defaults | fields)


def matched(*candidates: Candidate, text: str = "Mira lives in Munich.", **fields: Any) -> MatchedFact:
    fact = ExtractedFact(**{"text": text, "search_text": text, "excerpt": text, **fields})
    return MatchedFact(fact=fact, vector=VECTOR, candidates=candidates)


def judged(action: Action, *targets: Candidate, text: str | None = None, ended_at: datetime | None = None) -> Judgement:
    merged = text or "Mira lives in Berlin and Munich."
    verdict = Verdict(
        number=1,
        action=action,
        targets=tuple(range(1, len(targets) + 1)),
        text=merged if action == "MERGE" else None,
        search_text=None,
        reason="because",
        ended_at=ended_at,
    )
    vector = MERGED if action == "MERGE" else None
    return Judgement(verdict=verdict, targets=targets, merged_vector=vector, model="judge", prompt_version="resolve-2")


def given(*cases: Case, rules: Rules | None = None, infer: bool = True, **fields: Any) -> Circumstances:
    defaults: dict[str, Any] = {
        "owner": OWNER,
        "source_id": SOURCE,
        "occurred_at": NOON,
        "speaker": "Mira",
        "thresholds": THRESHOLDS,
        "rules": rules or Rules(),
        "infer": infer,
        "pending": {case.fact_id: case for case in cases},
    }
    return Circumstances(**defaults | fields)


def decide(fact: MatchedFact, judgement: Judgement, circumstances: Circumstances | None = None) -> Any:
    """The one event of one contested fact."""
    (event,) = decide_all([fact], {0: judgement}, circumstances)
    return event


def decide_all(
    facts: Sequence[MatchedFact], judgements: Mapping[int, Judgement], circumstances: Circumstances | None = None
) -> tuple[MemoryEvent, ...]:
    """The events of contested facts."""
    return events([Contested(fact, fact.candidates) for fact in facts], judgements, circumstances or given())
