"""The mood of a turn in an extraction: what is asked, and what a reply says."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from pydantic import ValidationError
from pydantic_core import from_json

from mnemolog.schemas.provenance import Emotion, Energy, Mood
from mnemolog.streams.llm.reply_parser import object_text

MOOD_TEXT: Final = (
    f"\nmood, beside facts: how the user sounds in this turn: emotion: one of {', '.join(get_args(Emotion))}; "
    f"intensity: 0 to 1; energy: {', '.join(get_args(Energy))}. Neutral, 0 and medium where nothing shows.\n"
)
MOOD_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "emotion": {"type": "string", "enum": list(get_args(Emotion))},
        "intensity": {"type": "number"},
        "energy": {"type": "string", "enum": list(get_args(Energy))},
    },
    "required": ["emotion", "intensity", "energy"],
    "additionalProperties": False,
}


def read_mood(text: str) -> Mood | None:
    """The mood that a reply names; None where it names none that is valid. No model is asked again for that alone."""
    try:
        reply = from_json(object_text(text))
        return Mood.model_validate(reply.get("mood"), strict=True)
    except (ValueError, ValidationError, AttributeError):
        return None
