"""Finds names in a text without a model, in the clear cases: ties, origins, titles, names inside a sentence.

The first word of a sentence has a capital whatever it is: it is a name where it is a common first name, or where it
was said before.
"""

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from mnemolog.schemas.entities.model import MAX_ENTITIES, MAX_NAME, EntityType, NamedEntity, Role
from mnemolog.streams.entities.alias.aliases_in_text import aliases_in
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.named_ties import TITLED, ended_ties_in, introductions_in, members_in, owned_ties_in
from mnemolog.streams.entities.short_forms import forms_of
from mnemolog.streams.entities.spoken_names import (
    NAME,
    TIE_TYPES,
    WORDS,
    names_with_origin,
    read_name,
    ties_in,
    told_name,
)
from mnemolog.streams.text.subjects import is_user_word
from mnemolog.streams.text.word_lists import CITIES, COUNTRIES, DATES, SMALL_WORDS

_VALUE_TYPES: Final[dict[str, EntityType]] = {"home_city": "place", "home_country": "place", "employer": "organisation"}
_INNER_NAME: Final = re.compile(rf"(?<=[\w,] ){NAME}(?: {NAME}){{0,2}}")
_FIRST_NAME: Final = re.compile(rf"^\W*(?P<name>{NAME}(?: {NAME}){{0,2}})")
_TITLED: Final = re.compile(rf"(?<!\w){TITLED}")
_ANOTHER: Final = re.compile(rf"(?<!\w)(?i:{WORDS['another']}) {NAME}(?: {NAME})?")
_BEGINNINGS: Final = SMALL_WORDS | frozenset(WORDS["no_names"].split("|"))
_NO_NAMES: Final = _BEGINNINGS | DATES.keys()
_IS_OR_HAS: Final = re.compile(rf" (?:{WORDS['is_or_has']})(?!\w)")
_ORIGINS: Final = frozenset(WORDS["origins"].split("|"))
_ENDINGS: Final = ("ed", "ing")
_GAP: Final = " , "  # in the place of what was read: what follows stands inside the sentence
MAX_HEARD: Final = 50
"""Sentences whose names are known in those that follow."""
MIN_SHARED: Final = 3
"""Letters that a name at the beginning of a sentence shares at least with a longer or shorter one that was said."""


