"""The entities that each new fact names: by the names in its statement, and by the facts that it is made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from mnemolog.schemas.entities import (
    MAX_ENTITIES,
    MAX_LINKS,
    MAX_RELATIONS,
    Alias,
    AnsweredName,
    EntityLink,
    KnownEntity,
    NamedEntity,
    NamedRelation,
    ResolutionStep,
    Role,
    UnlinkedName,
)
from mnemolog.schemas.events import FactContradicted, FactCorrected, FactPending, FactReplaced, FactsMerged, MemoryEvent
from mnemolog.schemas.facts import ExtractedFact, NewFact
from mnemolog.schemas.stored import LinkedFact, StoredRelation
from mnemolog.streams.entities.known_names import aliases_in_text, bare_name, known_names_in
from mnemolog.streams.entities.names import name_key, read_name, ties_told
from mnemolog.streams.entities.relations import apply_same_as, relations_of
from mnemolog.streams.entities.resolver import (
    MAX_NEW_ENTITIES,
    NO_VECTORS,
    EntityRegistry,
    FoundEntity,
    NameContext,
    NameResolver,
    NameVectors,
    answers_by_name,
    named_entities,
    names_of,
    same_as_pairs,
    subject_type,
)
from mnemolog.streams.text.differences import USER


class Statement(NamedTuple):
    """The entities and relations in all facts of a source that have the same words and subject."""

    subject: str | None
    links: tuple[EntityLink, ...]
    relations: tuple[StoredRelation, ...]


@dataclass(slots=True)
class TurnEntities:
    """The entities and relations in the facts of one source; `resolver` has what their names added."""

    facts: tuple[ExtractedFact, ...]
    known: tuple[KnownEntity, ...]
    resolver: NameResolver
    statements: dict[tuple[str, str, str | None], Statement] = field(default_factory=dict)

    @classmethod
    def of_facts(
        cls,
        facts: Iterable[ExtractedFact],
        known: Iterable[KnownEntity],
        context: NameContext,
        vectors: NameVectors = NO_VECTORS,
        answers: Sequence[AnsweredName] = (),
    ) -> "TurnEntities":
        """Resolve the names in these facts against the `known` entities that `lookup_keys` and `vectors` find.

        `answers` are a model's choices for doubtful names.
        """
        known = tuple(known)
        resolver = NameResolver(context, EntityRegistry(known, vectors), answers_by_name(answers))
        found = cls(tuple(facts), known, resolver)
        for fact in found.facts:
            for pair in same_as_pairs(fact):
                apply_same_as(resolver, fact, pair)
        for fact in found.facts:
            resolver.unlinked += fact.unlinked
            links = tuple(links_of(fact, resolver))
            said = Statement(fact.subject, links, relations_of(fact, links, resolver))
            key = _statement_key(fact)
            found.statements[key] = _joined([found.statements.get(key, said), said])
        return found

    @property
    def registry(self) -> EntityRegistry:
        return self.resolver.registry

    @property
    def new(self) -> Mapping[UUID, tuple[KnownEntity, FoundEntity]]:
        """The entities that the source adds, each with why no known entity was found."""
        return self.resolver.new

    @property
    def links(self) -> Iterator[EntityLink]:
        """The links of all facts of the source, whether or not these become new facts."""
        return (link for said in self.statements.values() for link in said.links)

    def answered(self, answers: Sequence[AnsweredName]) -> "TurnEntities":
        """The entities of the same facts, with a model's choices for doubtful names. A choice proposes no merge."""
        if not answers_by_name(answers):
            return self
        found = TurnEntities.of_facts(self.facts, self.known, self.resolver.context, self.registry.vectors, answers)
        found.resolver.proposed = {
            pair: merge
            for pair, merge in found.resolver.proposed.items()
            if merge.is_stated or pair in self.resolver.proposed
        }
        return found

    def entities_in(self, fact: ExtractedFact) -> set[UUID]:
        return {link.entity_id for link in self.statements[_statement_key(fact)].links}

    def subject_of(self, fact: ExtractedFact) -> UUID | None:
        said = self.statements.get(_statement_key(fact))
        return next((link.entity_id for link in said.links if link.role == "subject"), None) if said else None

    def links_of_event(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """The links of an event's new fact; only its subject where the fact repeats an older statement."""
        fact = event.new_fact
        if fact is None:
            return ()
        if links := self.statement_of(event).links:
            return links[:MAX_LINKS]
        if self.resolver.context.is_user(fact.subject, subject_type(fact)):
            return (_user_link(self.resolver),)
        called = self.registry.of_name(name_key(fact.subject or ""))
        if len(called) != 1:
            return ()
        return (EntityLink(entity_id=called[0].entity_id, role="subject", name=fact.subject, step="exact"),)

    def subject_of_event(self, event: MemoryEvent) -> KnownEntity | None:
        links = self.links_of_event(event)
        return next((self.registry[link.entity_id] for link in links if link.role == "subject"), None)

    def statement_of(self, event: MemoryEvent) -> Statement:
        """The statement of this source that an event is about, whether or not it made a new fact; an empty one if none.

        Of statements in its words it is the one with its subject, if there is one, else all of them.
        """
        words, subject = event.words, event.new_fact.subject if event.new_fact else None
        same = [said for key, said in self.statements.items() if words and key[:2] == (words.text, words.excerpt)]
        return _joined([said for said in same if event.new_fact and said.subject == subject] or same)


def _statement_key(fact: ExtractedFact) -> tuple[str, str, str | None]:
    return fact.text, fact.excerpt, fact.subject


def _joined(statements: Sequence[Statement]) -> Statement:
    relations = {one.key: one for said in statements for one in said.relations}
    links = links_once(link for said in statements for link in said.links)
    return Statement(statements[0].subject if statements else None, links, tuple(relations.values()))


def links_of(fact: ExtractedFact, resolver: NameResolver) -> Iterator[EntityLink]:
    """The entities that a fact names, then the owners in its names ("Tom's wife"). New entities are registered."""
    if resolver.context.is_user(fact.subject, subject_type(fact)):
        yield _user_link(resolver)
    owned = []
    for entity in named_entities(fact, resolver.context):
        name = read_name(entity.name)
        words = None if resolver.context.in_run is None else fact.text
        if name is None or (found := resolver.entity_of(name, entity.type, words)) is None:
            is_beyond = name is not None and not name.is_bare and len(resolver.new) >= MAX_NEW_ENTITIES
            resolver.unlinked.append(UnlinkedName(name=entity.name, reason="too_many" if is_beyond else "no_name"))
            continue
        entity_id, finding = found
        yield finding.link(entity_id, entity.name, entity.role)
        if name.owner is not None and not resolver.context.is_user(name.owner):
            owned.append(name)
    for name in owned:
        if (owner_id := resolver.owner_of(name)) is not None:
            yield EntityLink(entity_id=owner_id, role="mention", name=name.owner, step="exact")


def _user_link(resolver: NameResolver) -> EntityLink:
    return EntityLink(entity_id=resolver.user().entity_id, role="subject", step="user")


def links_once(links: Iterable[EntityLink]) -> tuple[EntityLink, ...]:
    """Each entity once, in the first of its roles."""
    found: dict[UUID, EntityLink] = {}
    for link in links:
        found.setdefault(link.entity_id, link)
    return tuple(found.values())


def source_ids(event: MemoryEvent, *, is_edit: bool) -> tuple[UUID, ...]:
    """The known facts that an event's new fact is made of; an edit replaces the text of a fact."""
    match event:
        case FactsMerged(targets=parts) | FactPending(action="merge", targets=parts):
            return parts
        case FactCorrected(target=old):
            return (old,)
        case FactReplaced(targets=old_texts) | FactContradicted(targets=old_texts) if is_edit:
            return old_texts
        case _:
            return ()


def sources_of(event: MemoryEvent, known: Mapping[UUID, LinkedFact], *, is_edit: bool) -> list[LinkedFact]:
    """The known facts that an event's new fact is made of, as far as they were looked up."""
    return [known[fact_id] for fact_id in source_ids(event, is_edit=is_edit) if fact_id in known]


def subject_of_sources(fact: ExtractedFact, sources: Iterable[LinkedFact]) -> KnownEntity | None:
    """The entity that is the subject of the first source with the subject of a fact."""
    same = (source for source in sources if source.subject == fact.subject)
    links = ((source.entities[entity_id], role) for source in same for entity_id, role in source.links)
    return next((entity for entity, role in links if role == "subject"), None)


def said_again(fact: ExtractedFact, original: LinkedFact) -> tuple[ExtractedFact, dict[str, frozenset[str]]]:
    """A fact to be said in another scope, with the entities and relations of its `original`; and all names of each.

    Each entity has the words by which the text calls it, and what tells it from others of its name: of "Tom" the
    "my brother Tom" or the "Tom from work" that the scope of the original knows.
    """
    words = f"{fact.text} {original.subject or ''}"
    users = {str(one.entity_id) for one in original.entities.values() if one.keys("user")}
    names: dict[UUID, str] = {}
    known: dict[str, frozenset[str]] = {}
    for entity_id in (
        *(entity_id for entity_id, _ in original.links),
        *(end for one in original.relations for end in (one.subject_id, one.object_id)),
    ):
        entity = original.entities[entity_id]
        said = aliases_in_text(entity, words)
        ties = (*said, *(alias for alias in entity.aliases if alias.key[-36:] in users))
        tie = next((bare_name(alias) for alias in ties if alias.kind == "tie"), None)
        name = next((alias for alias in (*said, *entity.aliases) if alias.kind == "name"), None)
        if entity.keys("user"):
            names[entity_id] = USER
        elif name is not None and (tie is None or " (" in name.key):
            names[entity_id] = name.text
        else:
            names[entity_id] = " ".join(filter(None, (tie, name.text if name else None))) or entity.name
        known[names[entity_id]] = frozenset() if entity.keys("user") else names_of(entity)
    roles = [(entity_id, role) for entity_id, role in original.links if names[entity_id] != USER]
    subject = next((names[entity_id] for entity_id, role in roles if role == "subject"), fact.subject)
    entities = [
        NamedEntity(name=names[entity_id], type=original.entities[entity_id].type, role=role)
        for entity_id, role in roles
    ]
    relations = [
        NamedRelation(
            subject=names[one.subject_id],
            predicate=one.predicate,
            object=names[one.object_id],
            strength=one.strength or "strong",
        )
        for one in original.relations
    ]
    named = {"entities": tuple(entities)[:MAX_ENTITIES], "relations": tuple(relations)[:MAX_RELATIONS]}
    return fact.model_copy(update=named | {"subject": subject}), known


MAX_FACT_RELATIONS: Final = 2 * MAX_RELATIONS
"""How many relations a fact may have from its own statement and its sources."""


@dataclass(slots=True)
class FactLinks:
    """The links and relations that the events of a source add to facts, by the ids of the facts.

    `sources` are the known facts that new facts are made of, and the repeated ones. With `reads_texts`, known names are
    searched in new texts.
    """

    found: TurnEntities
    sources: Mapping[UUID, LinkedFact] = field(default_factory=dict)
    reads_texts: bool = False
    is_edit: bool = False
    links: dict[UUID, tuple[EntityLink, ...]] = field(default_factory=dict)
    relations: dict[UUID, tuple[StoredRelation, ...]] = field(default_factory=dict)
    _bearers: dict[tuple[UUID, UUID], UUID] = field(default_factory=dict)

    def read(self, events: Iterable[MemoryEvent]) -> None:
        """Add what events say; new entities are registered in the resolver."""
        for event in events:
            if (fact_id := event.told_id) is None:
                continue
            sources = sources_of(event, self.sources, is_edit=self.is_edit)
            if event.new_fact is not None:
                links, relations = self._of_new_fact(event, event.new_fact, sources)
            else:
                links, relations = self._of_repetition(event, fact_id)
            types = self.found.resolver.types
            self.links[fact_id] = tuple(
                link.model_copy(update={"type": types[link.entity_id]}) if link.entity_id in types else link
                for link in links_once((*self.links.get(fact_id, ()), *links))[:MAX_LINKS]
            )
            for link in self.links[fact_id]:  # whatever the entity of the name was merged into
                called = self.found.registry.bearer(link.entity_id, link.name)
                named = (source.bearers.get(link.entity_id) for source in sources)
                self._bearers[fact_id, link.entity_id] = called or next(filter(None, named), link.entity_id)
            stated = {one.key: one for one in (*relations, *self.relations.get(fact_id, ()))}
            self.relations[fact_id] = tuple(stated.values())[:MAX_FACT_RELATIONS]

    def each_relation(self) -> Iterator[tuple[UUID, StoredRelation]]:
        return ((fact_id, relation) for fact_id, stated in self.relations.items() for relation in stated)

    def bearer(self, fact_id: UUID, entity_id: UUID) -> UUID:
        """Whom a fact names of those that were merged into an entity."""
        return self._bearers.get((fact_id, entity_id), entity_id)

    def _of_new_fact(
        self, event: MemoryEvent, fact: NewFact, sources: Sequence[LinkedFact]
    ) -> tuple[Sequence[EntityLink], Sequence[StoredRelation]]:
        """The names of the statement, then the entities of the sources that the new text names.

        A merged text that names none of them is about all of them. The user as the subject of a source is left out: the
        new fact has its own subject.
        """
        links = list(self.found.statement_of(event).links[:MAX_LINKS])
        if not links and (subject := subject_of_sources(fact, sources)):
            # an edited text, which nobody has read, has the subject of its source
            links = [_carried(subject, "subject", aliases_in_text(subject, fact.text))]
        links = links or list(self.found.links_of_event(event))
        has_subject = any(link.role == "subject" for link in links)
        of_sources = [
            (entity, "mention" if has_subject and role == "subject" else role, aliases_in_text(entity, fact.text))
            for source in sources
            for entity, role in ((source.entities[entity_id], role) for entity_id, role in source.links)
            if not (role == "subject" and entity.keys("user"))
        ]
        is_merge = isinstance(event, FactsMerged) or (isinstance(event, FactPending) and event.action == "merge")
        kept = [one for one in of_sources if one[2]] or (of_sources if is_merge else [])
        links += [_carried(*one) for one in kept]
        if self.reads_texts:
            taken = [link.name for link in links if link.name]
            links += known_names_in(fact.text, self.found.registry, taken=taken)
        once = links_once(links)
        ended_at = event.end_time or fact.true_from
        return once, [_dated(one, ended_at) for one in self._relations(event, fact, sources, once)]

    def _of_repetition(
        self, event: MemoryEvent, fact_id: UUID
    ) -> tuple[Sequence[EntityLink], Sequence[StoredRelation]]:
        """What a repetition adds to the known fact; nothing where it has another subject.

        A name that may mean an entity of the known fact, but is of a new one, adds nothing.
        """
        known = self.sources.get(fact_id)
        said = [link for link in self.found.statement_of(event).links if link.step != "user"]
        if known is None:
            return (), ()
        subject = next((entity_id for entity_id, role in known.links if role == "subject"), None)
        if subject is not None and any(link.role == "subject" and link.entity_id != subject for link in said):
            return (), ()
        roles = dict(reversed(known.links))
        doubtful = {
            link.entity_id for link in said if link.step == "new" and not roles.keys().isdisjoint(link.compared)
        }
        stated = {one.key for one in known.relations}
        relations = [
            _dated(one, known.true_from)
            for one in self.found.statement_of(event).relations
            if one.key not in stated and not doubtful & {one.subject_id, one.object_id}
        ]
        changed = {entity_id for one in relations for entity_id in (one.subject_id, one.object_id)}
        changed |= {one.entity_id for one in self.found.resolver.added} | self.found.resolver.types.keys()
        links = (link for link in said if link.entity_id in changed or link.entity_id not in roles.keys() | doubtful)
        return [link.model_copy(update={"role": roles.get(link.entity_id, link.role)}) for link in links], relations

    def _relations(
        self, event: MemoryEvent, fact: NewFact, sources: Sequence[LinkedFact], links: Sequence[EntityLink]
    ) -> Iterator[StoredRelation]:
        """The relations of the statement, then those of the sources between entities that the new fact names.

        A new text that denies the old one takes over only relations that are over; one that leaves out the word for a
        tie, or has another one in its place, no such tie.
        """
        yield from self.found.statement_of(event).relations
        linked = {link.entity_id for link in links}
        is_edit = self.is_edit or isinstance(event, FactCorrected)
        for source in sources:
            dropped = ties_told(source.text) - ties_told(fact.text) if is_edit else ()
            for relation in source.relations:
                if relation.predicate in dropped or (relation.ended_at is None and fact.action_hint == "retract"):
                    continue
                ends = (relation.subject_id, relation.object_id)
                if all(one in linked or source.entities[one].keys("user") for one in ends):
                    yield relation


def _carried(entity: KnownEntity, role: Role, aliases: Sequence[Alias]) -> EntityLink:
    """The link of a source to an entity as one of the new fact, whose text has these of its aliases."""
    if entity.keys("user"):
        return EntityLink(entity_id=entity.entity_id, role=role, step="user")
    step: ResolutionStep = "exact"
    if aliases and aliases[0] != entity.aliases[0]:
        step = "tie" if aliases[0].kind == "tie" else "alias"
    name = aliases[0].text if aliases else entity.name
    return EntityLink(entity_id=entity.entity_id, role=role, name=name, step=step)


def _dated(relation: StoredRelation, ended_at: datetime) -> StoredRelation:
    return replace(relation, ended_at=relation.ended_at or ended_at) if relation.strength is None else relation
