"""What an application publishes: one turn of a conversation."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Fraction, Identifier, Metadata, Record, Text, Timestamp, Versioned
from schemas.facts import ConfidencePreset
from schemas.scope import Scope

Role = Literal["system", "user", "assistant", "tool"]


class Message(Record):
    role: Role
    content: Text
    name: Text | None = None


class Overrides(Record):
    """What holds for this turn only; what is not set stays as configured.

    Thresholds are cosine similarities, 0..1; `llm_timeout` is in seconds; `reprompts` is how often a model may be asked
    again.
    """

    duplicate: Fraction | None = None
    raw_duplicate: Fraction | None = None
    conflict: Fraction | None = None
    near_duplicate: Fraction | None = None
    ending: Fraction | None = None
    chat_model: Text | None = None
    llm_timeout: Annotated[float, Field(gt=0, le=600)] | None = None
    reprompts: Annotated[int, Field(ge=0, le=5)] | None = None
    add_only: bool | None = None
    confidence: ConfidencePreset | None = None
    confirm_below: Fraction | None = None
    min_importance: Fraction | None = None


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
