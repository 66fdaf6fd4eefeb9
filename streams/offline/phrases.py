"""The patterns of `phrases.toml`, with the words of the CLDR for times in them."""

import re
import tomllib
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Final

from mnemolog.streams.text.word_lists import AMBIGUOUS_WORDS, DATES, NUMBERS, UNITS

_TABLES: Final = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))
_PLACEHOLDER: Final = re.compile(r"\{(?:(v|old):)?([a-z_]+)\}")


def any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern for some, in small and capital letters."""
    return re.compile("|".join(patterns), re.IGNORECASE)


def _kinds(table: Mapping[str, str]) -> str:
    return "|".join(f"(?P<{key}>{words})" for key, words in table.items())


PETS: Final[Mapping[str, str]] = _TABLES["pets"]
RELATIVES: Final[Mapping[str, str]] = _TABLES["relatives"]


def _words(table: Mapping[str, str], *meanings: str) -> str:
    words = [word for word, meaning in table.items() if meaning.split()[0] in meanings]
    return "|".join(sorted(words, key=len, reverse=True))


_PARTS: Final = {
    **_TABLES["parts"],
    "pet": _kinds(PETS),
    "relative": _kinds(RELATIVES),
    "month": _words(DATES, "month"),
    "weekday": _words({word: DATES[word] for word in DATES if len(word) > 3 and word not in AMBIGUOUS_WORDS}, "weekday"),
    "unit": _words(UNITS, "day", "week", "month", "year"),
    "count": rf"\d{{1,3}}|an?|ein(?:em|er|en)?|une?|una?|uma|{_words(NUMBERS, *map(str, range(2, 13)))}",
}


def _compiled(text: str) -> re.Pattern[str]:
    numbers = count()

    def part(match: re.Match[str]) -> str:
        name, inner = match[1], _PLACEHOLDER.sub(part, _PARTS[match[2]].replace("\n", "|"))
        return f"(?P<{name}_{next(numbers)}>{inner})" if name else f"(?:{inner})"

    return any_of(_PLACEHOLDER.sub(part, text.replace("\n", "|")))


OMITTED: Final = {reason: _compiled(text) for reason, text in _TABLES["omitted"].items()}
WORDS: Final = {name: _compiled(text) for name, text in _TABLES["words"].items()}
SLOT_PATTERNS: Final = tuple(
    (act, slot, _compiled(text)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What is done to a slot, the slot, and how it is said; one of several slots has the name of its kinds or `any`."""
