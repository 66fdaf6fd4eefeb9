"""Finds the entity that a name means, step by step; in doubt it is a new one, a possible twin of the known one."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.entities import (
    BEINGS,
    MAX_NAME,
    MAX_NAME_VECTORS,
    USER_HEAD,
    Alias,
    AnsweredName,
    Comparison,
    EntityLink,
    EntityType,
    KnownEntity,
    NamedEntity,
    NameQuery,
    NameVector,
    ResolutionStep,
    UnlinkedName,
    is_same_as,
    name_ends,
    name_head,
    tie_head,
)
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.streams.entities.names import (
    TIE_TYPES,
    SpokenName,
    age_in,
    forms_of,
    is_beginning_of,
    likeness_of,
    name_key,
    read_name,
    slip_heads,
)
from mnemolog.streams.text.differences import USER, compare_subjects, is_user_word

_NO_DIGIT: Final = re.compile("[^0-9]")


@dataclass(frozen=True, slots=True)
class NameVectors:
    """The vectors of the names of a turn, by their keys, and from which similarity on two names may mean the same."""

    vectors: Mapping[str, Vector] = field(default_factory=dict)
    floor: float = 0.0

    @classmethod
    def of(cls, named: Iterable[NameVector], floor: float) -> "NameVectors":
        """With the floor 0 names have no meaning."""
        return cls({one.key: one.vector for one in named} if floor else {}, floor)

    def vector_of(self, name: SpokenName, kind: EntityType) -> Vector | None:
        return self.vectors.get(name.key) if has_meaning(name, kind) else None

    def queries(self, named: Iterable[NamedEntity]) -> Sequence[NameQuery]:
        """What finds the known entities that these names may mean as well, each name of a type once."""
        found: dict[tuple[str, EntityType], NameQuery] = {}
        for entity in named:
            name = read_name(entity.name)
            if name is not None and (vector := self.vector_of(name, entity.type)) is not None:
                found[name.key, entity.type] = NameQuery(key=name.key, type=entity.type, vector=vector)
        return list(found.values())

    def are_near(self, key: str, vector: Vector, aliases: Iterable[Alias]) -> bool:
        """Whether a name may mean one of these, which the turn itself brings; other numbers are something else."""
        told = (one.vector for one in aliases if one.vector is not None and same_numbers(one.key, key))
        return any(cosine_similarity(vector.values, other.values) >= self.floor for other in told)


NO_VECTORS: Final = NameVectors()


def has_meaning(name: SpokenName, kind: EntityType) -> bool:
    """Whether a name says what it is the name of; of something that has no type, a first name may be anybody's."""
    if not name.key or name.tie or name.origin or kind in BEINGS:
        return False
    return kind != "other" or not forms_of(name.key.partition(" ")[0])


def names_to_embed(facts: Iterable[ExtractedFact]) -> dict[str, str]:
    """The names in these facts that have a meaning by their keys, without titles, the first `MAX_NAME_VECTORS`."""
    found: dict[str, str] = {}
    for entity in (entity for fact in facts for entity in fact.entities):
        name = read_name(entity.name)
        if name is not None and has_meaning(name, entity.type) and len(found) < MAX_NAME_VECTORS:
            found.setdefault(name.key, name.untitled)
    return found


def same_numbers(one: str, other: str) -> bool:
    """Whether two keys have the same digits: "iphone 14" is never "iphone 15". The tables compare them so too."""
    return _NO_DIGIT.sub("", one) == _NO_DIGIT.sub("", other)


_ORIGIN = " ("


