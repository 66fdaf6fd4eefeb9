"""The types that a reply gives to entities: names of two types are two entities, so each type needs one word."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from mnemolog.schemas.entities.model import EntityType
from mnemolog.streams.text.patterns import tables

_TYPE: Final[TypeAdapter[str]] = TypeAdapter(EntityType)


def read_type(said: str, configured: Collection[EntityType]) -> EntityType:
    """The type that a word means: one of those that are asked for, a known one in another word, or the word itself.

    What is no plain word is `other`.
    """
    word = "_".join(said.casefold().split())
    kind = word if word in configured else _TYPES.get(word, word)
    try:
        return _TYPE.validate_python(kind)
    except ValidationError:
        return "other"


def _types() -> Mapping[str, EntityType]:
    table = tables(Path(__file__).with_name("entity_types.toml"))
    return {word: kind for kind, words in table.items() for word in words.split()}


_TYPES: Final = _types()
