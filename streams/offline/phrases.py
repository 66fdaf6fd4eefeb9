"""The patterns of `phrases.toml`."""

from pathlib import Path
from typing import Final

from mnemolog.streams.text.patterns import DATE_PARTS, compiled, tables

_TABLES: Final = tables(Path(__file__).with_name("phrases.toml"))
_PARTS: Final = _TABLES["parts"] | DATE_PARTS
OMITTED: Final = {reason: compiled(text, _PARTS) for reason, text in _TABLES["omitted"].items()}
WORDS: Final = {name: compiled(text, _PARTS) for name, text in _TABLES["words"].items()}
SLOT_PATTERNS: Final = tuple(
    (act, slot, compiled(text, _PARTS)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, the slot, and how it says so. `pet`, `any` and the like stand for several slots."""
PETS: Final = tuple(compiled("{pet}", _PARTS).groupindex)
RELATIVES: Final = tuple(compiled("{relative}", _PARTS).groupindex)
