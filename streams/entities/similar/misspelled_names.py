"""Tells a misspelled name from one that only looks like it, by how the two are spelled."""

from functools import lru_cache
from typing import Final, Literal

from rapidfuzz.distance import OSA

from mnemolog.schemas.entities.model import HEAD_LETTERS, Alias, EntityType, KnownEntity, name_head
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.spoken_names import WORDS

TWIN_SIMILARITY: Final = 0.75
"""From here on two names may be one: 1 minus the share of letters that differ, a swap of neighbours counted once.

Measured on `tests/data/similar_names.toml`: record 13 of docs/decisions has the figures.
"""
MAX_EDITS: Final = 2
MIN_SWAPPED: Final = 5
"""Letters of a word in which two neighbours may have changed places."""
MIN_MISREAD: Final = 6
"""Letters of a word in which signs that look alike may have been misread: "Homer" and "Horner" are two."""
_VOWELS: Final = frozenset("aeiouy")
_LIQUIDS: Final = frozenset("lr")
"""They change places with a vowel in names that are two: "Kirsten" and "Kristen", "Leila" and "Lelia"."""
_UMLAUTS: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "å": "aa", "ø": "oe"}
)
_PEOPLE: Final = frozenset({"person", "other"})
_TITLES: Final = frozenset(map(name_key, WORDS["titles"].split("|")))
_LOOK_ALIKE: Final = (("rn", "m"), ("vv", "w"), ("0", "o"), ("1", "l"), ("5", "s"))

Likeness = Literal["same", "doubtful"]


def likeness_of(name: str, kind: EntityType, entity: KnownEntity) -> Likeness | None:
    """The best likeness of a name of a type with the proper names of an entity.

    A first name alone and a whole name are compared for people: they may be of one, and are never the same.
    """
    texts = [one.text if _keys(one.text)[0] == one.key else one.key for one in entity.aliases if _is_plain(one)]
    found = {compare_names(name, text) for text in texts}
    if "same" in found:
        return "same"
    may_be_person = {kind, entity.type} <= _PEOPLE and any(are_first_names_alike(name, text) for text in texts)
    return "doubtful" if may_be_person or "doubtful" in found else None


def are_first_names_alike(one: str, other: str) -> bool:
    """Whether one is a first name alone, and that of the other one spelled nearly so: "Jonh" and "John Miller"."""
    words, others = (_untitled(_keys(name)[0]).split() for name in (one, other))
    fewer, more = sorted((len(words), len(others)))
    if fewer != 1 or more == 1:
        return False
    return compare_names(words[0], others[0]) is not None


def slip_heads(key: str) -> set[str]:
    """What names are looked up by that begin with this one's first word, of which two letters changed places.

    A whole name ends otherwise than the first name in it, and so is not found by its last letter.
    """
    word = key.partition(" ")[0]
    places = range(1, min(HEAD_LETTERS, len(word) - 1))
    return {name_head(f"{word[:one]}{word[one + 1]}{word[one]}{word[one + 2 :]}") for one in places}


def _is_plain(alias: Alias) -> bool:
    return alias.kind == "name" and " (" not in alias.key


def compare_names(one: str, other: str) -> Likeness | None:
    """Whether two names are one that is misspelled, or may be; None where they are two.

    One begins like the other. They are the same where two neighbouring letters, of which one is neither a vowel nor l
    or r, have changed places within a word; where signs look alike, as in scanned texts; and where an umlaut is written
    as two letters. All else names people who may be two: "Stafford" and "Stanford", "Thomson" and "Thompson", "Ana" and
    "Anna", "Daniel" and "Daniela".
    """
    (first, spelled), (second, other_spelled) = _keys(one), _keys(other)
    if not first or first == second or first[:1] != second[:1] or abs(len(first) - len(second)) > MAX_EDITS:
        return None
    if first == other_spelled or second == spelled or _is_misread(first, second):
        return "same"
    if _numbers(first) != _numbers(second) or _titles(first) != _titles(second):
        return None
    edits = OSA.distance(first, second, score_cutoff=MAX_EDITS)
    if edits > MAX_EDITS or OSA.normalized_similarity(first, second) < TWIN_SIMILARITY:
        return None
    return "same" if edits == 1 and _is_slip(first.split(), second.split()) else "doubtful"


def _is_slip(words: list[str], others: list[str]) -> bool:
    """Whether two neighbours within the one word in which names differ have changed places, not making another name."""
    if len(words) != len(others):
        return False
    places = [place for place, (one, other) in enumerate(zip(words, others, strict=True)) if one != other]
    if len(places) != 1:
        return False
    one, other = words[places[0]], others[places[0]]
    if len(one) != len(other) or not (one + other).isalpha():
        return False
    start = next(place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    is_within = 0 < start < len(one) - 2 and len(one) >= MIN_SWAPPED
    is_swapped = one[start + 1 :] != other[start + 1 :]
    return is_within and is_swapped and not {one[start], one[start + 1]} <= _VOWELS | _LIQUIDS


def _is_misread(one: str, other: str) -> bool:
    """Whether all that differs in two names are signs that look alike, within long words."""
    words, others = one.split(), other.split()
    if len(words) != len(others):
        return False
    pairs = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return bool(pairs) and all(
        min(map(len, pair)) >= MIN_MISREAD
        and not any(word.isdigit() for word in pair)
        and _as_read(pair[0]) == _as_read(pair[1])
        for pair in pairs
    )


def _as_read(word: str) -> str:
    if not any(letter.isalpha() for letter in word) or word[0].isdigit() or word[-1].isdigit():
        return word
    for sign, looks in _LOOK_ALIKE:
        word = word.replace(sign, looks)
    return word


@lru_cache(maxsize=4096)
def _keys(name: str) -> tuple[str, str]:
    """The key of a name, and that of it with umlauts written as two letters."""
    return name_key(name), name_key(name.translate(_UMLAUTS))


def _titles(key: str) -> str:
    first = key.partition(" ")[0]
    return first if first in _TITLES else ""


def _untitled(key: str) -> str:
    return key.removeprefix(_titles(key)).lstrip()


def _numbers(key: str) -> str:
    return "".join(letter for letter in key if letter.isdigit())
