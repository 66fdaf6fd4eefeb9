"""Which entities each new fact names, by its own words and by the facts that it is made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
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
    name_head,
)
from mnemolog.schemas.events import FactContradicted, FactCorrected, FactPending, FactReplaced, FactsMerged, MemoryEvent
from mnemolog.schemas.facts import ExtractedFact, NewFact
from mnemolog.schemas.stored import LinkedFact, StoredRelation
from mnemolog.streams.entities.names import SpokenName, key_words, name_key, read_name, words_key
from mnemolog.streams.entities.relations import (
    StatedRelation,
    entities_by_name,
    stated_relations,
    tell_same,
    tie_relation,
)
from mnemolog.streams.entities.resolver import (
    NO_VECTORS,
    EntityRegistry,
    FoundEntity,
    LookupKeys,
    NameContext,
    NameVectors,
    SourceNames,
    answers_by_name,
    find_entity,
    named_entities,
    same_names,
)
from mnemolog.streams.text.tokens import whole_words


def links_of(fact: ExtractedFact, names: SourceNames) -> Iterator[EntityLink]:
    """Whom a fact names, with those whose ties it names: of "Tom's wife" Tom too. Who is new is made known."""
    if names.context.is_user(fact.subject):
        yield user_link(names)
    owned = []
    for entity in named_entities(fact, names.context):
        name = read_name(entity.name)
        if name is None or (found := names.entity_of(name, entity.type)) is None:
            names.leave_out(entity.name, is_name=name is not None)
            continue
        entity_id, finding = found
        yield EntityLink(
            entity_id=entity_id,
            role=entity.role,
            name=entity.name,
            step=finding.step,
            compared=finding.compared_ids,
            compared_by=finding.compared_by,
            reason=finding.reason,
        )
        if name.owner is not None and not names.context.is_user(name.owner):
            owned.append(name)
    for name in owned:
        if (owner_id := names.owner_of(name)) is not None:
            yield EntityLink(entity_id=owner_id, role="mention", name=name.owner, step="exact")


def user_link(names: SourceNames) -> EntityLink:
    return EntityLink(entity_id=names.user().entity_id, role="subject", step="user")


def links_once(links: Iterable[EntityLink]) -> tuple[EntityLink, ...]:
    """Each entity once, in the first of its roles."""
    found: dict[UUID, EntityLink] = {}
    for link in links:
        found.setdefault(link.entity_id, link)
    return tuple(found.values())


def relations_of(fact: ExtractedFact, links: Sequence[EntityLink], names: SourceNames) -> tuple[StatedRelation, ...]:
    """Each once: what the fact says before what its names say in passing."""
    named = entities_by_name(links)

    def id_of(name: str) -> UUID | None:
        return names.user().entity_id if names.context.is_user(name) else named.get(name_key(name))

    found: dict[tuple[UUID, str, UUID], StatedRelation] = {}
    for relation in (*stated_relations(fact, id_of), *_tie_relations(fact, links, names)):
        found.setdefault(relation.key, relation)
    return tuple(found.values())


def _tie_relations(fact: ExtractedFact, links: Sequence[EntityLink], names: SourceNames) -> Iterator[StatedRelation]:
    for link in links:
        name = read_name(link.name or "")
        if name is None or name.tie is None or (owner_id := names.owner_of(name)) is None:
            continue
        if (relation := tie_relation(fact, name.tie, owner_id, link.entity_id)) is not None:
            yield relation


MIN_LETTERS: Final = 3
"""Letters of a name that is looked for: shorter ones are words of many languages ("Al", "Jo", "Mo")."""
MAX_WORDS: Final = 200
"""The first words of a text, by which names are looked up."""
MAX_LOOKED_UP: Final = 2000
"""Beginnings of names, and names, that are looked up for all texts of a source."""
_MAX_NAME_WORDS: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class _TextName:
    """Where a text has a name in it."""

    start: int
    end: int
    name: str

    def overlaps(self, other: "_TextName") -> bool:
        return self.start < other.end and other.start < self.end


def said_aliases(entity: KnownEntity, text: str) -> list[Alias]:
    """The names of an entity that a text has in it, and its ties: of "Tom from work" it is "Tom"."""
    said = words_key(text)
    return [alias for alias in entity.aliases if next(_places(words_of(alias), said), None)]


def known_names_in(
    text: str, registry: EntityRegistry, *, taken: Iterable[str] = ()
) -> Iterator[tuple[str, FoundEntity]]:
    """The names in a text that are certainly those of one entity, with it; the user left out.

    A name within a longer one, or within one of those `taken`, is none.
    """
    said = words_key(text)
    claimed = [place for name in taken for place in _places(name, said)]
    names = {words_of(alias) for entity in registry for alias in entity.aliases if alias.kind == "name"}
    places = {place for name in names if _letters(name) >= MIN_LETTERS for place in _places(name, said)}
    for place in sorted(places, key=lambda one: (one.start - one.end, one)):
        if any(place.overlaps(other) for other in claimed):
            continue
        claimed.append(place)
        found = find_entity(SpokenName(text=place.name, name=place.name), "other", None, registry)
        if found.entity is not None and not found.entity.keys("user"):
            yield place.name, found


def text_keys(texts: Iterable[str]) -> LookupKeys:
    """What finds every entity that `known_names_in` may find in these texts."""
    words = [one[:MAX_WORDS] for text in texts for one in (key_words(text), words_key(text).split())]
    heads = dict.fromkeys(name_head(word) for one in words for word in one if word)
    keys = dict.fromkeys(" ".join(run) for one in words for run in _runs(one))
    return LookupKeys(
        heads=frozenset(islice(heads, MAX_LOOKED_UP)), keys=frozenset(islice(keys, MAX_LOOKED_UP)), ends=frozenset()
    )


def _runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(len(words)):
        yield from (words[start : start + length] for length in range(1, _MAX_NAME_WORDS + 1))


def words_of(alias: Alias) -> str:
    """A name without where its bearer is from, or a tie without the name: of "my wife Ana" it is "my wife"."""
    spoken = read_name(alias.text)
    if spoken is None or spoken.name is None:
        return alias.text
    if alias.kind == "name":
        return spoken.name
    return alias.text.replace(spoken.name, "").strip(" ,") or alias.text


def _places(name: str, said: str) -> Iterator[_TextName]:
    if words := words_key(name):
        yield from (_TextName(start, start + len(words), name) for start in whole_words(words, said))


def _letters(name: str) -> int:
    return sum(map(str.isalpha, name))


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


MAX_CARRIED: Final = 2 * MAX_RELATIONS
"""How many relations a fact may have from its sources and its own statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactNames:
    """The links and relations of facts, by their ids; a relation that is over has the time of its end."""

    links: Mapping[UUID, tuple[EntityLink, ...]] = field(default_factory=dict)
    relations: Mapping[UUID, tuple[StatedRelation, ...]] = field(default_factory=dict)


