"""The entities that each new fact names: by the names in its statement, and by the facts that it is made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from mnemolog.schemas.entities import (
    MAX_LINKS,
    MAX_RELATIONS,
    Alias,
    AnsweredName,
    EntityLink,
    KnownEntity,
    Predicate,
    ResolutionStep,
    Role,
)
from mnemolog.schemas.events import FactContradicted, FactCorrected, FactPending, FactReplaced, FactsMerged, MemoryEvent
from mnemolog.schemas.facts import ExtractedFact, NewFact
from mnemolog.schemas.stored import LinkedFact
from mnemolog.streams.entities.known_names import aliases_in_text, bare_name, known_names_in
from mnemolog.streams.entities.names import SpokenName, name_key, read_name, ties_told
from mnemolog.streams.entities.relations import StatedRelation, apply_same_as, relations_of
from mnemolog.streams.entities.resolver import (
    NO_VECTORS,
    AskedName,
    EntityRegistry,
    FoundEntity,
    NameContext,
    NameResolver,
    NameVectors,
    answers_by_name,
    find_entity,
    named_entities,
    same_as_pairs,
)


class _Statement(NamedTuple):
    """What distinguishes the statements of a source; equal in a fact and in the events about it."""

    text: str
    excerpt: str
    subject: str | None


@dataclass(slots=True)
class TurnEntities:
    """The entities and relations in the facts of one source; `resolver` has what their names added."""

    facts: tuple[ExtractedFact, ...]
    known: tuple[KnownEntity, ...]
    vectors: NameVectors
    resolver: NameResolver
    promoted: "PromotedEntities" = field(init=False)
    _links: dict[_Statement, tuple[EntityLink, ...]] = field(default_factory=dict)
    _promoted_subjects: dict[_Statement, UUID] = field(default_factory=dict)
    _relations: dict[_Statement, tuple[StatedRelation, ...]] = field(default_factory=dict)

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
        found = cls(tuple(facts), known, vectors, resolver)
        for fact in found.facts:
            for pair in same_as_pairs(fact):
                apply_same_as(resolver, fact, pair)
        for fact in found.facts:
            resolver.unlinked += fact.unlinked
            links, statement = tuple(_links_of(fact, resolver)), _statement(fact)
            relations = (*found._relations.get(statement, ()), *relations_of(fact, links, resolver))
            # Facts of equal words are one statement, which names what each of them names.
            found._relations[statement] = tuple({relation.key: relation for relation in relations}.values())
            found._links[statement] = links_once((*found._links.get(statement, ()), *links))
        return found

    def __post_init__(self) -> None:
        self.promoted = PromotedEntities(self.resolver)

    def add_promoted(self, fact: ExtractedFact, original: LinkedFact) -> None:
        """The subject of a promoted fact is that of its original, found in this scope by all of its names."""
        link = subject_link(fact, [original])
        if link is not None:
            text = f"{fact.text} {original.subject or ''}"
            entity_id = self.promoted.id_here(original.entities[link[1]], text, original.entities)
            if entity_id is not None:
                self._promoted_subjects[_statement(fact)] = entity_id

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
        return (link for links in self._links.values() for link in links)

    def answered(self, answers: Sequence[AnsweredName]) -> "TurnEntities":
        """The entities of the same facts, with a model's choices for doubtful names. A choice proposes no merge."""
        if not answers_by_name(answers):
            return self
        found = TurnEntities.of_facts(self.facts, self.known, self.resolver.context, self.vectors, answers)
        found.resolver.proposed = {
            pair: merge
            for pair, merge in found.resolver.proposed.items()
            if merge.is_stated or pair in self.resolver.proposed
        }
        return found

    def entities_in(self, fact: ExtractedFact) -> set[UUID]:
        """The entities that a fact of the source names."""
        return {link.entity_id for link in self._links.get(_statement(fact), ())}

    def subject_of(self, fact: ExtractedFact) -> UUID | None:
        """The entity that is the subject of a fact of the source."""
        statement = _statement(fact)
        links = self._links.get(statement, ())
        return next(
            (link.entity_id for link in links if link.role == "subject"), self._promoted_subjects.get(statement)
        )

    def links_of_event(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """The links of an event's new fact; only its subject where the fact repeats an older statement."""
        words, fact = event.words, event.new_fact
        if fact is None or words is None:
            return ()
        if links := self.links_of_statement(event):
            return links[:MAX_LINKS]
        if self.resolver.context.is_user(fact.subject):
            return (_user_link(self.resolver),)
        called = self.registry.of_name(name_key(fact.subject or ""))
        if len(called) != 1:
            return ()
        return (EntityLink(entity_id=called[0].entity_id, role="subject", name=fact.subject, step="exact"),)

    def subject_of_event(self, event: MemoryEvent) -> KnownEntity | None:
        """The entity that is the subject of an event's new fact."""
        promoted = self._promoted_subjects.get(_statement(event.new_fact)) if event.new_fact else None
        if promoted is not None:
            return self.registry[promoted]
        links = self.links_of_event(event)
        return next((self.registry[link.entity_id] for link in links if link.role == "subject"), None)

    def links_of_statement(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """The links of the statement of this source that an event is about, whether or not it made a new fact."""
        return links_once(link for statement in self.statements_of(event) for link in self._links[statement])

    def relations_of_statement(self, event: MemoryEvent) -> tuple[StatedRelation, ...]:
        stated = (relation for statement in self.statements_of(event) for relation in self._relations[statement])
        return tuple({relation.key: relation for relation in stated}.values())

    def statements_of(self, event: MemoryEvent) -> Sequence[_Statement]:
        """The statements of the source with an event's words; only those with its subject, where there are any."""
        words, fact = event.words, event.new_fact
        if words is None:
            return ()
        same = [statement for statement in self._links if statement[:2] == (words.text, words.excerpt)]
        return [statement for statement in same if fact is not None and statement.subject == fact.subject] or same


def _statement(fact: ExtractedFact) -> _Statement:
    return _Statement(fact.text, fact.excerpt, fact.subject)


def _links_of(fact: ExtractedFact, resolver: NameResolver) -> Iterator[EntityLink]:
    """The entities that a fact names, then the owners in its names ("Tom's wife"). New entities are registered."""
    if resolver.context.is_user(fact.subject):
        yield _user_link(resolver)
    owned = []
    for entity in named_entities(fact, resolver.context):
        name = read_name(entity.name)
        if name is None or (found := resolver.entity_of(name, entity.type)) is None:
            resolver.report_unresolved(entity.name, is_name=name is not None and not name.is_bare)
            continue
        entity_id, finding = found
        yield EntityLink(
            entity_id=entity_id,
            role=entity.role,
            name=entity.name,
            step=finding.step,
            compared=finding.compared_ids,
            reason=finding.reason,
        )
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
    promoted = () if event.promoted_from is None else (event.promoted_from.fact_id,)
    match event:
        case FactsMerged(targets=parts) | FactPending(action="merge", targets=parts):
            return (*promoted, *parts)
        case FactCorrected(target=old):
            return (old,)
        case FactReplaced(targets=old_texts) | FactContradicted(targets=old_texts) if is_edit:
            return old_texts
        case _:
            return promoted if event.new_fact else ()


def sources_of(event: MemoryEvent, known: Mapping[UUID, LinkedFact], *, is_edit: bool) -> list[LinkedFact]:
    """The known facts that an event's new fact is made of, as far as they were looked up."""
    return [known[fact_id] for fact_id in source_ids(event, is_edit=is_edit) if fact_id in known]


def repeated_fact_ids(found: TurnEntities, events: Iterable[MemoryEvent]) -> set[UUID]:
    """The known facts that are repeated by statements that name an entity other than the user."""
    return {
        event.told_id
        for event in events
        if event.new_fact is None
        and event.told_id is not None
        and any(link.step != "user" for link in found.links_of_statement(event))
    }


def subject_link(fact: ExtractedFact, sources: Iterable[LinkedFact]) -> tuple[LinkedFact, UUID] | None:
    """The first source with the subject of a fact, and the entity that this subject is."""
    links = ((source, *link) for source in sources if source.subject == fact.subject for link in source.links)
    return next(((source, entity_id) for source, entity_id, role in links if role == "subject"), None)


@dataclass(slots=True)
class PromotedEntities:
    """Finds the entities of promoted facts, which are of another scope, in the scope of the source."""

    resolver: NameResolver
    _ids: dict[UUID, UUID | None] = field(default_factory=dict)

    def id_here(self, entity: KnownEntity, text: str, others: Mapping[UUID, KnownEntity]) -> UUID | None:
        """The entity's id in this scope, registered where it is new, by the aliases that occur in `text`.

        `others` has the owners of its ties. An entity without an alias in the text gets all of its aliases. None where
        the source adds too many entities.
        """
        if entity.keys("user"):
            return self.resolver.user().entity_id
        known = self._ids.setdefault(entity.entity_id, None)  # a tie may lead back to it
        keys = {alias: key for alias in entity.aliases if (key := self._key_here(alias, text, others))}
        called = next((read_name(alias.text) for alias in keys if alias.kind == "name"), None)
        tie_key = next((key for alias, key in keys.items() if alias.kind == "tie"), None)
        asked = AskedName(called or SpokenName(text=entity.name), entity.type, tie_key)
        registry = self.resolver.registry
        finding = FoundEntity(entity=registry[known]) if known else find_entity(asked, registry)
        used = [alias for alias in aliases_in_text(entity, text) if alias in keys] or list(keys)
        aliases = [Alias(text=bare_name(one), kind="tie", key=keys[one]) if one.kind == "tie" else one for one in used]
        name = (read_name(aliases[0].text) if aliases else None) or SpokenName(text=entity.name)
        if finding.entity is not None:
            used_tie = next((alias.key for alias in aliases if alias.kind == "tie"), None)
            self.resolver.propose_tie_merge(name, used_tie, finding.entity)
        entity_id = self.resolver.record_aliases(finding, name.name or name.text, entity.type, aliases)
        self._ids[entity.entity_id] = entity_id
        return entity_id

    def _key_here(self, alias: Alias, text: str, others: Mapping[UUID, KnownEntity]) -> str | None:
        """The key of an alias in this scope: that of a tie ends with the id of its owner here; None without one."""
        if alias.kind == "name":
            return alias.key
        tie, _, owner_id = alias.key.rpartition(" ")
        owner = others.get(UUID(owner_id))
        if owner is None:
            return None
        is_looked_up = owner.entity_id in self._ids
        id_here = self._ids[owner.entity_id] if is_looked_up else self.id_here(owner, text, others)
        return f"{tie} {id_here}" if id_here else None


MAX_FACT_RELATIONS: Final = 2 * MAX_RELATIONS
"""How many relations a fact may have from its own statement and its sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLinks:
    """The links and relations of facts, by the ids of the facts; a relation that is over has its end time.

    Per fact and entity into which others were merged, `bearers` has the one of these that the fact names.
    """

    links: Mapping[UUID, tuple[EntityLink, ...]] = field(default_factory=dict)
    relations: Mapping[UUID, tuple[StatedRelation, ...]] = field(default_factory=dict)
    bearers: Mapping[tuple[UUID, UUID], UUID] = field(default_factory=dict)

    def each_relation(self) -> Iterator[tuple[UUID, StatedRelation]]:
        return ((fact_id, relation) for fact_id, stated in self.relations.items() for relation in stated)


class _SourceLink(NamedTuple):
    """A link of a source fact: the entity, its role there, and those of its aliases that the new text has."""

    source: LinkedFact
    entity: KnownEntity
    role: Role
    aliases: Sequence[Alias]


class FactLinksBuilder:
    """Builds the links of the facts in events. With `reads_texts`, known names are searched in new texts.

    `sources` are the known facts that new facts are made of, and the repeated ones.
    """

    def __init__(
        self, found: TurnEntities, sources: Mapping[UUID, LinkedFact], *, reads_texts: bool, is_edit: bool = False
    ) -> None:
        self._found = found
        self._sources = sources
        self._reads_texts = reads_texts
        self._is_edit = is_edit

    def build(self, events: Iterable[MemoryEvent]) -> FactLinks:
        """The links and relations that these events add to facts; new entities are registered in the resolver."""
        all_links: dict[UUID, tuple[EntityLink, ...]] = {}
        all_relations: dict[UUID, tuple[StatedRelation, ...]] = {}
        bearers: dict[tuple[UUID, UUID], UUID] = {}
        types = self._found.resolver.types
        for event in events:
            if (fact_id := event.told_id) is None:
                continue
            if event.new_fact is not None:
                links, relations = self._of_new_fact(event, event.new_fact)
            else:
                links, relations = self._of_repetition(event, fact_id)
            all_links[fact_id] = tuple(
                link.model_copy(update={"type": types[link.entity_id]}) if link.entity_id in types else link
                for link in links_once((*all_links.get(fact_id, ()), *links))[:MAX_LINKS]
            )
            bearers |= {(fact_id, link.entity_id): self._bearer(event, link) for link in all_links[fact_id]}
            found = {one.key: one for one in all_relations.get(fact_id, ())}
            found |= {one.key: one for one in relations if one.key not in found}
            all_relations[fact_id] = tuple(found.values())[:MAX_FACT_RELATIONS]
        return FactLinks(links=all_links, relations=all_relations, bearers=bearers)

    def _bearer(self, event: MemoryEvent, link: EntityLink) -> UUID:
        """The entity that the name of a link is of, whatever it was merged into; else the one that a source names."""
        sources = (source.bearers.get(link.entity_id) for source in self._sources_of(event))
        called = self._found.registry.bearer(link.entity_id, link.name)
        return called or next(filter(None, sources), link.entity_id)

    def _of_new_fact(self, event: MemoryEvent, fact: NewFact) -> tuple[Sequence[EntityLink], Sequence[StatedRelation]]:
        sources = self._sources_of(event)
        subject = None if self._found.statements_of(event) else subject_link(fact, sources)
        if subject is None:
            links = list(self._found.links_of_event(event))
        else:  # an edited text, which nobody has read, has the subject of its source
            source, entity_id = subject
            entity = source.entities[entity_id]
            own = _SourceLink(source, entity, "subject", aliases_in_text(entity, fact.text))
            links = list(self._link_here(event, fact, own))
        has_subject = any(link.role == "subject" for link in links)
        for link in self._source_links(event, fact, sources):
            role: Role = "mention" if has_subject and link.role == "subject" else link.role
            links += self._link_here(event, fact, link._replace(role=role))
        if self._reads_texts:
            taken = [link.name for link in links if link.name]
            for name, known in known_names_in(fact.text, self._found.registry, taken=taken):
                if known.entity is not None:
                    found = known.entity.entity_id
                    compared = known.compared_ids
                    links.append(
                        EntityLink(entity_id=found, role="mention", name=name, step=known.step, compared=compared)
                    )
        once = links_once(links)
        ended_at = event.end_time or fact.true_from
        return once, [_dated(one, ended_at) for one in self._relations(event, fact, once)]

    def _of_repetition(
        self, event: MemoryEvent, fact_id: UUID
    ) -> tuple[Sequence[EntityLink], Sequence[StatedRelation]]:
        """What a repetition adds to the known fact; nothing where it has another subject.

        A name that may mean an entity of the known fact, but is of a new one, adds nothing.
        """
        known = self._sources.get(fact_id)
        said = [link for link in self._found.links_of_statement(event) if link.step != "user"]
        if known is None:
            return (), ()
        subject = next((entity_id for entity_id, role in known.links if role == "subject"), None)
        if subject is not None and any(link.role == "subject" and link.entity_id != subject for link in said):
            return (), ()
        roles = dict(reversed(known.links))
        doubtful = {
            link.entity_id for link in said if link.step == "new" and not roles.keys().isdisjoint(link.compared)
        }
        stated = {(one.subject_id, one.predicate, one.object_id) for one in known.relations}
        relations = [
            _dated(one, known.true_from)
            for one in self._found.relations_of_statement(event)
            if one.key not in stated and not doubtful & {one.subject_id, one.object_id}
        ]
        changed = {entity_id for one in relations for entity_id in (one.subject_id, one.object_id)}
        changed |= {one.entity_id for one in self._found.resolver.added} | self._found.resolver.types.keys()
        links = (link for link in said if link.entity_id in changed or link.entity_id not in roles.keys() | doubtful)
        return [link.model_copy(update={"role": roles.get(link.entity_id, link.role)}) for link in links], relations

    def _source_links(self, event: MemoryEvent, fact: NewFact, sources: Sequence[LinkedFact]) -> Sequence[_SourceLink]:
        """The links of the sources to entities that the new text names.

        A promoted fact has the text of its source, and names the same entities; a merged text that names none of them
        is about all of them. The user as the subject of a source is left out: the new fact has its own subject.
        """
        links = [
            _SourceLink(source, entity, role, aliases_in_text(entity, fact.text))
            for source in sources
            for entity, role in ((source.entities[entity_id], role) for entity_id, role in source.links)
            if not (role == "subject" and entity.keys("user"))
        ]
        is_merge = isinstance(event, FactsMerged) or (isinstance(event, FactPending) and event.action == "merge")
        if event.promoted_from is not None and not is_merge:
            return links
        return [link for link in links if link.aliases] or (links if is_merge else ())

    def _link_here(self, event: MemoryEvent, fact: NewFact, link: _SourceLink) -> Iterator[EntityLink]:
        """A source's link as one of the new fact; none where the source adds too many entities."""
        entity_id = self._id_here(event, fact, link.source, link.entity)
        if entity_id is None:
            return
        if link.entity.keys("user"):
            yield EntityLink(entity_id=entity_id, role=link.role, step="user")
            return
        alias = link.aliases[0] if link.aliases else None
        step: ResolutionStep
        compared: tuple[UUID, ...] = ()
        if (new := self._found.new.get(entity_id)) is not None:
            step, compared = "new", new[1].compared_ids
        elif alias is None or alias == link.entity.aliases[0]:
            step = "exact"
        else:
            step = "tie" if alias.kind == "tie" else "alias"
        name = alias.text if alias else link.entity.name
        yield EntityLink(entity_id=entity_id, role=link.role, name=name, step=step, compared=compared)

    def _relations(self, event: MemoryEvent, fact: NewFact, links: Sequence[EntityLink]) -> Iterator[StatedRelation]:
        """The relations of the statement, then those of the sources between entities that the new fact names.

        A new text that denies the old one takes over only relations that are over; one that leaves out the word for a
        tie, or has another one in its place, no such tie. Two entities of a promoted fact may be one entity here, which
        has no relation to itself.
        """
        yield from self._found.relations_of_statement(event)
        linked = {link.entity_id for link in links}
        is_denial = fact.action_hint == "retract" and event.promoted_from is None
        is_edit = self._is_edit or isinstance(event, FactCorrected)
        for source in self._sources_of(event):
            for relation in source.relations:
                if relation.ended_at is None and is_denial:
                    continue
                if is_edit and relation.predicate in ties_told(source.text) - ties_told(fact.text):
                    continue
                ends = [source.entities[entity_id] for entity_id in (relation.subject_id, relation.object_id)]
                subject_id, object_id = (self._id_here(event, fact, source, end) for end in ends)
                if subject_id is None or object_id is None or subject_id == object_id:
                    continue
                if all(
                    entity_id in linked or end.keys("user")
                    for entity_id, end in zip((subject_id, object_id), ends, strict=True)
                ):
                    yield StatedRelation(
                        subject_id=subject_id,
                        predicate=Predicate(name=relation.predicate, inverse=relation.inverse),
                        object_id=object_id,
                        strength=relation.strength or "strong",
                        is_over=relation.ended_at is not None,
                        ended_at=relation.ended_at,
                    )

    def _sources_of(self, event: MemoryEvent) -> list[LinkedFact]:
        return sources_of(event, self._sources, is_edit=self._is_edit)

    def _id_here(self, event: MemoryEvent, fact: NewFact, source: LinkedFact, entity: KnownEntity) -> UUID | None:
        """The id of a source's entity in the scope of the new fact: only a promoted fact is of another scope."""
        if event.promoted_from is None or source.fact_id != event.promoted_from.fact_id:
            return entity.entity_id
        return self._found.promoted.id_here(entity, f"{fact.text} {source.subject or ''}", source.entities)


def _dated(relation: StatedRelation, ended_at: datetime) -> StatedRelation:
    """A relation that is over with its end time."""
    return replace(relation, ended_at=relation.ended_at or ended_at) if relation.is_over else relation
