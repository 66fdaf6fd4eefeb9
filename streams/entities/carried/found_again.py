"""Finds the entity here that one of another scope is: by all of its names, and called by those that were said."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from mnemolog.schemas.entities.model import Alias, KnownEntity
from mnemolog.streams.entities.carried.known_names import said_aliases, words_of
from mnemolog.streams.entities.found_entities import FoundEntity, find_entity
from mnemolog.streams.entities.source.source_names import SourceNames
from mnemolog.streams.entities.spoken_names import SpokenName, read_name


@dataclass(slots=True)
class FoundAgain:
    """The entities of a source in its own scope that facts of another scope name."""

    names: SourceNames
    _ids: dict[UUID, UUID | None] = field(default_factory=dict)

    def find(self, entity: KnownEntity, said: str, others: Mapping[UUID, KnownEntity]) -> UUID | None:
        """Its id here, made known where it is new, by what the text `said` calls it; the user is the user.

        `others` are the owners of its ties. One that the text does not name gets all of its names. None where the
        source brings too many.
        """
        if entity.keys("user"):
            return self.names.user().entity_id
        known = self._ids.setdefault(entity.entity_id, None)  # a tie may lead back to it
        named = self._aliases_here(entity, said, others)
        told = [named[alias] for alias in said_aliases(entity, said) if alias in named] or list(named.values())
        finding = FoundEntity(entity=self.names.registry[known]) if known else self._finding(entity, named.values())
        name = (read_name(told[0].text) if told else None) or SpokenName(text=entity.name)
        tie_key = next((alias.key for alias in told if alias.kind == "tie"), None)
        if finding.entity is not None:
            self.names.propose_merge(name, tie_key, finding.entity)
        found = self.names.take(finding, name.name or name.text, entity.type, told)
        self._ids[entity.entity_id] = found
        return found

    def _aliases_here(self, entity: KnownEntity, said: str, others: Mapping[UUID, KnownEntity]) -> dict[Alias, Alias]:
        """Each of its names as it is here: a tie is one to the owner here, and none where that is nobody."""
        named = {}
        for alias in entity.aliases:
            if alias.kind == "name":
                named[alias] = alias
            elif owner_id := self._owner_here(alias, said, others):
                key = f"{alias.key.partition(' ')[0]} of {owner_id}"
                named[alias] = Alias(text=words_of(alias), kind="tie", key=key)
        return named

    def _owner_here(self, tie: Alias, said: str, others: Mapping[UUID, KnownEntity]) -> UUID | None:
        owner = others.get(UUID(tie.key.rpartition(" ")[2]))
        if owner is None:
            return None
        is_looked_up = owner.entity_id in self._ids
        return self._ids[owner.entity_id] if is_looked_up else self.find(owner, said, others)

    def _finding(self, entity: KnownEntity, named: Iterable[Alias]) -> FoundEntity:
        name = next((read_name(alias.text) for alias in named if alias.kind == "name"), None)
        tie_key = next((alias.key for alias in named if alias.kind == "tie"), None)
        return find_entity(name or SpokenName(text=entity.name), entity.type, tie_key, self.names.registry)
