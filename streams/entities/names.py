"""Names as people write and say them.

Compared without case and accents, taken apart into tie and name, short forms, slips of spelling.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from rapidfuzz.distance import OSA

from mnemolog.schemas.entities import (
    HEAD_LETTERS,
    MAX_NAME,
    TIES,
    WORDS_AROUND_TIES,
    Alias,
    EntityType,
    KnownEntity,
    name_head,
)
from mnemolog.streams.text.patterns import tables
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, plain_letters

_SILENT: Final = re.compile("['\u2019\u2018`\u00b4.]")
_GAPS: Final = re.compile("[\\s\\-\u2800\u2010\u2011\u2013_/()]+")  # a " (" in a key begins an origin, nothing else
_EDGES: Final = ' ,;:!?"“”„«»[]{}<>*#'


def name_key(name: str) -> str:
    """The form in which names are compared: "ÁNA" and "Ana" are "ana"; empty where nothing of it is a name.

    Letters that are not made of one with an accent ("ø", "ł") are taken for those that they look like.
    """
    return _GAPS.sub(" ", _SILENT.sub("", plain_letters(name))).strip(_EDGES)[:MAX_NAME].rstrip()


def words_key(text: str) -> str:
    """The form in which names are looked for in texts: as `name_key`, of any length, and "Ana's" is "ana s"."""
    return _GAPS.sub(" ", _SILENT.sub(" ", plain_letters(text))).strip(_EDGES)


def key_words(text: str) -> list[str]:
    """The words of a text of any length, each as it would be in the key of a name."""
    return [word.strip(_EDGES) for word in _GAPS.sub(" ", _SILENT.sub("", plain_letters(text))).split(" ")]


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


TIE_TYPES: Final = {tie: kind for kind, ties in TIES.items() for tie in ties}
"""What somebody or something can be to another one, with the type of it. A group has no name of one who is in it."""
WORDS: Final = WORDS_AROUND_TIES
"""Patterns of the words around ties and names."""
_TIES: Final = "|".join(f"(?P<{tie}>{words})" for ties in TIES.values() for tie, words in ties.items())
TIE: Final = (
    rf"(?P<attributes>(?:(?:{WORDS['new']}|{WORDS['before_tie']}) )*?)(?:{_TIES})(?P<after> (?:{WORDS['after_tie']}))?"
)
"""The pattern of all ties, a group each, with the adjectives at them: "older brother", "sœur aînée"."""
ANY_TIE: Final = re.sub(r"\?P<\w+>", "?:", TIE)
"""The pattern of all ties, without groups of their own."""
GROUP: Final = "|".join(f"(?P<{tie}>{words})" for tie, words in TIES["group"].items())
"""The pattern of groups, a group each."""
NAME: Final = r"[^\W\d_a-z](?:[\w-]|'(?!(?:s|m|d|t|ve|ll|re)(?!\w))){0,40}[^\W\d_](?!\w)"
"""The pattern of a word with a capital, in which case counts; of "Tom's" it is "Tom"."""
_MY: Final = re.compile(rf"^(?:{WORDS['my']}) (?:{TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
_OWNED: Final = re.compile(rf"^(?P<owner>\S.*?)(?:'s|'|s(?= \S+ )) (?:{TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
"""Without an apostrophe ("Annas Bruder Tom") a name has to follow: "Thomas Mann" is nobody's husband."""
_TIE_OF: Final = re.compile(rf"^(?:(?:{WORDS['the']}) ?)?(?:{TIE}) (?:{WORDS['of']}) ?(?P<owner>\S.*)$", re.IGNORECASE)
_NAME_FIRST: Final = re.compile(rf"^(?P<name>.+?),? (?:{WORDS['my']}) (?:{TIE})$", re.IGNORECASE)
_APPOSED: Final = re.compile(r"^(?P<name>[^,()]+?)(?:, | \()(?P<tie>[^,()]+)\)?$")
"""A name and what its bearer is to somebody: "Carol (Alice's girlfriend)", "Carol, la novia de Alice"."""
_NEW: Final = re.compile(rf"(?<!\w)(?:{WORDS['new']})(?!\w)", re.IGNORECASE)
_FROM: Final = re.compile(
    rf"^(?P<name>.+?) (?:from (?:(?:the|my|our) )?(?P<there>.+)|(?:{WORDS['from']}) ?(?P<origin>{WORDS['origins']}))$",
    re.IGNORECASE,
)
_FROM_IN_TEXT: Final = re.compile(
    rf"(?<!\w)(?P<name>{NAME}(?: {NAME})?) "
    rf"(?:from (?:(?:the|my|our) )?[a-z][\w-]+|(?i:{WORDS['from']}) (?i:{WORDS['origins']}))(?!\w)"
)
MAX_ORIGIN: Final = MAX_NAME - len(" ()")
"""Letters of the key of an origin: it stands behind the key of a name."""
PRONOUNS: Final = frozenset(WORDS["pronouns"].split("|"))
"""Words that stand for somebody and name nobody."""
_MY_WORD: Final = re.compile(rf"(?<!\w)(?:{WORDS['my']}) (?:{TIE})(?!\w)", re.IGNORECASE)
_NEXT_NAME: Final = re.compile(rf",? {NAME}(?: {NAME})?")
_AGES: Final = re.compile(rf"(?<!\w)(?:(?P<older>{WORDS['older']})|(?P<younger>{WORDS['younger']}))(?!\w)")
_ANOTHER: Final = re.compile(rf"^(?:{WORDS['another']}) (?P<name>.+)$", re.IGNORECASE)
_TITLE: Final = re.compile(r"^(?:(?:dr|prof)\.?|the) (?=\S)", re.IGNORECASE)
"""Words without which a name is the same; "Mr. Miller" and "Mrs. Miller" are two."""
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenName:
    """A name as it was said (`text`), and its parts.

    `name` is the proper name in it, `tie` what it is to `owner`, which is None for the speaker, and `origin` the key
    of where it is from. Where it `is_another`, it is nobody who is known ("another Tom"), and that is the origin. A new
    one of a tie ("my new dog") `is_new`: it is not the one that was known by the tie.
    """

    text: str
    name: str | None = None
    tie: str | None = None
    owner: str | None = None
    origin: str | None = None
    is_another: bool = False
    is_new: bool = False

    @property
    def untitled(self) -> str:
        """The proper name without the words that do not count."""
        return _TITLE.sub("", self.name or "")

    @property
    def key(self) -> str:
        return name_key(self.untitled)


