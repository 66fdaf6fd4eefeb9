"""The models of a memory in memory: what a test says is read in a message, else the rules; vectors of plain words."""

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm import ports
from mnemolog.streams.llm.factory import needs_extra

GivenFact = str | Mapping[str, Any]
"""A fact that a test says is in a message: its text, or the fields of a model's reply, `text` among them."""
_DIMENSIONS: Final = 512
_WORD: Final = re.compile(r"\w+")
_FACT: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("key", "value", "subject", "event_time", "valid_until")),
    "single_valued": False,
    "category": ["other"],
    "importance_category": "stable_preference",
    "certainty": "explicit",
    "action_hint": "new",
    "entities": [],
    "relations": [],
}


class WordsEmbedder:
    """Vectors that are near where texts have words in common: what means the same in other words is far."""

    model: str = "words-1"

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> ports.Embeddings:  # noqa: ARG002 - the port's
        return ports.Embeddings(vectors=tuple(map(self._vector, texts)))

    def _vector(self, text: str) -> Vector:
        values = [0.0] * _DIMENSIONS
        for word in stems(text):
            values[zlib.crc32(word.encode()) % _DIMENSIONS] += 1
        length = math.hypot(*values) or 1.0
        return Vector.from_values(self.model, [value / length for value in values])

    async def close(self) -> None:
        return None


def stems(text: str) -> list[str]:
    """The words of a text in small letters, without the endings that the same word has elsewhere."""
    return [re.sub(r"(?<=\w{3})(s|ed|ing)$", "", word) for word in _WORD.findall(text.casefold())]


class ScriptedModel:
    """Reads messages as a test says; the rules of the offline provider read all others, and decide all conflicts.

    A reply is checked as that of any model is: what the message does not say is no fact.
    """

    model: str = "rules-4"

    def __init__(self) -> None:
        self.script: dict[str, Sequence[GivenFact]] = {}

    async def complete(self, prompt: ports.Prompt) -> ports.Reply:
        """As `ChatModel`. Raises `ProviderConfigurationError` where the extra `offline` is missing."""
        task = prompt.task if isinstance(prompt, ports.TaskPrompt) else None
        if isinstance(task, ports.ExtractionTask):
            said = [message.content for message in task.turn.messages if message.content in self.script]
            if said:
                facts = [_fact(text, given) for text in said for given in self.script[text]]
                return ports.Reply(text=orjson.dumps({"facts": facts}).decode(), model=self.model)
        with needs_extra("offline"):
            from mnemolog.streams.offline.model import RuleModel  # noqa: PLC0415 - loads the rules

            return await RuleModel().complete(prompt)

    async def close(self) -> None:
        return None


def _fact(said: str, given: GivenFact) -> dict[str, Any]:
    fields = {"text": given} if isinstance(given, str) else given
    return {"excerpt": said, "search_text": fields["text"], **_FACT, **fields}