class EntityRegistry:
    """Finds entities by the keys of their names. What the turn brings is known to its later names."""

    def __init__(self, known: Iterable[KnownEntity], vectors: NameVectors = NO_VECTORS) -> None:
        self._entities = {entity.entity_id: entity for entity in known}
        self._vectors = vectors

    def __iter__(self) -> Iterator[KnownEntity]:
        return iter(self._entities.values())

    def __getitem__(self, entity_id: UUID) -> KnownEntity:
        return self._entities[entity_id]

    def add(self, entity: KnownEntity) -> None:
        self._entities[entity.entity_id] = entity

    def add_alias(self, entity_id: UUID, alias: Alias) -> None:
        entity = self._entities[entity_id]
        hidden = tuple(one for one in entity.hidden if (one.kind, one.key) != (alias.kind, alias.key))
        self.add(entity.model_copy(update={"aliases": (*entity.aliases, alias), "hidden": hidden}))

    def user(self) -> KnownEntity | None:
        """The entity of the user, where it is known: the first one, if a log should have several."""
        return next((entity for entity in self if entity.keys("user")), None)

    def of_name(self, key: str) -> list[KnownEntity]:
        """Those that are called so, whatever else is said of them."""
        return [entity for entity in self if key in names_of(entity)]

    def shown_of_name(self, key: str) -> list[KnownEntity]:
        """Those of which readers see that they are called so."""
        return [entity for entity in self.of_name(key) if key in names_of(entity.as_shown)]

    def of_meaning(self, name: SpokenName, kind: EntityType) -> list[KnownEntity]:
        """Those of a type that have a name which may mean the same."""
        vector = self.vector_of(name, kind)
        if vector is None:
            return []
        of_type = (entity for entity in self if entity.type == kind)
        return [one for one in of_type if name.key in one.near or self._vectors.are_near(name.key, vector, one.aliases)]

    def vector_of(self, name: SpokenName, kind: EntityType) -> Vector | None:
        """That of a name which the turn brings, where it has a meaning."""
        return self._vectors.vector_of(name, kind)

    def of_tie(self, key: str) -> list[KnownEntity]:
        return [entity for entity in self if key in entity.keys("tie")]


@dataclass(frozen=True, slots=True)
class Marks:
    """What tells an entity from others of its name: its ties to others, and where it is from."""

    ties: frozenset[str]
    origins: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.ties or self.origins)


def marks_of(entity: KnownEntity) -> Marks:
    origins = (key.partition(_ORIGIN)[2].rstrip(")") for key in entity.keys("name") if _ORIGIN in key)
    return Marks(entity.keys("tie"), frozenset(origins))


def names_of(entity: KnownEntity) -> frozenset[str]:
    """The keys of its proper names, without where it is from."""
    return frozenset(key.partition(_ORIGIN)[0] for key in entity.keys("name"))


def key_with_origin(key: str, origin: str | None) -> str:
    """The key of a name with where its bearer is from: "tom (work)"."""
    return f"{key}{_ORIGIN}{origin})" if origin else key


def same_type(one: EntityType, other: EntityType) -> bool:
    """Whether two types may be of one entity: `other` is what nobody told."""
    return one == other or "other" in (one, other)


MAX_USER_NAMES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NameContext:
    """Whose names are read: the source, who speaks in it, and the names of the user.

    `model` and `prompt_version` are of who read its facts, where a model did.
    """

    owner: str
    source_id: str
    speaker: str | None = None
    user_names: tuple[str, ...] = ()
    model: str | None = None
    prompt_version: str | None = None

    def is_user(self, name: str | None) -> bool:
        """Whether it is the user: nobody is named, or by a word for the user, or by one of their names."""
        if name is None or is_user_word(name):
            return True
        return bool(self.user_names) and compare_subjects(name, USER, self.user_names) == "same"

    @property
    def other_speaker(self) -> str | None:
        """Who speaks, where it is not the user: "my wife" is theirs."""
        return None if not self.user_names or self.is_user(self.speaker) else self.speaker

    @property
    def registered_names(self) -> Sequence[str]:
        """The names by which the user is known as an entity, that by which they speak first."""
        if not self.user_names:
            return ()
        own = () if self.speaker is None or self.other_speaker else (self.speaker,)
        return list(dict.fromkeys((*own, *self.user_names)))[:MAX_USER_NAMES]


def named_entities(fact: ExtractedFact, context: NameContext) -> Iterator[NamedEntity]:
    """Whom a fact names, its subject first, the user left out.

    Where the fact is said to have no subject, what is called its subject is a mention.
    """
    subject = fact.subject
    if subject is not None and not context.is_user(subject) and 0 < len(subject) <= MAX_NAME:
        told = [entity.type for entity in fact.entities if entity.role == "subject"]
        kind = "person" if subject == context.other_speaker else next(iter(told), "other")
        yield NamedEntity(name=subject, type=kind, role="subject")
    for entity in fact.entities:
        if context.is_user(entity.name):
            continue
        if entity.role != "subject":
            yield entity
        elif subject is None:
            yield entity.model_copy(update={"role": "mention"})


def same_names(fact: ExtractedFact) -> Iterator[tuple[str, str]]:
    """The pairs of names that a fact tells to be of one."""
    return ((said.subject, said.object) for said in fact.relations if is_same_as(said.predicate))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKeys:
    """What entities are looked up by: the heads of their names, and whole keys, which count more.

    And the first and last letters of names, which misspelled ones have too.
    """

    heads: frozenset[str]
    keys: frozenset[str]
    ends: frozenset[str]

    def __or__(self, other: "LookupKeys") -> "LookupKeys":
        return LookupKeys(heads=self.heads | other.heads, keys=self.keys | other.keys, ends=self.ends | other.ends)