class _CarriedLink(NamedTuple):
    """A link of a source: the entity, its role there, and the names of it that the new text says."""

    source: LinkedFact
    entity: KnownEntity
    role: Role
    said: Sequence[Alias]


def source_ids(event: MemoryEvent, *, is_edit: bool) -> tuple[UUID, ...]:
    """The known facts that the new fact of an event is made of; an edit gives what it replaces another text."""
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
    """Those of its sources that are known."""
    return [known[fact_id] for fact_id in source_ids(event, is_edit=is_edit) if fact_id in known]


def promoted_names(events: Iterable[MemoryEvent], known: Mapping[UUID, LinkedFact]) -> Iterator[str]:
    """The names of the entities of another scope that promoted facts name."""
    origins = (event.promoted_from.fact_id for event in events if event.promoted_from is not None)
    named = (entity for fact_id in origins if fact_id in known for entity in known[fact_id].entities.values())
    return (alias.text for entity in named for alias in entity.aliases)


def repeated_ids(found: TurnEntities, events: Iterable[MemoryEvent]) -> set[UUID]:
    """The known facts that statements repeat which name anybody but the user."""
    repetitions = ((event.told_id, event) for event in events if event.new_fact is None)
    told = ((fact_id, found.said_by(event)) for fact_id, event in repetitions if fact_id is not None)
    return {fact_id for fact_id, said in told if any(link.step != "user" for link in said)}


def subject_link(fact: NewFact, sources: Iterable[LinkedFact]) -> tuple[LinkedFact, UUID] | None:
    """The source of the same subject, and the entity that this is."""
    links = ((source, *link) for source in sources if source.subject == fact.subject for link in source.links)
    return next(((source, entity_id) for source, entity_id, role in links if role == "subject"), None)


