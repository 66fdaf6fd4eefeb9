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
    EntityLink,
    EntityType,
    KnownEntity,
    UnlinkedName,
)
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.alias.same_names import tell_same
from mnemolog.streams.entities.entity_registry import EntityRegistry, key_with_origin, names_of
from mnemolog.streams.entities.found_entities import FoundEntity, find_entity
from mnemolog.streams.entities.name_context import NameContext, named_entities, same_names
from mnemolog.streams.entities.name_keys import name_key
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityAlias:
    """Another name of a known entity, and how the entity was found by it."""

    entity_id: UUID
    alias: Alias
    finding: FoundEntity


class _FactWords(NamedTuple):
    """What tells the facts of a source apart, in their events too."""

    text: str
    excerpt: str
    subject: str | None


class ProposedMerge(NamedTuple):
    """Two known entities that a name says are one; or the words of a turn, as who reads it takes them (`is_told`)."""

    merged: KnownEntity
    into: KnownEntity
    name: str
    is_told: bool = False


@dataclass(slots=True)
class TurnEntities:
    """The entities of one source. What one name brings is known to the next; `new` and `added` are in that order."""

    context: NameContext
    registry: EntityRegistry
    new: dict[UUID, tuple[KnownEntity, FoundEntity]] = field(default_factory=dict)
    added: list[EntityAlias] = field(default_factory=list)
    proposed: dict[tuple[UUID, UUID], ProposedMerge] = field(default_factory=dict)
    unlinked: list[UnlinkedName] = field(default_factory=list)
    _types: dict[UUID, EntityType] = field(default_factory=dict)
    """What the source tells of known entities of which nobody had told it."""
    _links: dict[_FactWords, tuple[EntityLink, ...]] = field(default_factory=dict)
    _relations: dict[_FactWords, tuple[StatedRelation, ...]] = field(default_factory=dict)

    @classmethod
    def of_facts(
        cls, facts: Sequence[ExtractedFact], known: Iterable[KnownEntity], context: NameContext
    ) -> "TurnEntities":
        """The entities that these facts name, among them the `known` ones that `lookup_keys` finds."""
        found = cls(context, EntityRegistry(known))
        for fact in facts:
            for pair in same_names(fact):
                tell_same(found, fact, pair)
        for fact in facts:
            found.unlinked += fact.unlinked
            links, said = list(found._each_link(fact)), _FactWords(fact.text, fact.excerpt, fact.subject)
            related = {relation.key: relation for relation in found._relations.get(said, ())}
            related |= {relation.key: relation for relation in found._find_relations(fact, links)}
            found._relations[said] = tuple(related.values())
            found._links[said] = _once((*found._links.get(said, ()), *links))
        return found

    def links_of(self, event: MemoryEvent) -> tuple[EntityLink, ...]:
        """What the new fact of an event names; an older statement of which it is made names its subject alone."""
        words, fact = event.words, event.new_fact
        if fact is None or words is None:
            return ()
        if same := self._said_in(event):
            links = _once(link for said in same for link in self._links[said])[:MAX_LINKS]
            return tuple(self._typed(link) for link in links)
        if self.context.is_user(fact.subject):
            return (self._user_link(),)
        called = self.registry.of_name(name_key(fact.subject or ""))
        if len(called) != 1:
            return ()
        return (EntityLink(entity_id=called[0].entity_id, role="subject", name=fact.subject, step="exact"),)

    def _typed(self, link: EntityLink) -> EntityLink:
        kind = self._types.get(link.entity_id)
        return link if kind is None else link.model_copy(update={"type": kind})

    @property
    def links(self) -> Iterator[EntityLink]:
        """What all facts of the source name, whether or not they become new facts."""
        return (link for links in self._links.values() for link in links)

    def subject_of(self, fact: ExtractedFact) -> UUID | None:
        """The entity that a fact of the source is about."""
        links = self._links.get(_FactWords(fact.text, fact.excerpt, fact.subject), ())
        return next((link.entity_id for link in links if link.role == "subject"), None)

    def relations_of(self, event: MemoryEvent) -> tuple[StatedRelation, ...]:
        """What the statement of an event says that entities are to each other."""
        said = (relation for said in self._said_in(event) for relation in self._relations[said])
        return tuple({relation.key: relation for relation in said}.values())

    def _said_in(self, event: MemoryEvent) -> Sequence[_FactWords]:
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
            compared = tuple(one.entity_id for one in finding.compared)
            yield EntityLink(
                entity_id=entity_id, role=entity.role, name=entity.name, step=finding.step, compared=compared
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
        kind = TIE_TYPES[name.tie] if name.tie else kind
        tie_key = self.tie_key_of(name)
        return self.take_name(name, kind, tie_key, find_entity(name, kind, tie_key, self.registry))

    def tie_key_of(self, name: SpokenName) -> str | None:
        """The key of the tie in a name together with whose it is."""
        owner_id = self._owner_of(name) if name.tie is not None else None
        return f"{name.tie} of {owner_id}" if owner_id else None

    def take_name(
        self, name: SpokenName, kind: EntityType, tie_key: str | None, finding: FoundEntity
    ) -> tuple[UUID, FoundEntity] | None:
        """The entity that was found, which has the name from now on, or a new one."""
        aliases = [*_aliases_of(name, tie_key)]
        if finding.entity is not None:
            entity_id = finding.entity.entity_id
            self._tell_type(entity_id, kind)
            self._propose_merge(name, tie_key, finding.entity)
            for alias in aliases:
                self._add_alias(entity_id, alias, finding)
            return entity_id, finding
        if len(self.new) >= MAX_NEW_ENTITIES or not aliases:
            return None
        return self._register(name.name or name.text, kind, aliases, finding), finding

    def tell_taken(self, name: str, holders: Sequence[KnownEntity]) -> None:
        """A name that would move: that is for a person to decide."""
        known = next((one.entity_id for one in holders if one.entity_id not in self.new), None)
        self.unlinked.append(UnlinkedName(name=name, reason="name_taken", entity_id=known))

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
            self._types[entity_id] = kind
            self.registry.add(entity.model_copy(update={"type": kind}))

    def _propose_merge(self, name: SpokenName, tie_key: str | None, found: KnownEntity) -> None:
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

    def _add_alias(self, entity_id: UUID, alias: Alias, finding: FoundEntity) -> None:
        """The first who is called so stays it; a tie may be to several ("my brother")."""
        entity = self.registry[entity_id]
        if alias.key in entity.keys(alias.kind) or (alias.kind == "name" and alias.key in names_of(entity)):
            return
        if alias.kind == "name" and (holders := self.registry.of_name(alias.key)):
            self.tell_taken(alias.text, holders)
            return
        self.registry.add_alias(entity_id, alias)
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
                self._add_alias(called[0].entity_id, mark, FoundEntity(entity=called[0], step="exact"))
                return self.registry[called[0].entity_id]
            self._register(mark.text, "person", (mark, *aliases), FoundEntity(step="user", compared=tuple(called)))
        else:
            for alias in aliases:
                self._add_alias(user.entity_id, alias, FoundEntity(entity=user, step="user"))
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


def _once(links: Iterable[EntityLink]) -> tuple[EntityLink, ...]:
    """Each entity once, in the first of its roles."""
    found: dict[UUID, EntityLink] = {}
    for link in links:
        found.setdefault(link.entity_id, link)
    return tuple(found.values())


def _aliases_of(name: SpokenName, tie_key: str | None) -> Iterator[Alias]:
    """The names that a spoken name gives its bearer."""
    if name.name is not None and name.key:
        key = key_with_origin(name.key, name.origin)
        yield Alias(text=name.text if name.origin else name.name, key=key)
    if tie_key is not None:
        yield Alias(text=name.text, kind="tie", key=tie_key)