NO_KEYS: Final = LookupKeys(heads=frozenset(), keys=frozenset(), ends=frozenset())


def lookup_keys(facts: Iterable[ExtractedFact], context: NameContext) -> LookupKeys:
    """What finds every entity that the names in these facts may mean, and the user."""
    facts = list(facts)
    said = {entity.name for fact in facts for entity in named_entities(fact, context)}
    said |= {name for fact in facts for pair in same_names(fact) for name in pair if not context.is_user(name)}
    if context.other_speaker is not None:
        said.add(context.other_speaker)
    return keys_of_names(said, context)


def keys_of_names(said: Iterable[str], context: NameContext) -> LookupKeys:
    """What finds every entity that these names may mean, those whose ties they have, and the user."""
    names = [*_spoken(set(said), context), *(SpokenName(text=name, name=name) for name in context.user_names)]
    keys = {name.key for name in names if name.key}
    forms = {form for key in keys for form in forms_of(key.split(" ")[0])}
    ties = {tie_head(name.tie) for name in names if name.tie}
    slips = {head for key in keys for head in slip_heads(key)}
    heads = frozenset({USER_HEAD, *ties, *slips, *map(name_head, keys | forms)})
    return LookupKeys(heads=heads, keys=frozenset(keys), ends=frozenset(map(name_ends, keys)))


def _spoken(said: set[str], context: NameContext) -> Iterator[SpokenName]:
    while said:
        if (name := read_name(said.pop())) is not None:
            yield name
            if name.owner is not None and not context.is_user(name.owner):
                said.add(name.owner)


