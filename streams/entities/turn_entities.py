"""The entities that the facts of one source name, of a turn or of a command, found again by fact and by event."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from mnemolog.schemas.entities.model import MAX_LINKS, AnsweredName, EntityLink, KnownEntity
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.alias.same_names import tell_same
from mnemolog.streams.entities.doubtful.name_answers import answers_by_name
from mnemolog.streams.entities.entity_registry import EntityRegistry
from mnemolog.streams.entities.found_entities import FoundEntity
from mnemolog.streams.entities.name_context import NameContext, same_names
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.similar.name_vectors import NO_VECTORS, NameVectors
from mnemolog.streams.entities.source.fact_links import links_of, links_once, relations_of, user_link
from mnemolog.streams.entities.source.source_names import SourceNames
from mnemolog.streams.entities.stated_relations import StatedRelation


class _FactWords(NamedTuple):
    """What tells the facts of a source apart, in their events too."""

    text: str
    excerpt: str
    subject: str | None


@dataclass(slots=True)
class TurnEntities:
    """The entities of the facts of one source, and what these facts say of relations; `names` has what was found."""

    facts: tuple[ExtractedFact, ...]
    known: tuple[KnownEntity, ...]
    vectors: NameVectors
    names: SourceNames
    _links: dict[_FactWords, tuple[EntityLink, ...]] = field(default_factory=dict)
    _relations: dict[_FactWords, tuple[StatedRelation, ...]] = field(default_factory=dict)

    @classmethod
    def of_facts(
        cls,
        facts: Iterable[ExtractedFact],
        known: Iterable[KnownEntity],
        context: NameContext,
        vectors: NameVectors = NO_VECTORS,
        answers: Sequence[AnsweredName] = (),
    ) -> "TurnEntities":
        """The entities that these facts name, among them the `known` ones that `lookup_keys` and `vectors` find.

        `answers` say whom names mean that are in doubt without them.
        """
        known = tuple(known)
        names = SourceNames(context, EntityRegistry(known, vectors), answers_by_name(answers))
        found = cls(tuple(facts), known, vectors, names)
        for fact in found.facts:
            for pair in same_names(fact):
                tell_same(names, fact, pair)
        for fact in found.facts:
            found._read(fact)
        return found

    def _read(self, fact: ExtractedFact) -> None:
        """Facts of equal words are one statement, which names all that they name."""
        self.names.unlinked += fact.unlinked
        links, said = tuple(links_of(fact, self.names)), _words(fact)
        relations = (*self._relations.get(said, ()), *relations_of(fact, links, self.names))
        self._relations[said] = tuple({relation.key: relation for relation in relations}.values())
        self._links[said] = links_once((*self._links.get(said, ()), *links))

    @property
    def registry(self) -> EntityRegistry:
        return self.names.registry

    @property
    def new(self) -> Mapping[UUID, tuple[KnownEntity, FoundEntity]]:
        """The entities that the source brings, and why none that is known was found."""
        return self.names.new

    @property
    def links(self) -> Iterator[EntityLink]:
        """What all facts of the source name, whether or not they become new facts."""
        return (link for links in self._links.values() for link in links)

    def answered(self, answers: Sequence[AnsweredName]) -> "TurnEntities":
        """The entities of the same facts, with what a model says of doubtful names. That alone proposes no merge."""
        if not answers_by_name(answers):
            return self
        found = TurnEntities.of_facts(self.facts, self.known, self.names.context, self.vectors, answers)
        found.names.proposed = {
            pair: merge for pair, merge in found.names.proposed.items() if merge.is_told or pair in self.names.proposed
        }
        return found

    def named_in(self, fact: ExtractedFact) -> set[UUID]:
        """The entities that a fact of the source names."""
        return {link.entity_id for link in self._links.get(_words(fact), ())}

    def subject_of(self, fact: ExtractedFact) -> UUID | None:
        """The entity that a fact of the source is about."""
        links = self._links.get(_words(fact), ())
        return next((link.entity_id for link in links if link.role == "subject"), None)

    def links_of(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """What the new fact of an event names; an older statement of which it is made names its subject alone."""
        words, fact = event.words, event.new_fact
        if fact is None or words is None:
            return ()
        if said := self.said_by(event):
            return said[:MAX_LINKS]
        if self.names.context.is_user(fact.subject):
            return (user_link(self.names),)
        called = self.registry.of_name(name_key(fact.subject or ""))
        if len(called) != 1:
            return ()
        return (EntityLink(entity_id=called[0].entity_id, role="subject", name=fact.subject, step="exact"),)

    def said_by(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """What the statement of an event names."""
        return links_once(link for said in self.statements_of(event) for link in self._links[said])

    def subject_of_new(self, event: MemoryEvent) -> KnownEntity | None:
        """The entity that the new fact of an event is about."""
        return next((self.registry[one.entity_id] for one in self.links_of(event) if one.role == "subject"), None)

    def relations_of(self, event: MemoryEvent) -> tuple[StatedRelation, ...]:
        """What the statement of an event says that entities are to each other."""
        said = (relation for said in self.statements_of(event) for relation in self._relations[said])
        return tuple({relation.key: relation for relation in said}.values())

    def statements_of(self, event: MemoryEvent) -> Sequence[_FactWords]:
        """The facts of the source that an event is about: those of its words, of its subject if any is."""
        words, fact = event.words, event.new_fact
        if words is None:
            return ()
        same = [said for said in self._links if said[:2] == (words.text, words.excerpt)]
        return [said for said in same if fact is not None and said.subject == fact.subject] or same


def _words(fact: ExtractedFact) -> _FactWords:
    return _FactWords(fact.text, fact.excerpt, fact.subject)