def value_entities(key: str, value: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """What the value of a key names: a place, an organisation, or somebody or something of the subject's."""
    if key in _VALUE_TYPES:
        return tuple(_named(value, _VALUE_TYPES[key], "object"))
    if key in TIE_TYPES:
        whose = f"{subject}'s" if subject else "my"
        return tuple(_named(f"{whose} {key} {value}", TIE_TYPES[key], "object"))
    return ()


def sentence_entities(said: str, subject: str | None, named: Collection[str] = ()) -> tuple[NamedEntity, ...]:
    """What an English sentence of `subject` names besides, each once. `named` are `names_heard` before it."""
    marked, rest = _marked(said, subject, named)
    names = (
        name
        for name in _bare_names(rest, named)
        if not (is_user_word(name) or any(word in DATES for word in _words(name)))
    )
    found = {entity.name: entity for entity in (*map(_bare_entity, names), *marked)}
    order = dict.fromkeys(entity.name for entity in marked) | found
    return tuple(found[name] for name in order)[:MAX_ENTITIES]


def names_heard(before: Iterable[str]) -> frozenset[str]:
    """The first words of the names in the last of these sentences, in the form in which names are compared."""
    return frozenset[str]().union(*map(_first_words, deque(before, maxlen=MAX_HEARD)))


@lru_cache(maxsize=512)  # a sentence is before each of those that follow
def _first_words(said: str) -> frozenset[str]:
    names = (*(entity.name for entity in sentence_entities(said, None)), *(given.alias for given in aliases_in(said)))
    read = filter(None, map(read_name, names))
    return frozenset(name.key.partition(" ")[0] for name in read if name.key)


def _marked(said: str, subject: str | None, named: Collection[str]) -> tuple[Sequence[NamedEntity], str]:
    """What has a tie, an origin or a title, and the text without it."""
    whose = f"{subject}'s" if subject else "my"
    found: list[NamedEntity] = []
    rest = said
    for given in aliases_in(said):
        rest = rest.replace(given.words, _GAP)
        found.extend(_named(told_name(given.bearer, subject), "other", "object"))
    for one in (*introductions_in(said), *ended_ties_in(said)):
        rest = rest.replace(one.words, _GAP)
        found.extend(_named(f"{whose} {one.whom}", TIE_TYPES[one.tie], "object"))
    for _, names in members_in(rest):
        for name in names:
            found.extend(_named(name, "person", "object"))
    for tie, words in ties_in(rest):
        rest = rest.replace(words, _GAP)
        found.extend(_named(told_name(words, subject), TIE_TYPES[tie], "object"))
    for one in owned_ties_in(said):
        rest = rest.replace(one.words, _GAP)
        found.extend(_named(one.whom, TIE_TYPES[one.tie], "object"))
    for words in names_with_origin(rest):
        if _has_clear_origin(words, named, is_first=rest.startswith(words)):
            rest = rest.replace(words, _GAP)
            found.extend(_named(words, "person", "object"))
    for pattern, kind in ((_TITLED, "person"), (_ANOTHER, "other")):
        found.extend(entity for match in pattern.finditer(rest) for entity in _named(match[0], kind))
        rest = pattern.sub(_GAP, rest)
    return found, rest


def _named(name: str, kind: EntityType, role: Role = "mention") -> Iterator[NamedEntity]:
    """The entity of a name; none where it is too long to be one."""
    if len(name) <= MAX_NAME:
        yield NamedEntity(name=name, type=kind, role=role)


def _has_clear_origin(words: str, named: Collection[str], *, is_first: bool) -> bool:
    """Whether "Tom from the pub" begins with a name: at the beginning of a sentence it may be "Apart from meetings"."""
    first, name = _words(words)[0], read_name(words)
    is_common = name is not None and name.origin in _ORIGINS
    return first not in _BEGINNINGS and (not is_first or is_common or _is_known(first, named))


def _bare_entity(name: str) -> NamedEntity:
    first, _, surname = name_key(name).partition(" ")
    is_person = surname and forms_of(first)  # a first name alone may be that of a dog
    is_place = name.casefold() in CITIES | COUNTRIES
    return NamedEntity(name=name, type="place" if is_place else "person" if is_person else "other")


def _bare_names(text: str, named: Collection[str]) -> Iterator[str]:
    """Names inside a sentence, and one at its beginning."""
    first = _FIRST_NAME.match(text)
    start = 0
    if first and (
        _is_first_name(_words(first["name"]), named) or _is_said_again(first["name"], first.end(), text, named)
    ):
        start = first.end()
        yield first["name"]
    for match in _INNER_NAME.finditer(text, start):
        yield match[0]


def _is_first_name(words: Sequence[str], named: Collection[str]) -> bool:
    """Whether these words, which begin a sentence with capitals, are a name: known, or of two words and no verb.

    Of two words of which the second is known, the first is none: "Congrats Ana".
    """
    first = words[0]
    if _is_known(first, named) or len(words) == 1:
        return _is_known(first, named)
    return not (first in _NO_NAMES or first.endswith(_ENDINGS) or _is_known(words[1], named))


def _is_said_again(name: str, end: int, text: str, named: Collection[str]) -> bool:
    """Whether a name that is a small word as well ("Mia") was said before, and now is or has something."""
    word = name.casefold()
    return word in named and word not in DATES and bool(_IS_OR_HAS.match(text, end))


def _is_known(word: str, named: Collection[str]) -> bool:
    key = name_key(word)
    return word not in _NO_NAMES and (bool(forms_of(key)) or any(_share(key, other) for other in named))


def _share(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= MIN_SHARED and long.startswith(short))


def _words(name: str) -> list[str]:
    return name.casefold().split()
