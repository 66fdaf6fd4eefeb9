"""Finds names in a text without a model, in the clear cases: ties to the speaker, origins, names inside a sentence."""

import re
from collections.abc import Iterator
from typing import Final

from mnemolog.schemas.entities.model import MAX_ENTITIES, EntityType, NamedEntity
from mnemolog.streams.entities.spoken_names import TIE_TYPES, names_with_origin, ties_in
from mnemolog.streams.text.subjects import is_user_word
from mnemolog.streams.text.word_lists import CITIES, COUNTRIES, DATES

_VALUE_TYPES: Final[dict[str, EntityType]] = {"home_city": "place", "home_country": "place", "employer": "organisation"}
_CAPITAL_WORD: Final = r"[^\W\d_a-z][\w'-]*[^\W\d_]"
_INNER_NAME: Final = re.compile(rf"(?<=[\w,] ){_CAPITAL_WORD}(?: {_CAPITAL_WORD}){{0,2}}(?![\w'])")
"""A name inside a sentence: the first word of one always has a capital."""


def value_entities(key: str, value: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """What the value of a key names: a place, an organisation, or somebody or something of the subject's."""
    if key in _VALUE_TYPES:
        return (NamedEntity(name=value, type=_VALUE_TYPES[key], role="object"),)
    if key in TIE_TYPES:
        whose = f"{subject}'s" if subject else "my"
        return (NamedEntity(name=f"{whose} {key} {value}", type=TIE_TYPES[key], role="object"),)
    return ()


def sentence_entities(said: str, subject: str | None, *, has_capital_nouns: bool) -> tuple[NamedEntity, ...]:
    """What a sentence of `subject` names besides, each once. Where nouns have capitals, as in German, no bare names."""
    found = {entity.name: entity for entity in _each(said, subject, has_capital_nouns=has_capital_nouns)}
    return tuple(found.values())[:MAX_ENTITIES]


def _each(said: str, subject: str | None, *, has_capital_nouns: bool) -> Iterator[NamedEntity]:
    rest = said
    for tie, words in ties_in(said):
        rest = rest.replace(words, " ")
        my, _, whom = words.partition(" ")
        yield NamedEntity(name=f"{subject}'s {whom}" if subject else f"{my} {whom}", type=TIE_TYPES[tie], role="object")
    for words in names_with_origin(rest):
        rest = rest.replace(words, " ")
        yield NamedEntity(name=words, type="person", role="object")
    for match in () if has_capital_nouns else _INNER_NAME.finditer(rest):
        name = match[0]
        if not (is_user_word(name) or any(word in DATES for word in name.casefold().split())):
            yield NamedEntity(name=name, type="place" if name.casefold() in CITIES | COUNTRIES else "other")