class NameCarrier:
    """Composes the names of new facts. With `reads_texts` known names are looked for in their texts."""

    def __init__(
        self, found: TurnEntities, sources: Mapping[UUID, LinkedFact], *, is_edit: bool = False, reads_texts: bool
    ) -> None:
        self._found = found
        self._sources = sources
        self._is_edit = is_edit
        self._reads_texts = reads_texts
        self._again = FoundAgain(found.names)

    def names_of(self, events: Iterable[MemoryEvent]) -> FactNames:
        """Of each new fact of these events; what is new among them is registered in the entities of the source."""
        links: dict[UUID, tuple[EntityLink, ...]] = {}
        relations: dict[UUID, tuple[StatedRelation, ...]] = {}
        for event in events:
            if event.told_id is None:
                continue
            named, stated = self._new_names(event, event.new_fact) if event.new_fact else self._repeated_names(event)
            told = links_once((*links.get(event.told_id, ()), *named))[:MAX_LINKS]
            links[event.told_id] = tuple(self._found.names.typed(link) for link in told)
            known = {one.key: one for one in relations.get(event.told_id, ())}
            known |= {one.key: one for one in stated if one.key not in known}
            relations[event.told_id] = tuple(known.values())[:MAX_CARRIED]
        return FactNames(links=links, relations=relations)

    def _new_names(self, event: MemoryEvent, fact: NewFact) -> tuple[Sequence[EntityLink], Sequence[StatedRelation]]:
        links = links_once(self._links(event, fact))
        ended_at = event.end_time or fact.true_from
        return links, [_dated(one, ended_at) for one in self._relations(event, fact, links)]

    def _repeated_names(self, event: MemoryEvent) -> tuple[Sequence[EntityLink], Sequence[StatedRelation]]:
        """What a repetition says beyond the known fact, which is about the same: else it says nothing for certain.

        A name that may be one of those whom the fact names says nothing new.
        """
        known = None if event.told_id is None else self._sources.get(event.told_id)
        said = [link for link in self._found.said_by(event) if link.step != "user"]
        if known is None or _is_about_another(said, known):
            return (), ()
        roles = dict(reversed(known.links))
        doubtful = {
            link.entity_id for link in said if link.step == "new" and not roles.keys().isdisjoint(link.compared)
        }
        relations = [
            _dated(one, known.true_from)
            for one in self._found.relations_of(event)
            if not (_has_stated(known, one) or doubtful & {one.subject_id, one.object_id})
        ]
        told_of = {entity_id for one in relations for entity_id in (one.subject_id, one.object_id)}
        told_of |= {one.entity_id for one in self._found.names.added} | self._found.names.types.keys()
        links = (link for link in said if link.entity_id in told_of or link.entity_id not in roles.keys() | doubtful)
        return [link.model_copy(update={"role": roles.get(link.entity_id, link.role)}) for link in links], relations

    def _links(self, event: MemoryEvent, fact: NewFact) -> list[EntityLink]:
        sources = self._sources_of(event)
        links = list(self._own_links(event, fact, sources))
        has_subject = any(link.role == "subject" for link in links)
        for carried in self._carried(event, fact, sources):
            role: Role = "mention" if has_subject and carried.role == "subject" else carried.role
            links += self._link(event, fact, carried._replace(role=role))
        if self._reads_texts:
            links += self._known_names(fact, [link.name for link in links if link.name])
        return links

    def _own_links(self, event: MemoryEvent, fact: NewFact, sources: Sequence[LinkedFact]) -> Iterable[EntityLink]:
        """What was named when it was said; of a text that none has read whom it is about, as its source was."""
        about = None if self._found.statements_of(event) else subject_link(fact, sources)
        if about is None:
            return self._found.links_of(event)
        source, entity_id = about
        entity = source.entities[entity_id]
        return self._link(event, fact, _CarriedLink(source, entity, "subject", said_aliases(entity, fact.text)))

    def _carried(self, event: MemoryEvent, fact: NewFact, sources: Sequence[LinkedFact]) -> Sequence[_CarriedLink]:
        """The links of the sources that the text still says. A promoted text is the same, and names the same.

        A merged text that says none of them is about all of them.
        """
        linked = [(source, source.entities[entity_id], role) for source in sources for entity_id, role in source.links]
        links = [_CarriedLink(*link, said_aliases(link[1], fact.text)) for link in linked if not _is_user(*link[1:])]
        if event.promoted_from is not None and not _is_merge(event):
            return links
        said = [link for link in links if link.said]
        return said or (links if _is_merge(event) else ())

    def _link(self, event: MemoryEvent, fact: NewFact, link: _CarriedLink) -> Iterator[EntityLink]:
        entity_id = self._id_here(event, fact, link.source, link.entity)
        if entity_id is None:
            return
        if link.entity.keys("user"):
            yield EntityLink(entity_id=entity_id, role=link.role, step="user")
            return
        name = link.said[0].text if link.said else link.entity.name
        new = self._found.new.get(entity_id)
        compared = new[1].compared_ids if new else ()
        step = "new" if new else _step(link)
        yield EntityLink(entity_id=entity_id, role=link.role, name=name, step=step, compared=compared)

    def _known_names(self, fact: NewFact, taken: Sequence[str]) -> Iterator[EntityLink]:
        for name, found in known_names_in(fact.text, self._found.registry, taken=taken):
            if found.entity is not None:
                yield EntityLink(
                    entity_id=found.entity.entity_id,
                    role="mention",
                    name=name,
                    step=found.step,
                    compared=found.compared_ids,
                )

    def _relations(self, event: MemoryEvent, fact: NewFact, links: Sequence[EntityLink]) -> Iterator[StatedRelation]:
        """A new text that denies what the old one said carries over no more that it is so.

        Two of another scope may be one here, and are nothing to each other.
        """
        yield from self._found.relations_of(event)
        named = {link.entity_id for link in links}
        is_denial = fact.action_hint == "retract" and event.promoted_from is None
        for source in self._sources_of(event):
            for relation in source.relations:
                if relation.ended_at is None and is_denial:
                    continue
                ends = [source.entities[entity_id] for entity_id in (relation.subject_id, relation.object_id)]
                here = [self._id_here(event, fact, source, end) for end in ends]
                is_named = all(one in named or end.keys("user") for one, end in zip(here, ends, strict=True))
                if is_named and len(set(here)) == len(here):
                    yield _stated(relation, *filter(None, here))

    def _sources_of(self, event: MemoryEvent) -> list[LinkedFact]:
        return sources_of(event, self._sources, is_edit=self._is_edit)

    def _id_here(self, event: MemoryEvent, fact: NewFact, source: LinkedFact, entity: KnownEntity) -> UUID | None:
        """The entity of a source in the scope of the new fact: only a promoted one is of another scope."""
        if event.promoted_from is None or source.fact_id != event.promoted_from.fact_id:
            return entity.entity_id
        return self._again.find(entity, f"{fact.text} {source.subject or ''}", source.entities)


