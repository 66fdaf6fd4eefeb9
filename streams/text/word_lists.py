"""Words for numbers, dates, units, negations and places in English, German, French, Spanish, Portuguese and Italian.

Negations are Dutch, Scandinavian and Polish as well. `cldr_words.json` is written by `make generate` from the Unicode
CLDR, and so is `cldr_places.json`; `words.toml` is kept by hand.
"""

import json
import tomllib
from pathlib import Path
from typing import Final

_GENERATED: Final = json.loads(Path(__file__).with_name("cldr_words.json").read_text(encoding="utf-8"))
_PLACES: Final = json.loads(Path(__file__).with_name("cldr_places.json").read_text(encoding="utf-8"))
_BY_HAND: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _meanings(section: str) -> dict[str, str]:
    """Each word of a section with its meaning."""
    rows = [*_GENERATED[section].items(), *_BY_HAND[section].items()]
    return {word: meaning for meaning, words in rows for word in words.split()}


NUMBERS: Final = _meanings("numbers")
ONES: Final = {word: number for word, number in NUMBERS.items() if number in set("123456789")}
TENS: Final = {word: number for word, number in NUMBERS.items() if number in {f"{ten}0" for ten in range(2, 10)}}
DATES: Final = _meanings("dates")
UNITS: Final = _meanings("units")
QUALIFIERS: Final = {word: meaning for meaning, words in _BY_HAND["qualifiers"].items() for word in words.split()}
"""Words that say how far a statement goes, each with its meaning."""
NEGATIONS: Final = frozenset(_BY_HAND["words"]["negations"].split())
SENTENCE_STARTERS: Final = frozenset(_BY_HAND["words"]["sentence_starters"].split())
AMBIGUOUS_WORDS: Final = frozenset(_BY_HAND["words"]["ambiguous"].split())
"""Words with a second meaning. They count when two texts are compared: a false alarm costs no more than a question to
the LLM. They do not count when a text is refused."""
SMALL_WORDS: Final = SENTENCE_STARTERS | frozenset(_BY_HAND["words"]["small_words"].split())
"""Words that tell little alone: they begin sentences, or are forms of "to be" and the like."""
DENYING_WORDS: Final = frozenset(_BY_HAND["words"]["denying_words"].split())
SUBORDINATORS: Final = frozenset(_BY_HAND["words"]["subordinators"].split())
ADVERSATIVES: Final = frozenset(_BY_HAND["words"]["adversatives"].split())
PREPOSITIONS: Final = frozenset(_BY_HAND["words"]["prepositions"].split())
SMALL_NOUNS: Final = frozenset(_BY_HAND["words"]["small_nouns"].split())
"""Words of the languages that write nouns small, and not of German."""
ARTICLES: Final = frozenset(_BY_HAND["words"]["articles"].split())
POSSESSIVES: Final = frozenset(_BY_HAND["words"]["possessives"].split())
LINKING_WORDS: Final = frozenset(_BY_HAND["words"]["linking"].split())
"""Words that a sentence may have to join what others say: "a dog called Rex"."""
OTHER_NEGATIONS: Final = tuple(_BY_HAND["words"]["other_negations"].split())
ENDINGS: Final = frozenset(_BY_HAND["words"]["endings"].split())
OPPOSITES: Final = tuple(
    tuple(frozenset(side.split()) for side in line.split(" | "))
    for line in _BY_HAND["words"]["opposites"].strip().splitlines()
)
"""Pairs of sets of words that exclude each other."""
COUNTRIES: Final = frozenset(_PLACES["countries"])
REGIONS: Final = frozenset(
    name for line in _BY_HAND["words"]["regions"].split("\n") for name in line.split(", ") if name
)
CITIES: Final = frozenset(_PLACES["cities"])
"""In small letters; cities only where CLDR has them: those that a time zone is named after."""
