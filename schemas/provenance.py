"""How a decision came about and what it cost."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from schemas.base import Count, Fraction, Record, Text

Stage = Literal["journal", "extract", "embed", "match", "resolve", "project"]
DropReason = Literal["excerpt_not_found", "near_duplicate", "unknown_category"]


class Origin(Record):
    """The record that started it all: its place in `conversation_turns`."""

    topic: Text
    partition: Count
    offset: Count

    @property
    def position(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class Dropped(Record):
    """A statement that became no fact, and why; `similarity` where another one was too near."""

    text: Text
    reason: DropReason
    similarity: float | None = None


class Step(Record):
    """One stage's part in a turn: time in milliseconds, and calls and tokens where a model was asked."""

    stage: Stage
    milliseconds: float = Field(ge=0)
    model: Text | None = None
    prompt_version: Text | None = None
    llm_calls: Count = 0
    embedding_calls: float = Field(default=0, ge=0)
    input_tokens: Count = 0
    output_tokens: Count = 0
    reprompts: Count = 0
    dropped: tuple[Dropped, ...] = ()


class Thresholds(Record):
    """Cosine similarities that decided: above `duplicate` skip, above `conflict` ask, below add."""

    embedding_model: Text
    duplicate: Fraction
    raw_duplicate: Fraction
    conflict: Fraction
    near_duplicate: Fraction


class Weighed(Record):
    """A candidate that was looked at, with its similarity."""

    fact_id: UUID
    similarity: float


class Decision(Record):
    """Why this event and no other. `by` is what decided: a rule of the thresholds, or a model with its prompt."""

    by: Literal["threshold", "hash", "model", "fallback"]
    reason: Text
    candidates: tuple[Weighed, ...] = ()
    model: Text | None = None
    prompt_version: Text | None = None


class Provenance(Record):
    """Everything a turn's way tells: each stage in order, and the thresholds that held."""

    steps: tuple[Step, ...] = ()
    thresholds: Thresholds | None = None
