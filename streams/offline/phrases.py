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


def _words(table: Mapping[str, str], *meanings: str) -> str:
    words = [word for word, meaning in table.items() if meaning.split()[0] in meanings]
    return "|".join(sorted(words, key=len, reverse=True))


_LONG_DATES: Final = {word: DATES[word] for word in DATES if len(word) > len("sun") and word not in AMBIGUOUS_WORDS}
_PARTS: Final[Mapping[str, str]] = _TABLES["parts"] | {
    "month": _words(DATES, "month"),
    "weekday": _words(_LONG_DATES, "weekday"),
    "unit": _words(UNITS, "day", "week", "month", "year"),
    "count": rf"\d{{1,3}}|an?|ein(?:em|er|en)?|une?|una?|uma|{_words(NUMBERS, *map(str, range(2, 13)))}",
}


def _compiled(text: str) -> re.Pattern[str]:
    numbers = count()

    def part(match: re.Match[str]) -> str:
        inner = _PLACEHOLDER.sub(part, _PARTS[match[2]].replace("\n", "|"))
        return f"(?P<{match[1]}_{next(numbers)}>{inner})" if match[1] else f"(?:{inner})"

    return re.compile(_PLACEHOLDER.sub(part, text.replace("\n", "|")), re.IGNORECASE)


OMITTED: Final = {reason: _compiled(text) for reason, text in _TABLES["omitted"].items()}
WORDS: Final = {name: _compiled(text) for name, text in _TABLES["words"].items()}
SLOT_PATTERNS: Final = tuple(
    (act, slot, _compiled(text)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, the slot, and how it says so. `pet`, `relative` and `any` stand for several slots."""
PETS: Final = tuple(_compiled("{pet}").groupindex)
RELATIVES: Final = tuple(_compiled("{relative}").groupindex)