MIN_PREFIX: Final = 3
"""Letters that a part of a name has at least (Arandu's write pipeline): "Jo" is not João."""
_FORMER: Final = "ex_"
_AND: Final = re.compile(r" (?:and|und|et|y|&) ")
"""What makes a name that of two: "Ana and Ben"."""
_YOUNGER: Final = re.compile(r" (?:jr|sr|junior|senior|ii|iii)")
"""What tells a child from a parent of one name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntity:
    """The entity that a name means, None for a new one; `compared` are those that it could mean as well.

    `compared_by` is how these were found, where that was not by words; `reason` is that of the model that was asked.
    """

    entity: KnownEntity | None = None
    step: ResolutionStep = "new"
    compared: tuple[KnownEntity, ...] = ()
    compared_by: Comparison | None = None
    reason: str | None = None

    @property
    def compared_ids(self) -> tuple[UUID, ...]:
        return tuple(one.entity_id for one in self.compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityAlias:
    """Another name of a known entity, and how the entity was found by it."""

    entity_id: UUID
    alias: Alias
    finding: FoundEntity


class ProposedMerge(NamedTuple):
    """Two known entities that a name says are one; or the words of a turn, as who reads it takes them (`is_told`)."""

    merged: KnownEntity
    into: KnownEntity
    name: str
    is_told: bool = False


def find_entity(name: SpokenName, kind: EntityType, tie_key: str | None, registry: EntityRegistry) -> FoundEntity:
    """The entity that a name of a type means; `tie_key` names the tie in it together with whose it is."""
    tied = [one for one in registry.of_tie(tie_key) if not _is_of_other_age(name, tie_key, one)] if tie_key else []
    if not name.key:
        return _of_tie(tied, is_new=name.is_new)
    called = [entity for entity in registry.of_name(name.key) if same_type(kind, entity.type)]
    if name.is_another:
        return FoundEntity(compared=tuple(called))
    if called:
        return _of_called(name, tie_key, called)
    nameless = [entity for entity in tied if not names_of(entity)]
    if nameless and name.is_new:
        return FoundEntity(compared=tuple(nameless))
    if len(nameless) == 1:  # "my wife" was known without a name
        return FoundEntity(entity=nameless[0], step="tie")
    steps = (step(name, kind, tie_key, registry) for step in (_of_similar, _of_misspelled, _of_meaning))
    return next((found for found in steps if found.entity or found.compared), FoundEntity())


def _of_called(name: SpokenName, tie_key: str | None, called: Sequence[KnownEntity]) -> FoundEntity:
    """Among entities of this very name the one of its tie or origin; without them the only one, or the one without."""
    if tie_key or name.origin:
        marked = [one for one in called if _has_mark(name, tie_key, one)]
        fitting = marked or ([called[0]] if len(called) == 1 and not marks_of(called[0]) else [])
    else:
        fitting = list(called) if len(called) == 1 else [one for one in called if not marks_of(one)]
    if len(fitting) != 1:
        return FoundEntity(compared=tuple(called))
    found = fitting[0]
    is_own = bool(found.aliases) and found.aliases[0].key.partition(" (")[0] == name.key
    others = tuple(one for one in called if one is not found)
    return FoundEntity(entity=found, step="exact" if is_own else "alias", compared=others)


def _of_similar(name: SpokenName, kind: EntityType, tie_key: str | None, registry: EntityRegistry) -> FoundEntity:
    """The one person whose name is longer or shorter, or of whose name this is a short form.

    Of a person who is told apart, by a tie, an origin or another surname, it is the name of a possible twin.
    """
    if kind not in ("person", "other"):
        return FoundEntity()
    kinds = {"person", "other"} if kind == "person" else {"person"}
    people = [entity for entity in registry if entity.type in kinds]
    parts = [one for one in people if any(_is_part(name.key, known) for known in names_of(one))]
    forms = [one for one in people if any(_is_form(name.key, known) for known in names_of(one))]
    found = list({one.entity_id: one for one in (*parts, *forms)}.values())
    others = [one for one in people if one not in found]
    doubtful = [one for one in others if any(_is_nearly_part(name.key, known) for known in names_of(one))]
    fitting = [one for one in found if not _is_told_apart(name, tie_key, one)]
    if len(found) == len(fitting) == 1 and not doubtful:
        return FoundEntity(entity=fitting[0], step="prefix" if parts else "diminutive")
    return FoundEntity(compared=(*found, *doubtful))


def _of_misspelled(name: SpokenName, kind: EntityType, tie_key: str | None, registry: EntityRegistry) -> FoundEntity:
    """The only one of this very type whose name is clearly this one, misspelled; of all that it may be a twin.

    Where nobody told the type of one of the two, it is a twin at the most.
    """
    fitting = [entity for entity in registry if same_type(kind, entity.type)]
    likeness = {one.entity_id: likeness_of(name.untitled, kind, one) for one in fitting}
    near = [one for one in fitting if likeness[one.entity_id] is not None]
    typed = [one for one in near if one.type == kind]
    if len(typed) == 1 and likeness[typed[0].entity_id] == "same" and not _is_marked_apart(name, tie_key, typed[0]):
        return FoundEntity(entity=typed[0], step="fuzzy", compared=tuple(one for one in near if one is not typed[0]))
    return FoundEntity(compared=tuple(near))


def _of_meaning(name: SpokenName, kind: EntityType, _tie_key: str | None, registry: EntityRegistry) -> FoundEntity:
    """Possible twins alone: names of two things can be as near as two names of one."""
    near = registry.of_meaning(name, kind)
    return FoundEntity(compared=tuple(near), compared_by="embedding" if near else None)


def _of_tie(tied: Sequence[KnownEntity], *, is_new: bool) -> FoundEntity:
    """The only one of a tie; of several, or where it is a new one, the one that was never named."""
    fitting = tied if len(tied) == 1 and not is_new else [one for one in tied if not names_of(one)]
    if len(fitting) != 1:
        return FoundEntity(compared=tuple(tied))
    return FoundEntity(entity=fitting[0], step="tie", compared=tuple(one for one in tied if one is not fitting[0]))


def _is_of_other_age(name: SpokenName, tie_key: str, entity: KnownEntity) -> bool:
    """Whether one is the older and the other the younger of a tie: "my big brother", "my little brother"."""
    told = {age_in(alias.text) for alias in entity.aliases if (alias.kind, alias.key) == ("tie", tie_key)} - {None}
    age = age_in(name.text)
    return age is not None and bool(told) and age not in told


def _is_told_apart(name: SpokenName, tie_key: str | None, entity: KnownEntity) -> bool:
    has_other_surname = any(_has_other_surname(name.key, known) for known in names_of(entity))
    return has_other_surname or _is_marked_apart(name, tie_key, entity)


def _is_marked_apart(name: SpokenName, tie_key: str | None, entity: KnownEntity) -> bool:
    """Whether a tie or an origin is none of those by which the entity is known."""
    marks = marks_of(entity)
    if not marks or not (tie_key or name.origin):
        return False
    return not _has_mark(name, tie_key, entity)


def _has_mark(name: SpokenName, tie_key: str | None, entity: KnownEntity) -> bool:
    """Whether an entity is known by the tie, be it over or not, or by the origin of a name."""
    marks = marks_of(entity)
    ties = {tie.removeprefix(_FORMER) for tie in marks.ties}
    return name.origin in marks.origins or (tie_key is not None and tie_key.removeprefix(_FORMER) in ties)


def _has_other_surname(one: str, other: str) -> bool:
    """Whether both have words after the first, and those of neither are the first of the other one's."""
    rest, others = (name.partition(" ")[2] for name in (one, other))
    short, long = sorted((rest, others), key=len)
    return bool(short) and not f"{long} ".startswith(f"{short} ")


