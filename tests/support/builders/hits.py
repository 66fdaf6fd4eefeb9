"""Facts and hits as queries give them, with every field filled in."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from mnemolog.projections.queries.results import Fact
from mnemolog.projections.search.search import Hit, Score
from mnemolog.projections.search.turn_search import TurnHit, TurnScore
from mnemolog.schemas.facts import FactStatus

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
ID = UUID("0b5f2a44-9a4c-5d27-8c1e-6f1f3a1b7c55")


def a_fact(text: str = "Alice lives in Bern.", status: FactStatus = "active") -> Fact:
    return Fact(
        fact_id=ID, tenant="default", user_id="alice", agent_id=None, app_id=None, run_id=None, text=text,
        key="home_city", value="Bern", category="identity", importance=0.5, certainty="explicit", confidence=0.95,
        subject="Alice", speaker="Alice", excerpt=text, status=status, unresolved=False, stale=False, event_time=None,
        valid_until=None, true_from=AT, true_to=None, closed_at=None, believed_from=AT, believed_to=None,
        recorded_at=AT, state_since=AT, authority="extracted", mention_count=1, last_confirmed_at=None, supersedes=[],
        superseded_by=None, source_id="t1", embedding_model="m", metadata={},
    )  # fmt: skip


def a_hit(text: str = "Alice lives in Bern.", status: FactStatus = "active", **score: Any) -> Hit:
    """A hit of the vector alone; `score` overrides any of the reasons for its place."""
    defaults: dict[str, Any] = {
        "mode": "hybrid", "total": 0.1, "vector_rank": 1, "similarity": 0.834, "vector_part": 0.1, "text_rank": None,
        "text_score": None, "text_part": 0,
    }  # fmt: skip
    return Hit(fact=a_fact(text, status=status), score=Score(**defaults | score))


def a_turn_hit(excerpt: str = "I live in Bern.") -> TurnHit:
    score = TurnScore(total=0.3, text_score=0.5, text_part=0.2, names_part=0.1, recency_part=0.0, times_part=0.0)
    return TurnHit(
        turn_id="t1", tenant="default", user_id="alice", agent_id=None, app_id=None, run_id=None, speaker="Alice",
        excerpt=excerpt, occurred_at=AT, status="facts", fact_ids=(ID,), metadata={}, score=score,
    )  # fmt: skip
