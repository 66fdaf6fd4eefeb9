"""Facts and hits as queries give them, with every field filled in."""

from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from mnemolog.projections.queries.results import Fact
from mnemolog.projections.search.search import Hit, Score
from mnemolog.projections.search.turn_search import TurnHit, TurnScore
from mnemolog.schemas.facts import FactStatus
from tests.support.builders.commits import MODEL, START_TIME

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
ID = UUID("0b5f2a44-9a4c-5d27-8c1e-6f1f3a1b7c55")


def known_fact(text: str, category: str = "other", **fields: Any) -> Fact:
    """An active fact of alice that was said at the start of all tests' time; its id follows from its text."""
    said = fields.get("true_from", START_TIME)
    defaults: dict[str, Any] = {
        "fact_id": uuid5(NAMESPACE_OID, text),
        "text": text,
        "category": category,
        "tenant": "default",
        "user_id": "alice",
        **dict.fromkeys(("agent_id", "app_id", "run_id", "key", "value", "subject", "speaker", "event_time")),
        **dict.fromkeys(("valid_until", "true_to", "closed_at", "believed_to", "last_confirmed_at", "superseded_by")),
        "importance": 0.5,
        "certainty": "explicit",
        "confidence": 0.95,
        "excerpt": text,
        "status": "active",
        "unresolved": False,
        "stale": False,
        "true_from": said,
        "believed_from": said,
        "recorded_at": said,
        "state_since": said,
        "authority": "extraction",
        "mention_count": 1,
        "supersedes": [],
        "source_id": "t1",
        "embedding_model": MODEL,
        "metadata": {},
    }
    return Fact(**defaults | fields)


def a_fact(text: str = "Alice lives in Bern.", status: FactStatus = "active") -> Fact:
    return known_fact(
        text, "identity", status=status, fact_id=ID, key="home_city", value="Bern", subject="Alice", speaker="Alice",
        true_from=AT, authority="extracted", embedding_model="m",
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
        excerpt=excerpt, occurred_at=AT, status="stored", fact_ids=(ID,), metadata={}, score=score,
    )  # fmt: skip
