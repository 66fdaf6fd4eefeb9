"""What language models answer, as JSON: extracted facts and decisions about them."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def fact_json(text: str, search_text: str | None = None, **fields: Any) -> dict[str, Any]:
    """One fact of an extraction reply; its message has the same text. Equal `search_text` gives equal vectors."""
    defaults: dict[str, Any] = {
        "excerpt": text,
        "text": text,
        "search_text": search_text or text,
        "key": None,
        "value": None,
        "single_valued": False,
        "category": ["other"],
        "importance_category": "specific_event",
        "certainty": "explicit",
        "subject": None,
        "event_time": None,
        "valid_until": None,
        "action_hint": "new",
        "entities": [],
        "relations": [],
    }
    return defaults | fields


def facts_reply(*facts: Mapping[str, Any]) -> str:
    return _json({"facts": facts})


def decision_json(new: int, action: str, *known: int, **fields: Any) -> dict[str, Any]:
    """The decision about one new fact, by the numbers of the prompt."""
    defaults = {"reason": "as the test says", "text": None, "ended_at": None}
    return {"number": new, "verdict": action, "targets": known} | defaults | fields


def decisions_reply(*decisions: Mapping[str, Any], names: Mapping[int, Any] | None = None) -> str:
    """The decisions on conflicts, with the entities that `names` in doubt mean, by the numbers of the prompt."""
    answers = {f"M{number}": entity for number, entity in (names or {}).items()}
    return _json(answers if answers and not decisions else {"decisions": decisions, **answers})


def summary_reply(*sentences: tuple[str, Sequence[int]]) -> str:
    return _json({"sentences": [{"text": text, "facts": facts} for text, facts in sentences]})


def _json(reply: Any) -> str:
    return json.dumps(reply, default=datetime.isoformat, ensure_ascii=False)
