"""What an application publishes: one turn of a conversation."""

from typing import Literal

from pydantic import Field

from schemas.base import Fraction, Identifier, Metadata, Record, Text, Timestamp, Versioned
from schemas.scope import Scope

Role = Literal["system", "user", "assistant", "tool"]


class Message(Record):
    role: Role
    content: Text
    name: Text | None = None


class Overrides(Record):
    """Thresholds for this turn only; cosine similarities, 0..1. What is not set stays as configured."""

    duplicate: Fraction | None = None
    raw_duplicate: Fraction | None = None
    conflict: Fraction | None = None
    near_duplicate: Fraction | None = None


class Turn(Versioned):
    """One turn. `occurred_at` carries a zone; `recalled` is memory that was in the prompt: context, never evidence."""

    turn_id: Identifier
    scope: Scope
    messages: tuple[Message, ...] = Field(min_length=1, max_length=1000)
    occurred_at: Timestamp
    infer: bool = True
    metadata: Metadata = Field(default_factory=dict)
    valid_until: Timestamp | None = None
    speaker: Text | None = None
    recalled: tuple[Text, ...] = ()
    overrides: Overrides = Overrides()