def age_in(text: str) -> str | None:
    """Whether a name with a tie is of an older or a younger one: "my big brother", "ma sœur cadette"."""
    match = _AGES.search(text)
    return match.lastgroup if match else None


def read_name(text: str) -> SpokenName | None:
    """The parts of a name; None where it names nobody: a pronoun, or nothing but signs."""
    said = " ".join(text.translate(_TYPOGRAPHY).split())
    if not name_key(said) or name_key(said) in PRONOUNS:
        return None
    if found := _apposed(said) or _tied(said):
        return found
    if match := _FROM.match(said):
        origin = match["there"] or match["origin"]
        return SpokenName(text=said, name=match["name"], origin=name_key(origin)[:MAX_ORIGIN])
    if (match := _ANOTHER.match(said)) and _is_proper(match["name"]):
        return SpokenName(text=said, name=match["name"], origin="another", is_another=True)
    return SpokenName(text=said, name=said)


def ties_in(text: str) -> Iterator[tuple[str, str]]:
    """What a text says of ties to its speaker: each tie, and its words with the name after it."""
    for match in _MY_WORD.finditer(text.translate(_TYPOGRAPHY)):
        tie = tie_of(match)
        name = _NEXT_NAME.match(text, match.end()) if TIE_TYPES[tie] != "group" else None
        yield tie, text[match.start() : name.end() if name else match.end()]


def told_name(name: str, subject: str | None) -> str:
    """A name as a fact of `subject` has it: what Alice calls "my brother Tom" is "Alice's brother Tom"."""
    whom = next((words.partition(" ")[2] for _, words in ties_in(name)), None)
    return f"{subject}'s {whom}" if subject and whom else name


def names_with_origin(text: str) -> Iterator[str]:
    """The names with where they are from, in a text ("Tom from work"), as they are said. A place is from nowhere."""
    found = _FROM_IN_TEXT.finditer(text.translate(_TYPOGRAPHY))
    return (match[0] for match in found if match["name"].casefold() not in CITIES | COUNTRIES)


def _apposed(said: str) -> SpokenName | None:
    """A name with its tie beside it; "Alices Freundin" is a tie where the name of its bearer follows."""
    match = _APPOSED.match(said)
    if match is None or not _is_proper(match["name"]) or _tied(match["name"]):
        return None
    name, tie = match["name"], match["tie"]
    found = _tied(tie)
    if found is None or found.name is not None:
        found = _tied(f"{tie} {name}")
    return None if found is None or TIE_TYPES[found.tie or ""] == "group" else replace(found, text=said, name=name)


def _tied(said: str) -> SpokenName | None:
    """The parts of a name that has a tie in it."""
    matches = (pattern.match(said) for pattern in (_MY, _OWNED, _TIE_OF, _NAME_FIRST))
    return next((found for match in matches if match and (found := _with_tie(said, match))), None)


def _with_tie(said: str, match: re.Match[str]) -> SpokenName | None:
    groups = match.groupdict()
    name = groups.get("name")
    if name is not None and not _is_proper(name):
        return None
    tie = tie_of(match)
    name = None if TIE_TYPES[tie] == "group" else name
    is_new = any(_NEW.search(groups[place] or "") for place in ("attributes", "after"))
    return SpokenName(text=said, name=name, tie=tie, owner=groups.get("owner"), is_new=is_new)


def tie_of(match: re.Match[str]) -> str:
    """The tie that a match with `TIE` or `GROUP` has found."""
    return next(tie for tie, said in match.groupdict().items() if said is not None and tie in TIE_TYPES)


def _is_proper(name: str) -> bool:
    """Whether it begins like a name: with a capital, or a letter of a script without them."""
    return not name[0].islower()


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