def _is_about_another(said: Iterable[EntityLink], known: LinkedFact) -> bool:
    subject = next((entity_id for entity_id, role in known.links if role == "subject"), None)
    return subject is not None and any(link.role == "subject" and link.entity_id != subject for link in said)


def _has_stated(known: LinkedFact, relation: StatedRelation) -> bool:
    return any((one.subject_id, one.predicate, one.object_id) == relation.key for one in known.relations)


def _dated(relation: StatedRelation, ended_at: datetime) -> StatedRelation:
    if not relation.is_over:
        return relation
    return replace(relation, ended_at=relation.ended_at or ended_at)


def _is_merge(event: MemoryEvent) -> bool:
    return isinstance(event, FactsMerged) or (isinstance(event, FactPending) and event.action == "merge")


def _is_user(entity: KnownEntity, role: Role) -> bool:
    """Whether it is the user as the subject: of whom a fact is, its own subject tells."""
    return role == "subject" and bool(entity.keys("user"))


def _step(link: _CarriedLink) -> ResolutionStep:
    if not link.said or link.said[0] == link.entity.aliases[0]:
        return "exact"
    return "tie" if link.said[0].kind == "tie" else "alias"


def _stated(relation: StoredRelation, subject_id: UUID, object_id: UUID) -> StatedRelation:
    return StatedRelation(
        subject_id=subject_id,
        predicate=Predicate(name=relation.predicate, inverse=relation.inverse),
        object_id=object_id,
        strength=relation.strength or "strong",
        is_over=relation.ended_at is not None,
        ended_at=relation.ended_at,
    )
