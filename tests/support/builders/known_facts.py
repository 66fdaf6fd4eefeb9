"""Facts as readers see them, for tests that need no tables."""

from typing import Any
from uuid import NAMESPACE_OID, uuid5

from mnemolog.projections.queries.results import Fact
from tests.support.builders.values import MODEL, START_TIME


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
