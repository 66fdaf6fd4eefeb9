"""Turns of one scope, whose entities are found as the resolver finds them, and known to the next turn."""

from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from mnemolog.schemas.entities import (
    AnsweredName,
    EntityLink,
    EntityType,
    KnownEntity,
    NamedEntity,
    NameQuery,
    name_ends,
)
from mnemolog.schemas.entity_events import AnyEntityEvent, EntityAliasAdded, EntityRegistered, FactLinked
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.linker import entity_events
from mnemolog.streams.entities.links import FactLinks, TurnEntities
from mnemolog.streams.entities.names import SpokenName
from mnemolog.streams.entities.questions import DoubtfulName, doubtful_names, without_decided
from mnemolog.streams.entities.resolver import NO_VECTORS, NameContext, NameVectors, lookup_keys, named_entities
from tests.support.builders.commits import added, commit
from tests.support.builders.name_choices import Choose, choose_nobody


@dataclass
class EntityTalk:
    """What is known so far. `say` tells of one fact, in a turn of its own; links are kept by the text of their fact.

    Names have these `vectors`. `choose` answers whom doubtful names mean, as a model would; `asked` are those of the
    last turn. A person has `told_apart` the entities of these pairs.
    """

    user_names: tuple[str, ...] = ()
    vectors: NameVectors = NO_VECTORS
    choose: Choose = choose_nobody
    told_apart: Collection[tuple[UUID, UUID]] = ()
    asked: tuple[DoubtfulName, ...] = ()
    known: dict[UUID, KnownEntity] = field(default_factory=dict)
    turns: int = 0

    def say(
        self, *names: str, subject: str | None = None, kind: EntityType = "person", speaker: str | None = None
    ) -> tuple[EntityLink, ...]:
        """The links of a fact about `subject` that names others of type `kind`."""
        entities = [NamedEntity(name=name, type=kind, role="object") for name in names]
        if subject is not None:
            entities.append(NamedEntity(name=subject, type=kind, role="subject"))
        return self.tell(
            ExtractedFact(
                text=f"Fact {self.turns}.", excerpt="said", search_text="", subject=subject, entities=tuple(entities)
            ),
            speaker=speaker,
        )[0]

    def tell(self, *facts: ExtractedFact, speaker: str | None = None) -> list[tuple[EntityLink, ...]]:
        """The links of each fact of one turn."""
        self.turns += 1
        source_id = f"t{self.turns}"
        context = NameContext(owner="default/alice", source_id=source_id, speaker=speaker, user_names=self.user_names)
        found = TurnEntities.of_facts(facts, self.looked_up(facts, context), context, self.vectors)
        self.asked = without_decided(doubtful_names(found), self.told_apart)
        found = found.answered([self.answer(name) for name in self.asked])
        committed = commit(source_id, *(added(fact.text, excerpt=fact.excerpt, subject=fact.subject) for fact in facts))
        events = entity_events(FactLinks(found), committed.events)
        self._apply(events)
        links = {event.fact_id: event.links for event in events if isinstance(event, FactLinked)}
        return [links.get(event.new_fact.fact_id, ()) for event in committed.events if event.new_fact]

    def answer(self, name: DoubtfulName) -> AnsweredName:
        chosen = self.choose(name)
        twins = tuple(twin.entity_id for twin in name.twins)
        return AnsweredName(
            name=name.name, twins=twins, entity_id=chosen.entity_id if chosen else None, reason="as the test says"
        )

    def looked_up(self, facts: tuple[ExtractedFact, ...], context: NameContext) -> list[KnownEntity]:
        """As the tables find them: by the heads and the ends of their names, and by their vectors."""
        asked = lookup_keys(facts, context)
        meant = self.vectors.queries(entity for fact in facts for entity in named_entities(fact, context))
        found = []
        for one in self.known.values():
            near = tuple(query.key for query in meant if self._is_near(query, one))
            if near or any(alias.head in asked.heads or name_ends(alias.key) in asked.ends for alias in one.aliases):
                names = tuple(alias.model_copy(update={"vector": None}) for alias in one.aliases)
                found.append(one.model_copy(update={"near": near, "aliases": names}))
        return found

    def entity(self, name: str) -> KnownEntity:
        """The only entity of that own name."""
        (found,) = [one for one in self.known.values() if one.name == name]
        return found

    def _is_near(self, query: NameQuery, entity: KnownEntity) -> bool:
        return self.vectors.are_near(SpokenName(text=query.key, name=query.key), query.type, entity)

    def _apply(self, events: tuple[AnyEntityEvent, ...]) -> None:
        for event in events:
            match event:
                case EntityRegistered():
                    fields = event.model_dump(include={"entity_id", "name", "type"})
                    twins = event.possible_twins
                    self.known[event.entity_id] = KnownEntity(**fields, aliases=event.aliases, possible_twins=twins)
                case EntityAliasAdded(entity_id=entity_id, alias=alias):
                    entity = self.known[entity_id]
                    update = {"aliases": (*entity.aliases, alias)}
                    self.known[entity_id] = entity.model_copy(update=update)
                case FactLinked(links=links):
                    for link in links:
                        if link.type is not None:
                            known = self.known[link.entity_id]
                            self.known[link.entity_id] = known.model_copy(update={"type": link.type})
