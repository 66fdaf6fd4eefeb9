"""Whom and what facts of dialogues name: linked one after the other by the rules of the offline provider."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.events import AnyEntityEvent, EntityAliasAdded, EntityRegistered
from mnemolog.schemas.entities.model import MAX_ENTITIES, KnownEntity, NamedEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.link_events import entity_events
from mnemolog.streams.entities.name_context import NameContext, lookup_keys
from mnemolog.streams.entities.names_in_text import sentence_entities
from mnemolog.streams.entities.turn_entities import TurnEntities

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


@dataclass
class DialogueEntities:
    """The entities of one user that are known so far. No speaker is the user."""

    _known: dict[UUID, KnownEntity] = field(default_factory=dict)

    def linked(self, commit: Commit, fact: ExtractedFact) -> Commit:
        """The commit of a raw fact with the events about what it names."""
        told = fact.model_copy(update={"entities": tuple(_named(fact))[:MAX_ENTITIES]})
        context = NameContext(owner=commit.owner, source_id=commit.source_id)
        found = TurnEntities.of_facts([told], self._looked_up(told, context), context)
        events = entity_events(found, commit.events)
        self._learn(events)
        return commit.model_copy(update={"entity_events": events})

    def _looked_up(self, fact: ExtractedFact, context: NameContext) -> list[KnownEntity]:
        """As the tables find them: by the heads of their names."""
        heads = lookup_keys([fact], context).heads
        return [one for one in self._known.values() if any(alias.head in heads for alias in one.aliases)]

    def _learn(self, events: Iterable[AnyEntityEvent]) -> None:
        for event in events:
            match event:
                case EntityRegistered():
                    fields = event.model_dump(include={"entity_id", "name", "type"})
                    self._known[event.entity_id] = KnownEntity(**fields, aliases=event.aliases)
                case EntityAliasAdded(entity_id=entity_id, alias=alias):
                    entity = self._known[entity_id]
                    self._known[entity_id] = entity.model_copy(update={"aliases": (*entity.aliases, alias)})


def _named(fact: ExtractedFact) -> Iterable[NamedEntity]:
    """What the sentences of a fact name, each once."""
    sentences = _SENTENCE_END.split(fact.text)
    named = (one for said in sentences for one in sentence_entities(said, fact.subject, has_capital_nouns=False))
    return {one.name: one for one in named}.values()
