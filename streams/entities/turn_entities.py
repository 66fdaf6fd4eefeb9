"""Finds the entities that the facts of one source name: of a turn, or of a command."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.entities.model import (
    MAX_LINKS,
    MAX_NAME,
    Alias,
    AnsweredName,
    EntityLink,
    EntityType,
    KnownEntity,
    UnlinkedName,
)
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.vector import Vector
from mnemolog.streams.entities.alias.same_names import tell_other_name, tell_same
from mnemolog.streams.entities.doubtful.name_answers import NameAnswers, answers_by_name, find_by_answer
from mnemolog.streams.entities.entity_registry import EntityRegistry, key_with_origin, names_of
from mnemolog.streams.entities.found_entities import EntityAlias, FoundEntity, ProposedMerge, find_entity
from mnemolog.streams.entities.name_context import NameContext, named_entities, same_names
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.similar.name_vectors import NO_VECTORS, NameVectors
from mnemolog.streams.entities.spoken_names import TIE_TYPES, SpokenName, read_name
from mnemolog.streams.entities.stated_relations import (
    StatedRelation,
    entities_by_name,
    stated_relations,
    tie_relation,
)
from mnemolog.streams.text.subjects import USER

MAX_NEW_ENTITIES: Final = 100
"""How many entities one source may bring; what it names beyond them is not linked."""
MAX_USER_NAMES: Final = 5


class _FactWords(NamedTuple):
    """What tells the facts of a source apart, in their events too."""

    text: str
    excerpt: str
    subject: str | None


@dataclass(slots=True)
class TurnEntities:
    """The entities of one source. What one name brings is known to the next; `new` and `added` are in that order.

    `doubtful` are the names of those of the `new` ones that have possible twins.
    """

    context: NameContext
    facts: tuple[ExtractedFact, ...]
    known: tuple[KnownEntity, ...]
    vectors: NameVectors
    registry: EntityRegistry
    answers: NameAnswers
    new: dict[UUID, tuple[KnownEntity, FoundEntity]] = field(default_factory=dict)
    added: list[EntityAlias] = field(default_factory=list)
    proposed: dict[tuple[UUID, UUID], ProposedMerge] = field(default_factory=dict)
    unlinked: list[UnlinkedName] = field(default_factory=list)
    doubtful: dict[UUID, SpokenName] = field(default_factory=dict)
    types: dict[UUID, EntityType] = field(default_factory=dict)
    """What the source tells of known entities of which nobody had told it."""
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
        found = cls(context, tuple(facts), known, vectors, EntityRegistry(known, vectors), answers_by_name(answers))
        for fact in found.facts:
            for pair in same_names(fact):
                tell_same(found, fact, pair)
        for fact in found.facts:
            found.unlinked += fact.unlinked
            links, said = list(found._each_link(fact)), _words(fact)
            related = {relation.key: relation for relation in found._relations.get(said, ())}
            related |= {relation.key: relation for relation in found._find_relations(fact, links)}
            found._relations[said] = tuple(related.values())
            found._links[said] = links_once((*found._links.get(said, ()), *links))
        return found

    def links_of(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """What the new fact of an event names; an older statement of which it is made names its subject alone."""
        words, fact = event.words, event.new_fact
        if fact is None or words is None:
            return ()
        if said := self.said_by(event):
            return said[:MAX_LINKS]
        if self.context.is_user(fact.subject):
            return (self._user_link(),)
        called = self.registry.of_name(name_key(fact.subject or ""))
        if len(called) != 1:
            return ()
        return (EntityLink(entity_id=called[0].entity_id, role="subject", name=fact.subject, step="exact"),)

    @property
    def links(self) -> Iterator[EntityLink]:
        """What all facts of the source name, whether or not they become new facts."""
        return (link for links in self._links.values() for link in links)

    def answered(self, answers: Sequence[AnsweredName]) -> "TurnEntities":
        """The entities of the same facts, with what a model says of doubtful names. That alone proposes no merge."""
        if not answers_by_name(answers):
            return self
        found = TurnEntities.of_facts(self.facts, self.known, self.context, self.vectors, answers)
        found.proposed = {
            pair: merge for pair, merge in found.proposed.items() if merge.is_told or pair in self.proposed
        }
        return found

    def named_in(self, fact: ExtractedFact) -> set[UUID]:
        """The entities that a fact of the source names."""
        return {link.entity_id for link in self._links.get(_words(fact), ())}

    def said_by(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """What the statement of an event names."""
        return links_once(link for said in self.statements_of(event) for link in self._links[said])

    def subject_of(self, fact: ExtractedFact) -> UUID | None:
        """The entity that a fact of the source is about."""
        links = self._links.get(_words(fact), ())
        return next((link.entity_id for link in links if link.role == "subject"), None)

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

    def _find_relations(self, fact: ExtractedFact, links: Sequence[EntityLink]) -> Iterator[StatedRelation]:
        """Each once: what the fact says before what its names say in passing."""
        named = entities_by_name(links)

        def id_of(name: str) -> UUID | None:
            return self.user().entity_id if self.context.is_user(name) else named.get(name_key(name))

        found: dict[tuple[UUID, str, UUID], StatedRelation] = {}
        for relation in (*stated_relations(fact, id_of), *self._tie_relations(fact, links)):
            found.setdefault(relation.key, relation)
        yield from found.values()

    def _tie_relations(self, fact: ExtractedFact, links: Sequence[EntityLink]) -> Iterator[StatedRelation]:
        for link in links:
            name = read_name(link.name or "")
            if name is None or name.tie is None or (owner_id := self._owner_of(name)) is None:
                continue
            if (relation := tie_relation(fact, name.tie, owner_id, link.entity_id)) is not None:
                yield relation

    def _each_link(self, fact: ExtractedFact) -> Iterator[EntityLink]:
        if self.context.is_user(fact.subject):
            yield self._user_link()
        owners = []
        for entity in named_entities(fact, self.context):
            name = read_name(entity.name)
            if name is None or (found := self._find(name, entity.type)) is None:
                self.leave_out(entity.name, is_name=name is not None)
                continue
            entity_id, finding = found
            yield EntityLink(
                entity_id=entity_id,
                role=entity.role,
                name=entity.name,
                step=finding.step,
                compared=tuple(one.entity_id for one in finding.compared),
                compared_by=finding.compared_by,
                reason=finding.reason,
            )
            if name.owner is not None and not self.context.is_user(name.owner):
                owners.append(name)
        for name in owners:
            if (owner_id := self._owner_of(name)) is not None:
                yield EntityLink(entity_id=owner_id, role="mention", name=name.owner, step="exact")

    def leave_out(self, name: str, *, is_name: bool) -> None:
        """Tell of a name that it names nobody, or, if it is a name, that the source has too many."""
        is_beyond = is_name and len(self.new) >= MAX_NEW_ENTITIES
        self.unlinked.append(UnlinkedName(name=name, reason="too_many" if is_beyond else "no_name"))

    def _find(self, name: SpokenName, kind: EntityType) -> tuple[UUID, FoundEntity] | None:
        """The entity of a name, made known where it is new; None where the source brings too many."""
        kind, tie_key, finding = self.find(name, kind)
        entity_id = self.take_name(name, kind, tie_key, finding)
        return None if entity_id is None else (entity_id, finding)

    def find(self, name: SpokenName, kind: EntityType) -> tuple[EntityType, str | None, FoundEntity]:
        """What a name means: its type, the key of the tie in it together with whose it is, and the entity."""
        kind = TIE_TYPES[name.tie] if name.tie else kind
        owner_id = self._owner_of(name) if name.tie is not None else None
        tie_key = f"{name.tie} of {owner_id}" if owner_id else None
        finding = find_entity(name, kind, tie_key, self.registry)
        return kind, tie_key, find_by_answer(name, finding, self.answers, self.registry)

    def take_name(self, name: SpokenName, kind: EntityType, tie_key: str | None, finding: FoundEntity) -> UUID | None:
        """The entity that was found, which has the name from now on, or a new one.

        None where the source brings too many.
        """
        if finding.entity is not None:
            self.propose_merge(name, tie_key, finding.entity)
        aliases = [*_aliases_of(name, tie_key, self.registry.vector_of(name, kind))]
        entity_id = self.take(finding, name.name or name.text, kind, aliases)
        if entity_id is None:
            return None
        if finding.entity is None and finding.compared and not (name.is_another or name.is_new):
            self.doubtful[entity_id] = name
        tell_other_name(self, entity_id, name, finding)
        return entity_id

    def take(self, finding: FoundEntity, name: str, kind: EntityType, aliases: Sequence[Alias]) -> UUID | None:
        """The entity that was found, called by these aliases from now on; a new one where none was.

        None where the source brings too many.
        """
        if finding.entity is not None:
            self._tell_type(finding.entity.entity_id, kind)
            for alias in aliases:
                self.add_alias(finding.entity.entity_id, alias, finding)
            return finding.entity.entity_id
        if len(self.new) >= MAX_NEW_ENTITIES or not aliases:
            return None
        return self._register(name, kind, aliases, finding)

    def typed(self, link: EntityLink) -> EntityLink:
        """A link with what the source tells of the type of its entity."""
        kind = self.types.get(link.entity_id)
        return link if kind is None else link.model_copy(update={"type": kind})

    def tell_taken(self, name: str, holders: Sequence[KnownEntity]) -> None:
        """A name that would move: that is for a person to decide."""
        known = next((one.entity_id for one in holders if one.entity_id not in self.new), None)
        self.unlinked.append(UnlinkedName(name=name, reason="name_taken", entity_id=known))

    def tell_doubt(self, name: str, finding: FoundEntity) -> None:
        """A name that is given to one of several: that is for a person to decide, unless a model knows which."""
        if finding.entity is None:
            known = tuple(one.entity_id for one in finding.compared if one.entity_id not in self.new)
            self.unlinked.append(UnlinkedName(name=name, reason="in_doubt", compared=known))

    def propose_told(self, one_id: UUID, other_id: UUID, words: str) -> None:
        """Propose to merge two that are known apart, whom these words say to be one. The user is merged into nobody."""
        into, merged = self.registry[one_id], self.registry[other_id]
        if merged.keys("user"):
            into, merged = merged, into
        if (into.entity_id, merged.entity_id) not in self.proposed:
            self.proposed[merged.entity_id, into.entity_id] = ProposedMerge(merged, into, words, is_told=True)

    def _tell_type(self, entity_id: UUID, kind: EntityType) -> None:
        entity = self.registry[entity_id]
        if entity.type == "other" != kind:
            self.types[entity_id] = kind
            self.registry.add(entity.model_copy(update={"type": kind}))

    def propose_merge(self, name: SpokenName, tie_key: str | None, found: KnownEntity) -> None:
        """Ana, who was known by her name, is said to be the wife who was known without one: "my wife Ana"."""
        tied = self.registry.of_tie(tie_key) if tie_key and name.key else []
        nameless = [one for one in tied if not names_of(one) and not one.keys("user") and one.entity_id not in self.new]
        if len(nameless) == 1 and found.entity_id not in {nameless[0].entity_id, *self.new}:
            merge = ProposedMerge(nameless[0], found, name.text)
            self.proposed[merge.merged.entity_id, found.entity_id] = merge

    def _register(self, name: str, kind: EntityType, aliases: Sequence[Alias], finding: FoundEntity) -> UUID:
        entity_id = ids.entity_id(self.context.owner, self.context.source_id, len(self.new))
        twins = tuple(one.entity_id for one in finding.compared)
        entity = KnownEntity(
            entity_id=entity_id, name=name[:MAX_NAME], type=kind, aliases=tuple(aliases), possible_twins=twins
        )
        self.new[entity_id] = entity, finding
        self.registry.add(entity)
        return entity_id

    def add_alias(self, entity_id: UUID, alias: Alias, finding: FoundEntity) -> None:
        """The first who is called so stays it; a tie may be to several ("my brother"). What is hidden is told anew.

        A name that several may have is that of one of them in this source alone: in another it may mean another one.
        """
        shown = self.registry[entity_id].as_shown
        if alias.key in shown.keys(alias.kind) or (alias.kind == "name" and alias.key in names_of(shown)):
            return
        if alias.kind == "name" and (holders := self.registry.shown_of_name(alias.key)):
            if finding.step != "model":
                self.tell_taken(alias.text, holders)
            return
        self.registry.add_alias(entity_id, alias)
        if alias.kind == "name" and finding.step == "model" and finding.compared:
            return
        self.added.append(EntityAlias(entity_id=entity_id, alias=alias, finding=finding))

    def _owner_of(self, name: SpokenName) -> UUID | None:
        """Whose tie it is: that of who is named, else of who speaks. A speaker called "my wife" is just called so.

        In "my wife's dog" it is the wife's. A text that is too long to be a name is nobody's.
        """
        owner = name.owner if name.owner is not None else self.context.other_speaker
        if self.context.is_user(owner):
            return self.user().entity_id
        if owner is None or len(owner) > MAX_NAME:
            return None
        spoken = read_name(owner)
        if name.owner is None and spoken is not None and spoken.tie is not None and spoken.owner is None:
            spoken = SpokenName(text=spoken.text, name=spoken.text)
        found = self._find(spoken, "person") if spoken else None
        return found[0] if found else None

    def _user_link(self) -> EntityLink:
        return EntityLink(entity_id=self.user().entity_id, role="subject", step="user")

    def user(self) -> KnownEntity:
        """The user, who is made known where they are new."""
        user = self.registry.user()
        aliases = [Alias(text=name[:MAX_NAME], key=name_key(name)) for name in self._user_names() if name_key(name)]
        if user is None:
            called = [one for alias in aliases for one in self.registry.of_name(alias.key)]
            mark = Alias(text=aliases[0].text if aliases else USER, kind="user", key="user")
            if len(called) == 1 and called[0].type in ("person", "other"):  # known by name before it was the user's
                self.add_alias(called[0].entity_id, mark, FoundEntity(entity=called[0], step="exact"))
                return self.registry[called[0].entity_id]
            self._register(mark.text, "person", (mark, *aliases), FoundEntity(step="user", compared=tuple(called)))
        else:
            for alias in aliases:
                self.add_alias(user.entity_id, alias, FoundEntity(entity=user, step="user"))
        found = self.registry.user()
        if found is None:
            raise AssertionError("the user was registered just now")
        return found

    def _user_names(self) -> Sequence[str]:
        """The names of the user, that by which they speak first."""
        context = self.context
        speaker = () if context.speaker is None or context.other_speaker else (context.speaker,)
        names = (name for name in (*speaker, *context.user_names) if context.user_names)
        return list(dict.fromkeys(names))[:MAX_USER_NAMES]


def _words(fact: ExtractedFact) -> _FactWords:
    return _FactWords(fact.text, fact.excerpt, fact.subject)


def links_once(links: Iterable[EntityLink]) -> tuple[EntityLink, ...]:
    """Each entity once, in the first of its roles."""
    found: dict[UUID, EntityLink] = {}
    for link in links:
        found.setdefault(link.entity_id, link)
    return tuple(found.values())


def _aliases_of(name: SpokenName, tie_key: str | None, vector: Vector | None) -> Iterator[Alias]:
    """The names that a spoken name gives its bearer."""
    if name.name is not None and name.key:
        key = key_with_origin(name.key, name.origin)
        yield Alias(text=name.text if name.origin else name.name, key=key, vector=vector)
    if tie_key is not None:
        yield Alias(text=name.text, kind="tie", key=tie_key)
