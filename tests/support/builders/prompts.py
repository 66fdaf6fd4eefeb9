"""Turns, model answers and conflicts in few words, for tests of the prompts and the rules."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from mnemolog.schemas.facts import CATEGORIES, Candidate, ExtractedFact, content_hash
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.ports import ExtractionTask, NumberedConflicts

MONDAY = datetime(2023, 5, 8, 13, 57, tzinfo=UTC)


def user(content: str, name: str | None = None) -> Message:
    return Message(role="user", content=content, name=name)


def turn(*messages: Message, **fields: Any) -> Turn:
    defaults = {"turn_id": "t1", "scope": Scope(user_id="alice"), "occurred_at": MONDAY}
    return Turn.model_validate(defaults | fields | {"messages": messages})


def extraction(*messages: Message, **fields: Any) -> ExtractionTask:
    return ExtractionTask(turn=turn(*messages, **fields), categories=CATEGORIES)


def extracted_json(**fields: Any) -> dict[str, Any]:
    """One fact as a model answers it."""
    defaults = {
        "excerpt": "I live in Berlin",
        "text": "Alice lives in Berlin.",
        "search_text": "home city of Alice: Berlin",
        "key": "home_city",
        "value": "Berlin",
        "single_valued": True,
        "category": "identity",
        "importance_category": "biographical_milestone",
        "certainty": "explicit",
        "subject": "Alice",
        "event_time": None,
        "valid_until": None,
        "action_hint": "new",
    }
    return defaults | fields


def facts_reply(*facts: dict[str, Any]) -> str:
    return orjson.dumps({"facts": facts}).decode()


def decision_json(new: int, action: str, *known: int, **fields: Any) -> dict[str, Any]:
    """One decision as a model answers it."""
    texts = {"text": None, "search_text": None, "ended_at": None}
    return {"new": new, "reason": "so", "action": action, "known": known} | texts | fields


def decisions_reply(*decisions: dict[str, Any]) -> str:
    return orjson.dumps({"decisions": decisions}).decode()


def fact(text: str, **fields: Any) -> ExtractedFact:
    return ExtractedFact.model_validate({"text": text, "excerpt": text, "search_text": text} | fields)


def known_fact(number: int, text: str, **fields: Any) -> Candidate:
    defaults = {
        "fact_id": UUID(int=number),
        "similarity": 0.8,
        "text": text,
        "content_hash": content_hash(text),
        "confidence": 0.95,
        "true_from": datetime(2023, 1, 1, tzinfo=UTC),
    }
    return Candidate.model_validate(defaults | fields)


def candidate_labels(conflicts: NumberedConflicts) -> list[list[int]]:
    return [[label for label, _ in conflict.candidates] for conflict in conflicts.conflicts]
