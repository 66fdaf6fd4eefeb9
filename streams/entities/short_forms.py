"""Short forms of first names ("Bob" of Robert), from a table."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mnemolog.streams.text.patterns import tables

NO_FORMS: Final = frozenset[str]()
MIN_LEFT_OUT: Final = 2
"""Letters that it leaves out at least: "Carl" and "Carla", "Jan" and "Jana" are two names."""
_OTHER_SEX: Final = re.compile(r"(?:i|in|n|nn|l|ll|ell|ett|iett|ienn)[ae]|bel")
"""What is added to many a name of men to make one of women."""


def forms_of(first: str) -> frozenset[str]:
    """The first names of which this is a short form, and its own short forms; by their keys."""
    return _FORMS.get(first, NO_FORMS)


def is_beginning_of(short: str, first: str) -> bool:
    """Whether the beginning `short` of a first name is a form of it, and no other name, as Jan of Janet."""
    if first in forms_of(short):
        return True
    is_another = short in _FULL_NAMES or _OTHER_SEX.fullmatch(first.removeprefix(short))
    return not is_another and len(first) - len(short) >= MIN_LEFT_OUT


def _forms(table: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for language in (entry for entry in table.values() if isinstance(entry, dict)):
        for full, shorts in language.items():
            for short in shorts.split():
                found[short] = found.get(short, NO_FORMS) | {full}
                found[full] = found.get(full, NO_FORMS) | {short}
    return found


_TABLE: Final = tables(Path(__file__).with_name("short_forms.toml"))
_FORMS: Final = _forms(_TABLE)
_FULL_NAMES: Final = frozenset(_TABLE["full_names"].split())
