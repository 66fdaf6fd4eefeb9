"""Short forms of first names ("Bob" of Robert), from a table."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mnemolog.streams.text.patterns import tables

NO_FORMS: Final = frozenset[str]()
_OTHER_SEX: Final = re.compile(r"(?:i|in|n|nn|l|ll|ell|ett|iett|ienn)[ae]|bel")
"""What is added to many a name of men to make one of women."""


def forms_of(first: str) -> frozenset[str]:
    """The first names of which this is a short form, and its own short forms; by their keys."""
    return _FORMS.get(first, NO_FORMS)


def makes_another_name(ending: str) -> bool:
    """Whether a first name with this ending is rather another name than a longer form: Paul and Paulina."""
    return _OTHER_SEX.fullmatch(ending) is not None


def _forms() -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for language in tables(Path(__file__).with_name("short_forms.toml")).values():
        for full, shorts in language.items():
            for short in shorts.split():
                found[short] = found.get(short, NO_FORMS) | {full}
                found[full] = found.get(full, NO_FORMS) | {short}
    return found


_FORMS: Final = _forms()
