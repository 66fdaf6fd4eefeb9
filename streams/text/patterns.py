"""Patterns from TOML files: a line is an alternative, and `{name}` stands for a part of that name."""

import re
import tomllib
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

from mnemolog.streams.text.tokens import AMBIGUOUS_WORDS, DATES, NUMBERS, UNITS

_PLACEHOLDER: Final = re.compile(r"\{(?:([a-z]+):)?([a-z_]+)\}")


def tables(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def compiled(text: str, parts: Mapping[str, str]) -> re.Pattern[str]:
    """One pattern for all lines, in small and capital letters. `{v:place}` is a group `v_0` of the part `place`."""
    numbers = count()

    def part(match: re.Match[str]) -> str:
        inner = _PLACEHOLDER.sub(part, parts[match[2]].replace("\n", "|"))
        return f"(?P<{match[1]}_{next(numbers)}>{inner})" if match[1] else f"(?:{inner})"

    return re.compile(_PLACEHOLDER.sub(part, text.replace("\n", "|")), re.IGNORECASE)


def _words(table: Mapping[str, str], *meanings: str) -> str:
    words = [word for word, meaning in table.items() if meaning.split()[0] in meanings]
    return "|".join(sorted(words, key=len, reverse=True))


_UNAMBIGUOUS: Final = {word: DATES[word] for word in DATES if len(word) > len("sun") and word not in AMBIGUOUS_WORDS}
DATE_PARTS: Final[Mapping[str, str]] = {
    "month": _words(DATES, "month"),
    "weekday": _words(_UNAMBIGUOUS, "weekday"),
    "unit": _words(UNITS, "day", "week", "month", "year"),
    "count": rf"\d{{1,3}}|an?|ein(?:em|er|en)?|une?|una?|uma|{_words(NUMBERS, *map(str, range(2, 13)))}",
}
"""Words for months, weekdays, units of time and small numbers, in six languages."""
