"""The entities that are known to a scope and that names of a turn may mean, with those that the turn itself brings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from mnemolog.schemas.entities.model import Alias, EntityType, KnownEntity
from mnemolog.schemas.vector import Vector
from mnemolog.streams.entities.similar.name_vectors import NO_VECTORS, NameVectors
from mnemolog.streams.entities.spoken_names import SpokenName

_ORIGIN = " ("


class EntityRegistry:
    """Finds entities by the keys of their names. What the turn brings is known to its later names."""

    def __init__(self, known: Iterable[KnownEntity], vectors: NameVectors = NO_VECTORS) -> None:
        self._entities = {entity.entity_id: entity for entity in known}
        self._vectors = vectors

    def __iter__(self) -> Iterator[KnownEntity]:
        return iter(self._entities.values())

    def __getitem__(self, entity_id: UUID) -> KnownEntity:
        return self._entities[entity_id]

    def add(self, entity: KnownEntity) -> None:
        self._entities[entity.entity_id] = entity

    def add_alias(self, entity_id: UUID, alias: Alias) -> None:
        entity = self._entities[entity_id]
        hidden = tuple(one for one in entity.hidden if (one.kind, one.key) != (alias.kind, alias.key))
        self.add(entity.model_copy(update={"aliases": (*entity.aliases, alias), "hidden": hidden}))

    def user(self) -> KnownEntity | None:
        """The entity of the user, where it is known: the first one, if a log should have several."""
        return next((entity for entity in self if entity.keys("user")), None)

    def of_name(self, key: str) -> list[KnownEntity]:
        """Those that are called so, whatever else is said of them."""
        return [entity for entity in self if key in names_of(entity)]

    def shown_of_name(self, key: str) -> list[KnownEntity]:
        """Those of which readers see that they are called so."""
        return [entity for entity in self.of_name(key) if key in names_of(entity.as_shown)]

    def of_meaning(self, name: SpokenName, kind: EntityType) -> list[KnownEntity]:
        """Those of a type that have a name which may mean the same."""
        vector = self.vector_of(name, kind)
        if vector is None:
            return []
        of_type = (entity for entity in self if entity.type == kind)
        return [one for one in of_type if name.key in one.near or self._vectors.are_near(name.key, vector, one.aliases)]

    def vector_of(self, name: SpokenName, kind: EntityType) -> Vector | None:
        """That of a name which the turn brings, where it has a meaning."""
        return self._vectors.vector_of(name, kind)

    def of_tie(self, key: str) -> list[KnownEntity]:
        return [entity for entity in self if key in entity.keys("tie")]


@dataclass(frozen=True, slots=True)
class Marks:
    """What tells an entity from others of its name: its ties to others, and where it is from."""

    ties: frozenset[str]
    origins: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.ties or self.origins)


def marks_of(entity: KnownEntity) -> Marks:
    origins = (key.partition(_ORIGIN)[2].rstrip(")") for key in entity.keys("name") if _ORIGIN in key)
    return Marks(entity.keys("tie"), frozenset(origins))


def names_of(entity: KnownEntity) -> frozenset[str]:
    """The keys of its proper names, without where it is from."""
    return frozenset(key.partition(_ORIGIN)[0] for key in entity.keys("name"))


def key_with_origin(key: str, origin: str | None) -> str:
    """The key of a name with where its bearer is from: "tom (work)"."""
    return f"{key}{_ORIGIN}{origin})" if origin else key


def same_type(one: EntityType, other: EntityType) -> bool:
    """Whether two types may be of one entity: `other` is what nobody told."""
    return one == other or "other" in (one, other)
