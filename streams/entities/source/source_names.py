"""Finds whom each name of a source means, and keeps what the source tells: new entities, names, types, merges."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.entities.model import MAX_NAME, Alias, EntityLink, EntityType, KnownEntity, UnlinkedName
from mnemolog.streams.entities.doubtful.name_answers import NameAnswers, find_by_answer
from mnemolog.streams.entities.entity_registry import EntityRegistry, key_with_origin, names_of
from mnemolog.streams.entities.found_entities import EntityAlias, FoundEntity, ProposedMerge, find_entity
from mnemolog.streams.entities.name_context import NameContext
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.spoken_names import TIE_TYPES, SpokenName, read_name
from mnemolog.streams.text.subjects import USER

MAX_NEW_ENTITIES: Final = 100
"""How many entities one source may bring; what it names beyond them is not linked."""


class NameMeaning(NamedTuple):
    """What a name of a type means, before it is taken for that; `tie_key` names the tie in it with whose it is."""

    name: SpokenName
    kind: EntityType
    tie_key: str | None
    finding: FoundEntity


@dataclass(slots=True)
class SourceNames:
    """What the names of one source mean. What one name brings is known to the next.

    `new` and `added` are in the order in which they were said. `doubtful` are the names of those of the `new` ones that
    have possible twins, `types` are those of known entities of which nobody had told it.
    """

    context: NameContext
    registry: EntityRegistry
    answers: NameAnswers
    new: dict[UUID, tuple[KnownEntity, FoundEntity]] = field(default_factory=dict)
    added: list[EntityAlias] = field(default_factory=list)
    proposed: dict[tuple[UUID, UUID], ProposedMerge] = field(default_factory=dict)
    unlinked: list[UnlinkedName] = field(default_factory=list)
    doubtful: dict[UUID, SpokenName] = field(default_factory=dict)
    types: dict[UUID, EntityType] = field(default_factory=dict)

    def entity_of(self, name: SpokenName, kind: EntityType) -> tuple[UUID, FoundEntity] | None:
        """The entity of a name, made known where it is new; None where the source brings too many."""
        meaning = self.find(name, kind)
        entity_id = self.take_name(meaning)
        return None if entity_id is None else (entity_id, meaning.finding)

    def find(self, name: SpokenName, kind: EntityType) -> NameMeaning:
        kind = TIE_TYPES[name.tie] if name.tie else kind
        owner_id = self.owner_of(name) if name.tie is not None else None
        tie_key = f"{name.tie} of {owner_id}" if owner_id else None
        finding = find_entity(name, kind, tie_key, self.registry)
        return NameMeaning(name, kind, tie_key, find_by_answer(name, finding, self.answers, self.registry))

    def take_name(self, meaning: NameMeaning) -> UUID | None:
        """The entity that was found, which has the name from now on, or a new one.

        None where the source brings too many.
        """
        name, kind, tie_key, finding = meaning
        if finding.entity is not None:
            self.propose_merge(name, tie_key, finding.entity)
        entity_id = self.take(finding, name.name or name.text, kind, [*self._aliases_of(meaning)])
        is_in_doubt = finding.entity is None and finding.compared and not (name.is_another or name.is_new)
        if entity_id is not None and is_in_doubt:
            self.doubtful[entity_id] = name
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

    def owner_of(self, name: SpokenName) -> UUID | None:
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
        found = self.entity_of(spoken, "person") if spoken else None
        return found[0] if found else None

    def user(self) -> KnownEntity:
        """The user, who is made known where they are new."""
        named = [(name[:MAX_NAME], name_key(name)) for name in self.context.registered_names]
        aliases = [Alias(text=name, key=key) for name, key in named if key]
        user = self.registry.user()
        if user is None:
            return self.registry[self._new_user(aliases)]
        for alias in aliases:
            self.add_alias(user.entity_id, alias, FoundEntity(entity=user, step="user"))
        return self.registry[user.entity_id]

    def _new_user(self, aliases: Sequence[Alias]) -> UUID:
        """Who was known by a name before it was the user's is the user from now on."""
        found = {one.entity_id: one for alias in aliases for one in self.registry.of_name(alias.key)}
        called = tuple(found.values())
        mark = Alias(text=aliases[0].text if aliases else USER, kind="user", key="user")
        if len(called) == 1 and called[0].type in ("person", "other"):
            self.add_alias(called[0].entity_id, mark, FoundEntity(entity=called[0], step="exact"))
            return called[0].entity_id
        return self._register(mark.text, "person", (mark, *aliases), FoundEntity(step="user", compared=called))

    def leave_out(self, name: str, *, is_name: bool) -> None:
        """Tell of a name that it names nobody, or, if it is a name, that the source has too many."""
        is_beyond = is_name and len(self.new) >= MAX_NEW_ENTITIES
        self.unlinked.append(UnlinkedName(name=name, reason="too_many" if is_beyond else "no_name"))

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

    def propose_merge(self, name: SpokenName, tie_key: str | None, found: KnownEntity) -> None:
        """Ana, who was known by her name, is said to be the wife who was known without one: "my wife Ana"."""
        tied = self.registry.of_tie(tie_key) if tie_key and name.key else []
        nameless = [one for one in tied if not names_of(one) and not one.keys("user") and one.entity_id not in self.new]
        if len(nameless) == 1 and found.entity_id not in {nameless[0].entity_id, *self.new}:
            merge = ProposedMerge(nameless[0], found, name.text)
            self.proposed[merge.merged.entity_id, found.entity_id] = merge

    def typed(self, link: EntityLink) -> EntityLink:
        """A link with what the source tells of the type of its entity."""
        kind = self.types.get(link.entity_id)
        return link if kind is None else link.model_copy(update={"type": kind})

    def _tell_type(self, entity_id: UUID, kind: EntityType) -> None:
        entity = self.registry[entity_id]
        if entity.type == "other" != kind:
            self.types[entity_id] = kind
            self.registry.add(entity.model_copy(update={"type": kind}))

    def _register(self, name: str, kind: EntityType, aliases: Sequence[Alias], finding: FoundEntity) -> UUID:
        entity_id = ids.entity_id(self.context.owner, self.context.source_id, len(self.new))
        entity = KnownEntity(
            entity_id=entity_id,
            name=name[:MAX_NAME],
            type=kind,
            aliases=tuple(aliases),
            possible_twins=finding.compared_ids,
        )
        self.new[entity_id] = entity, finding
        self.registry.add(entity)
        return entity_id

    def _aliases_of(self, meaning: NameMeaning) -> Iterator[Alias]:
        """The names that a spoken name gives its bearer."""
        name, tie_key = meaning.name, meaning.tie_key
        if name.name is not None and name.key:
            key = key_with_origin(name.key, name.origin)
            vector = self.registry.vector_of(name, meaning.kind)
            yield Alias(text=name.text if name.origin else name.name, key=key, vector=vector)
        if tie_key is not None:
            yield Alias(text=name.text, kind="tie", key=tie_key)