def _is_part(one: str, other: str) -> bool:
    """Whether one name is the first words of the other one, or with its surname the beginning of the first of them."""
    short, long = sorted((one, other), key=len)
    if long.startswith(f"{short} "):
        rest = long.removeprefix(short)
        return not (_AND.match(rest) or _YOUNGER.fullmatch(rest))
    return _begins(short, long) and is_beginning_of(short.split()[0], long.split()[0])


def _is_nearly_part(one: str, other: str) -> bool:
    """Whether it may be one, or not: "Jan" and "Janet", "John Smith" and "John Smith Jr."."""
    short, long = sorted((one, other), key=len)
    if long.startswith(f"{short} "):
        return _YOUNGER.fullmatch(long.removeprefix(short)) is not None
    return _begins(short, long) and not _is_part(one, other)


def _begins(short: str, long: str) -> bool:
    first, _, surname = short.partition(" ")
    known, _, other = long.partition(" ")
    return len(first) >= MIN_PREFIX and first != known and surname in ("", other) and known.startswith(first)


def _is_form(one: str, other: str) -> bool:
    """Whether the first names are forms of one name, and no other words differ."""
    first, *rest = one.split()
    known, *others = other.split()
    if rest and others and rest != others:
        return False
    return known in forms_of(first)


NameAnswers = Mapping[str, AnsweredName]
"""The answers about the names of one turn, by the keys of the names as they were said."""


def answers_by_name(answers: Iterable[AnsweredName]) -> NameAnswers:
    """Those that name an entity; the others change nothing."""
    return {name_key(answer.name): answer for answer in answers if answer.entity_id is not None}


def find_by_answer(
    name: SpokenName, finding: FoundEntity, answers: NameAnswers, registry: EntityRegistry
) -> FoundEntity:
    """What the model said of a name that may mean several; else `finding`, which the rules found."""
    answer = answers.get(name_key(name.text))
    if answer is None or answer.entity_id not in _meant_by(finding):
        return finding
    entity = registry[answer.entity_id]
    meant = {one.entity_id: one for one in (*finding.compared, *(registry[twin] for twin in answer.twins))}
    others = tuple(one for one in meant.values() if one.entity_id != entity.entity_id)
    return FoundEntity(entity=entity, step="model", compared=others, reason=answer.reason)


def _meant_by(finding: FoundEntity) -> set[UUID]:
    """Those that the rules found for a name, or in doubt might have found."""
    found = () if finding.entity is None else (finding.entity,)
    return {entity.entity_id for entity in (*finding.compared, *found)}


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


class NoNameError(ValueError):
    """What was given is no name of one entity; its text says why, and what would be one."""


def given_alias(name: str, registry: EntityRegistry, context: NameContext) -> Alias:
    """The alias that a name gives its bearer: a name, one with an origin ("Tom from work"), or a tie ("my wife").

    Raises `NoNameError`.
    """
    spoken = read_name(name)
    if spoken is None or not (spoken.tie or spoken.key) or is_user_word(name):
        raise NoNameError(f"{name!r} names nobody: give a name")
    if spoken.tie is None:
        return Alias(text=spoken.text, key=key_with_origin(spoken.key, spoken.origin))
    if spoken.name is not None:
        raise NoNameError(f"{name!r} is a tie and a name: give one of them")
    return Alias(text=spoken.text, kind="tie", key=f"{spoken.tie} of {_owner_id(spoken.owner, registry, context)}")


def holders(alias: Alias, registry: EntityRegistry) -> list[KnownEntity]:
    """The entities that have this very name, as readers see it."""
    return [entity for entity in registry if alias.key in entity.as_shown.keys(alias.kind)]


def _owner_id(owner: str | None, registry: EntityRegistry, context: NameContext) -> str:
    """Whose tie it is: the user's, or that of the only entity of a name."""
    if context.is_user(owner):
        if (user := registry.user()) is None:
            raise NoNameError("the user is not known as an entity yet, so nobody is anything to them: give a name")
        return str(user.entity_id)
    spoken = read_name(owner or "")
    owners = [one for one in registry if spoken is not None and spoken.key in names_of(one)]
    if len(owners) != 1:
        raise NoNameError(f"{len(owners)} entities are called {owner!r}: give a name, or first tell them apart")
    return str(owners[0].entity_id)
