"""Words for numbers, dates, units, negations and places in English, German, French, Spanish, Portuguese and Italian.

Negations are Dutch, Scandinavian and Polish as well. `cldr_words.json` is written by `make generate` from the Unicode
CLDR, and so is `cldr_places.json`; `words.toml` is kept by hand.
"""

import json
import re
import tomllib
from itertools import product
from pathlib import Path
from typing import Final

_GENERATED: Final = json.loads(Path(__file__).with_name("cldr_words.json").read_text(encoding="utf-8"))
_PLACES: Final = json.loads(Path(__file__).with_name("cldr_places.json").read_text(encoding="utf-8"))
_BY_HAND: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _meanings(section: str) -> dict[str, str]:
    """Each word of a section with its meaning."""
    rows = [*_GENERATED[section].items(), *_BY_HAND[section].items()]
    return {word: meaning for meaning, words in rows for word in words.split()}


def _phrases(name: str) -> re.Pattern[str]:
    """One of the patterns of a list, for tokens in small letters with a space between."""
    lines = _BY_HAND["patterns"][name].strip().splitlines()
    return re.compile(rf"\b(?:{'|'.join(lines)})(?!\w)")


SMALL_ELSEWHERE: Final[dict[str, str]] = _BY_HAND["small_elsewhere"]
"""Words of English that are small words in another language, each with the word that a text of that one has instead."""


def _listed(name: str) -> frozenset[str]:
    """The words of a list but those that are others in English."""
    return frozenset(_BY_HAND["words"][name].split()) - SMALL_ELSEWHERE.keys()


def _sides(name: str) -> tuple[tuple[frozenset[str], ...], ...]:
    """The lines of a list, each with its two sides."""
    lines = _BY_HAND["words"][name].strip().splitlines()
    return tuple(tuple(frozenset(side.split()) for side in line.split(" | ")) for line in lines)


NUMBERS: Final = _meanings("numbers")
ONES: Final = {word: number for word, number in NUMBERS.items() if number in set("123456789")}
TENS: Final = {word: number for word, number in NUMBERS.items() if number in {f"{ten}0" for ten in range(2, 10)}}
DATES: Final = _meanings("dates")
UNITS: Final = _meanings("units")
QUALIFIERS: Final = {word: meaning for meaning, words in _BY_HAND["qualifiers"].items() for word in words.split()}
"""Words that say how far a statement goes, each with its meaning."""
NEGATIONS: Final = _listed("negations")
SENTENCE_STARTERS: Final = frozenset(_BY_HAND["words"]["sentence_starters"].split())
AMBIGUOUS_WORDS: Final = frozenset(_BY_HAND["words"]["ambiguous"].split())
"""Words with a second meaning. They count when two texts are compared: a false alarm costs no more than a question to
the LLM. They do not count when a text is refused."""
SMALL_WORDS: Final = (SENTENCE_STARTERS | _listed("small_words")) - SMALL_ELSEWHERE.keys()
"""Words that tell little alone: they begin sentences, or are forms of "to be" and the like."""
DENYING_WORDS: Final = _listed("denying_words")
SUBORDINATORS: Final = _listed("subordinators")
ADVERSATIVES: Final = _listed("adversatives")
PREPOSITIONS: Final = _listed("prepositions")
ARTICLES: Final = _listed("articles")
ENGLISH: Final = frozenset(_BY_HAND["words"]["english"].split())
NOT_ENGLISH: Final = frozenset(_BY_HAND["words"]["not_english"].split())
BEFORE_UNITS: Final = frozenset(_BY_HAND["words"]["before_units"].split())
POSSESSIVES: Final = frozenset(_BY_HAND["words"]["possessives"].split())
LINKING_WORDS: Final = frozenset(_BY_HAND["words"]["linking"].split())
"""Words that a sentence may have to join what others say: "a dog called Rex"."""
OTHER_NEGATIONS: Final = tuple(_BY_HAND["words"]["other_negations"].split())
ENDINGS: Final = frozenset(_BY_HAND["words"]["endings"].split())
ENDED: Final = _phrases("ended")
NEVER: Final = _phrases("never")
OPPOSITES: Final = _sides("opposites")
"""Pairs of sets of words that exclude each other."""
TENSES: Final = _sides("tenses")
"""Forms of one verb in the past and in the present."""
TENSE_ENDINGS: Final = tuple(
    (past, now)
    for pasts, nows in _sides("tense_endings")
    for past, now in product(pasts, (ending.strip("-") for ending in nows))
)
"""Endings of verbs in the past, each with one that the same verb has in the present."""
AUXILIARIES: Final = _listed("auxiliaries")
COUNTRIES: Final = frozenset(_PLACES["countries"])
REGIONS: Final = frozenset(
    name for line in _BY_HAND["words"]["regions"].split("\n") for name in line.split(", ") if name
)
CITIES: Final = frozenset(_PLACES["cities"])
"""In small letters; cities only where CLDR has them: those that a time zone is named after."""
