"""How the user sounds in a turn, by words that say it outright."""

import re
from pathlib import Path
from typing import Any, Final

from mnemolog.schemas.turn import Turn
from mnemolog.streams.offline.sentences import plain
from mnemolog.streams.text.patterns import compiled, tables

_TABLES: Final = tables(Path(__file__).with_name("moods.toml"))
_EMOTIONS: Final = {name: compiled(text, {}) for name, text in _TABLES["emotions"].items()}
_NOT: Final = compiled(_TABLES["signs"]["not"], {})
_STRONG: Final = compiled(_TABLES["signs"]["strong"], {})
_ENERGIES: Final = {name: re.compile(_TABLES["signs"][name]) for name in ("high", "low")}
_SAID, _SAID_STRONGLY = 0.5, 0.8
"""The intensity of a word alone, and with a word such as "very": two steps, for words do not say it finer."""


def read_mood_of(turn: Turn) -> dict[str, Any]:
    """The mood as a model's reply has it: neutral where no word of the user names a feeling."""
    said = " ".join(message.content for message in turn.messages if message.role == "user")
    words = plain(said)
    emotion = next((name for name, pattern in _EMOTIONS.items() if _is_felt(pattern, words)), "neutral")
    intensity = 0.0 if emotion == "neutral" else _SAID_STRONGLY if _STRONG.search(words) else _SAID
    energy = next((name for name, pattern in _ENERGIES.items() if pattern.search(said)), "medium")
    return {"emotion": emotion, "intensity": intensity, "energy": energy}


def _is_felt(pattern: re.Pattern[str], words: str) -> bool:
    """Whether the words name it, and do not deny it."""
    return any(not _NOT.search(words[: found.start()]) for found in pattern.finditer(words))
