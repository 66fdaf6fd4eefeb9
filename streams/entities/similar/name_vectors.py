"""Whether two names may mean the same however they are spelled: by their vectors, which a turn brings with it.

Names of people and animals mean nothing: "Tom" is as near to "Tim" as to anybody.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mnemolog.schemas.entities.model import (
    BEINGS,
    MAX_NAME_VECTORS,
    Alias,
    EntityType,
    NamedEntity,
    NameQuery,
    NameVector,
)
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.streams.entities.short_forms import forms_of
from mnemolog.streams.entities.spoken_names import SpokenName, read_name

_NO_DIGIT: Final = re.compile("[^0-9]")


@dataclass(frozen=True, slots=True)
class NameVectors:
    """The vectors of the names of a turn, by their keys, and from which similarity on two names may mean the same."""

    vectors: Mapping[str, Vector] = field(default_factory=dict)
    floor: float = 0.0

    @classmethod
    def of(cls, named: Iterable[NameVector], floor: float) -> "NameVectors":
        """With the floor 0 names have no meaning."""
        return cls({one.key: one.vector for one in named} if floor else {}, floor)

    def vector_of(self, name: SpokenName, kind: EntityType) -> Vector | None:
        return self.vectors.get(name.key) if has_meaning(name, kind) else None

    def queries(self, named: Iterable[NamedEntity]) -> Sequence[NameQuery]:
        """What finds the known entities that these names may mean as well, each name of a type once."""
        found: dict[tuple[str, EntityType], NameQuery] = {}
        for entity in named:
            name = read_name(entity.name)
            if name is not None and (vector := self.vector_of(name, entity.type)) is not None:
                found[name.key, entity.type] = NameQuery(key=name.key, type=entity.type, vector=vector)
        return list(found.values())

    def are_near(self, key: str, vector: Vector, aliases: Iterable[Alias]) -> bool:
        """Whether a name may mean one of these, which the turn itself brings; other numbers are something else."""
        told = (one.vector for one in aliases if one.vector is not None and same_numbers(one.key, key))
        return any(cosine_similarity(vector.values, other.values) >= self.floor for other in told)


NO_VECTORS: Final = NameVectors()


def has_meaning(name: SpokenName, kind: EntityType) -> bool:
    """Whether a name says what it is the name of; of something that has no type, a first name may be anybody's."""
    if not name.key or name.tie or name.origin or kind in BEINGS:
        return False
    return kind != "other" or not forms_of(name.key.partition(" ")[0])


def names_to_embed(facts: Iterable[ExtractedFact]) -> dict[str, str]:
    """The names in these facts that have a meaning by their keys, without titles, the first `MAX_NAME_VECTORS`."""
    found: dict[str, str] = {}
    for entity in (entity for fact in facts for entity in fact.entities):
        name = read_name(entity.name)
        if name is not None and has_meaning(name, entity.type) and len(found) < MAX_NAME_VECTORS:
            found.setdefault(name.key, name.untitled)
    return found


def same_numbers(one: str, other: str) -> bool:
    """Whether two keys have the same digits: "iphone 14" is never "iphone 15". The tables compare them so too."""
    return _NO_DIGIT.sub("", one) == _NO_DIGIT.sub("", other)
