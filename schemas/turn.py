"""What an application publishes: one turn of a conversation."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from mnemolog.schemas.base import (
    MAX_MODEL_NAME,
    FieldPath,
    Fraction,
    Identifier,
    IfSet,
    Metadata,
    Record,
    Text,
    Timestamp,
    Versioned,
)
from mnemolog.schemas.facts import ConfidencePreset
from mnemolog.schemas.scope import Scope

Role = Literal["system", "user", "assistant", "tool"]


SpeakerName = Annotated[Text | None, AfterValidator(lambda name: (name or "").strip() or None)]
"""Who speaks. White space at its ends does not count, and a blank name names nobody."""


class Message(Record):
    role: Role
    content: Text
    name: SpeakerName = None


ShownCount = Annotated[int, Field(ge=0, le=100)]
"""How many messages, or facts, an extraction is shown beside its turn at the most."""
ShownTokens = Annotated[int, Field(ge=0, le=20_000)]
ShownAge = Annotated[float, Field(ge=0, le=31_622_400)]
"""Seconds, up to a year."""
ShownTimeout = Annotated[float, Field(ge=0, le=60)]
"""Seconds; with 0 nothing is read."""
ModelName = Annotated[Text, Field(max_length=MAX_MODEL_NAME)]


class BackgroundRules(Record):
    """What an extraction is shown beside its turn at the most.

    Messages before it (their number, estimated tokens, and age in seconds), the entities whose names it is told, known
    facts, the estimated tokens of these, and the seconds that reading them may take.
    """

    conversation_messages: IfSet[ShownCount] = None
    conversation_tokens: IfSet[ShownTokens] = None
    conversation_age: IfSet[ShownAge] = None
    known_entities: IfSet[ShownCount] = None
    known_facts: IfSet[ShownCount] = None
    known_tokens: IfSet[ShownTokens] = None
    known_timeout: IfSet[ShownTimeout] = None


class Overrides(BackgroundRules):
    """Settings for this turn only; what is not set stays as configured.

    Thresholds are cosine similarities, 0..1; `llm_timeout` is in seconds; `reprompts` is how often a model may be asked
    again. Types are exact: "0.9" is not a number.
    """

    model_config = ConfigDict(strict=True)

    duplicate: Fraction | None = None
    raw_duplicate: Fraction | None = None
    conflict: Fraction | None = None
    near_duplicate: Fraction | None = None
    ending: Fraction | None = None
    chat_model: ModelName | None = None
    llm_timeout: Annotated[float, Field(gt=0, le=600)] | None = None
    reprompts: Annotated[int, Field(ge=0, le=5)] | None = None
    add_only: bool | None = None
    confidence: ConfidencePreset | None = None
    confirm_below: Fraction | None = None
    min_importance: Fraction | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for lower, upper in (("ending", "conflict"), ("conflict", "duplicate")):
            low, high = getattr(self, lower), getattr(self, upper)
            if low is not None and high is not None and low > high:
                raise ValueError(f"{lower} ({low:g}) is above {upper} ({high:g}): lower it, or leave one of them out")
        return self


class Turn(Versioned):
    """One turn. `occurred_at` carries a zone; `recalled` is memory that was in the prompt: context, never evidence.

    What an `immutable` turn states only a human's command ends or changes. A record of `conversation_turns` without
    `kind` is a turn.
    """

    kind: Literal["turn"] = "turn"
    turn_id: Identifier
    scope: Scope
    messages: tuple[Message, ...] = Field(min_length=1, max_length=1000)
    occurred_at: Timestamp
    infer: bool = True
    metadata: Metadata = Field(default_factory=dict)
    valid_until: Timestamp | None = None
    speaker: SpeakerName = None
    recalled: tuple[Text, ...] = ()
    overrides: Overrides = Overrides.model_construct()
    immutable: bool = False

    @classmethod
    def error_advice(cls, paths: Iterable[FieldPath]) -> str:
        faulty = {place[:1] for place in paths}
        if ("turn_id",) in faulty and faulty & {("command_id",), ("order",)}:
            return '; this looks like a command: add "kind": "command"'
        if ("overrides",) in faulty:
            return f"; overrides are {override_names()}"
        return ""


@cache
def override_names() -> str:
    """Every override with the values that it takes, in words."""
    fields = Overrides.model_json_schema()["properties"]
    return ", ".join(f"{name} ({_values(field['anyOf'][0])})" for name, field in fields.items())


def _values(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(schema["enum"])
    kind = {"number": "number", "integer": "whole number", "boolean": "true or false", "string": "text"}[schema["type"]]
    lower = (
        f"from {schema['minimum']:g} " if "minimum" in schema else "above 0 " if "exclusiveMinimum" in schema else ""
    )
    upper = f"to {schema['maximum']:g}" if "maximum" in schema else ""
    upper = f"of at most {schema['maxLength']} characters" if "maxLength" in schema else upper
    return f"{kind} {lower}{upper}".strip()
