"""The words for what somebody or something is to another one, as patterns: "wife|ehefrau|frau"."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

_TABLES: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("ties.toml").read_text(encoding="utf-8")
)
TIES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {kind: _TABLES[kind] for kind in ("group", "person", "animal")}
)
"""The words for each tie, by the type of whom it is said, in the order in which they are looked for."""
WORDS_AROUND_TIES: Final = _TABLES["words"]
"""Patterns of the words around ties and names."""
