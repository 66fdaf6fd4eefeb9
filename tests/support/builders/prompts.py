"""Turns, model answers and conflicts in few words, for tests of the prompts and of the offline rules."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas.facts import CATEGORIES, Candidate, ExtractedFact, content_hash
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.ports import ExtractionTask, NumberedConflicts
from tests.support.builders.model_replies import fact_json

MONDAY = datetime(2023, 5, 8, 13, 57, tzinfo=UTC)


def user(content: str, name: str | None = None) -> Message:
    return Message(role="user", content=content, name=name)


def turn(*messages: Message, **fields: Any) -> Turn:
    defaults = {"turn_id": "t1", "scope": Scope(user_id="alice"), "occurred_at": MONDAY}
    return Turn.model_validate(defaults | fields | {"messages": messages})


def extraction(*messages: Message, **fields: Any) -> ExtractionTask:
    return ExtractionTask(turn=turn(*messages, **fields), categories=CATEGORIES)


def extracted_json(**fields: Any) -> dict[str, Any]:
    """Alice's home as a model answers it."""
    defaults = {
        "excerpt": "I live in Berlin",
        "key": "home_city",
        "value": "Berlin",
        "single_valued": True,
        "category": ["identity"],
        "importance_category": "biographical_milestone",
        "subject": "Alice",
    }
    return fact_json("Alice lives in Berlin.", "home city of Alice: Berlin", **defaults) | fields


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
