"""Finds the entity that a name means: the user, an equal name, a tie, a part, a short form, a slip of spelling.

In doubt the name is of a new entity, and the known entities that it may mean are its possible twins.
From top to bottom: vectors of names, the registry of known entities, the keys of a lookup, the steps (`find_entity`),
the names of one source (`NameResolver`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
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
    EntityLink,
    EntityType,
    KnownEntity,
    NamedEntity,
    NameQuery,
    ResolutionStep,
    Role,
    UnlinkedName,
    is_same_as,
    name_ends,
    name_head,
    tie_head,
)
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.streams.entities.names import (
    SEVERAL,
    TIE_TYPES,
    SpokenName,
    are_of_two,
    bearer_called,
    compare_names,
    forms_of,
    has_tie,
    is_first_name,
    is_surname_of,
    likeness_of,
    name_key,
    proper_name,
    read_name,
    relation_of_names,
    same_numbers,
    words_key,
)
from mnemolog.streams.text.differences import USER, compare_subjects, is_user_word
from mnemolog.streams.text.tokens import whole_words


@dataclass(frozen=True, slots=True)
class NameVectors:
    """The vectors of the names of a turn by their keys, and the cosine `floor` from which two may mean the same."""

    vectors: Mapping[str, Vector] = field(default_factory=dict)
    floor: float = 0.0

    def vector_of(self, name: SpokenName, kind: EntityType) -> Vector | None:
        return self.vectors.get(name.key) if has_meaning(name, kind) else None

    def queries(self, named: Iterable[NamedEntity]) -> Sequence[NameQuery]:
        """The queries for known entities with names near to these in meaning, each name of a type once."""
        found: dict[tuple[str, EntityType], NameQuery] = {}
        for entity in named:
            name = read_name(entity.name)
            if name is not None and (vector := self.vector_of(name, entity.type)) is not None:
                found[name.key, entity.type] = NameQuery(key=name.key, type=entity.type, vector=vector)
        return list(found.values())

    def are_near(self, name: SpokenName, kind: EntityType, entity: KnownEntity) -> bool:
        """Whether a name is near in meaning to one of an entity of its type, with the same numbers in it.

        The lookup compares known names (`near`); only aliases that the turn itself adds have vectors.
        """
        vector = self.vector_of(name, kind) if entity.type == kind else None
        if vector is None:
            return False
        others = (one.vector for one in entity.aliases if one.vector and same_numbers(one.key, name.key))
        cosines = (cosine_similarity(vector.values, other.values) for other in others)
        return name.key in entity.near or any(cosine >= self.floor for cosine in cosines)


NO_VECTORS: Final = NameVectors()


def has_meaning(name: SpokenName, kind: EntityType) -> bool:
    """Whether a name describes its bearer ("Allianz Arena"): names of beings, and first names without type, do not."""
    if not name.key or name.tie or name.origin or kind in BEINGS:
        return False
    return kind != "other" or not forms_of(name.key.partition(" ")[0])


def names_to_embed(facts: Iterable[ExtractedFact]) -> dict[str, str]:
    """The first `MAX_NAME_VECTORS` names in these facts that have a meaning: by their keys, without titles."""
    found: dict[str, str] = {}
    for entity in (entity for fact in facts for entity in fact.entities):
        name = read_name(entity.name)
        if name is not None and has_meaning(name, entity.type) and len(found) < MAX_NAME_VECTORS:
            found.setdefault(name.key, name.proper.text)
    return found


class EntityRegistry:
    """Finds entities by the keys of their names: known entities, and those that earlier names of the turn added."""

    def __init__(self, known: Iterable[KnownEntity], vectors: NameVectors = NO_VECTORS) -> None:
        self._entities = {entity.entity_id: entity for entity in known}
        self.known_before = frozenset(self._entities)
        """Those that no name of the same source brought."""
        self.vectors = vectors

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

    def bearer(self, entity_id: UUID, said: str | None) -> UUID | None:
        """The entity that had a name before others were merged into this one; None where it is none or unknown."""
        entity = self._entities.get(entity_id)
        return bearer_called(entity, said) if entity is not None and said is not None else None

    def user(self) -> KnownEntity | None:
        """The entity of the user, None where it is not known yet; the first, if a log should have several."""
        return next((entity for entity in self if entity.keys("user")), None)

    def of_name(self, key: str) -> list[KnownEntity]:
        return [entity for entity in self if key in names_of(entity)]

    def has_twin(self, entity: KnownEntity) -> bool:
        """Whether an entity may be the same as another one that is known, and that has a name if it came later."""
        named = (one for one in self if names_of(one))
        return bool(entity.possible_twins) or any(entity.entity_id in one.possible_twins for one in named)

    def shown_of_name(self, key: str) -> list[KnownEntity]:
        """The entities with this proper name, where readers see the name."""
        return [entity for entity in self.of_name(key) if key in names_of(entity.as_shown)]

    def of_tie(self, key: str) -> list[KnownEntity]:
        return [entity for entity in self if key in entity.keys("tie")]


def marks_of(entity: KnownEntity) -> frozenset[str]:
    """What distinguishes an entity from others of its name: the keys of its ties and its origins."""
    origins = (key[key.index(" (") :] for key in entity.keys("name") if " (" in key)
    return frozenset((*entity.keys("tie"), *origins))


def names_of(entity: KnownEntity) -> frozenset[str]:
    """The keys of the proper names of an entity, without origins."""
    return frozenset(key.partition(" (")[0] for key in entity.keys("name"))


def key_with_origin(key: str, origin: str | None) -> str:
    """The key of a name with the origin of its bearer: "tom (work)"."""
    return f"{key} ({origin})" if origin else key


MAX_USER_NAMES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NameContext:
    """The source (a turn or a command) whose names are read, its speaker, and the names of the user.

    `model` and `prompt_version` are those of the model that read the facts of the source, None for the rules. Of facts
    that a run had told, `in_run` has all names that the run knows of each name; a tie there states no relation.
    """

    owner: str
    source_id: str
    speaker: str | None = None
    user_names: tuple[str, ...] = ()
    model: str | None = None
    prompt_version: str | None = None
    in_run: Mapping[str, frozenset[str]] | None = None

    def is_user(self, name: str | None, kind: EntityType = "person") -> bool:
        """Whether a name is the user's: None, a word for the user ("I"), or a name of the user, said of a person."""
        if name is None or is_user_word(name):
            return True
        return (
            bool(self.user_names)
            and kind in {"person", "other"}
            and compare_subjects(name, USER, self.user_names) == "same"
        )

    @property
    def other_speaker(self) -> str | None:
        """The speaker where that is not the user: "my wife" is then the speaker's wife."""
        return None if not self.user_names or self.is_user(self.speaker) else self.speaker


def subject_type(fact: ExtractedFact) -> EntityType:
    return next((entity.type for entity in fact.entities if entity.role == "subject"), "other")


def named_entities(fact: ExtractedFact, context: NameContext) -> Iterator[NamedEntity]:
    """The entities that a fact names, its subject first, without the user.

    Where the fact has no subject, an entity with the role "subject" is a mention.
    """
    subject, kind = fact.subject, subject_type(fact)
    if subject is not None and not context.is_user(subject, kind) and 0 < len(subject) <= MAX_NAME:
        kind = "person" if subject == context.other_speaker else kind
        yield NamedEntity(name=subject, type=kind, role="subject")
    for entity in fact.entities:
        if context.is_user(entity.name, entity.type):
            continue
        if entity.role != "subject":
            yield entity
        elif subject is None:
            yield entity.model_copy(update={"role": "mention"})


def same_as_pairs(fact: ExtractedFact) -> Iterator[tuple[str, str]]:
    """The pairs of names that a fact states to be names of one entity."""
    return ((said.subject, said.object) for said in fact.relations if is_same_as(said.predicate))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKeys:
    """The keys by which entities are looked up, from loose to strict: name heads, name ends, whole keys.

    `ends` are letters of the last word (`name_ends`), which a surname alone and a misspelled name keep.
    """

    heads: frozenset[str]
    keys: frozenset[str]
    ends: frozenset[str]

    def __or__(self, other: "LookupKeys") -> "LookupKeys":
        return LookupKeys(heads=self.heads | other.heads, keys=self.keys | other.keys, ends=self.ends | other.ends)


def lookup_keys(facts: Sequence[ExtractedFact], context: NameContext) -> LookupKeys:
    """The keys that find every entity that the names in these facts may mean, and the user."""
    said = {entity.name for fact in facts for entity in named_entities(fact, context)}
    said |= {name for fact in facts for pair in same_as_pairs(fact) for name in pair if not context.is_user(name)}
    said |= {other for name in said for other in (context.in_run or {}).get(name, ())}
    if context.other_speaker is not None:
        said.add(context.other_speaker)
    return keys_of_names(said, context)


def keys_of_names(said: Iterable[str], context: NameContext) -> LookupKeys:
    """The keys that find every entity that these names may mean, the owners of their ties, and the user."""
    names = [SpokenName(text=name, name=name) for name in context.user_names]
    unread = set(said)
    while unread:
        if (name := read_name(unread.pop())) is not None:
            names.append(name)
            if name.owner is not None and not context.is_user(name.owner):
                unread.add(name.owner)
    keys = {name.key for name in names if name.key}
    forms = {form for key in keys for form in forms_of(key.split(" ")[0])}
    ties = {tie_head(name.tie) for name in names if name.tie}
    heads = frozenset({USER_HEAD, *ties, *map(name_head, keys | forms)})
    return LookupKeys(heads=heads, keys=frozenset(keys), ends=frozenset(map(name_ends, keys)))


class AskedName(NamedTuple):
    """A name of a type, the key of the tie in it, which ends with the id of its owner, and other keys of its bearer."""

    name: SpokenName
    kind: EntityType
    tie_key: str | None = None
    others: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        return self.others | {self.name.key} - {""}

    @property
    def marks(self) -> set[str]:
        """The marks (`marks_of`) that the bearer of the name has."""
        tie = {self.tie_key} if self.tie_key else set()
        return tie | {key_with_origin("", self.name.origin)} - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntity:
    """The entity that a name means, None for a new one; `compared` are the other entities that it could mean.

    `reason` is a model's, or what speaks against the first of the compared entities.
    """

    entity: KnownEntity | None = None
    step: ResolutionStep = "new"
    compared: tuple[KnownEntity, ...] = ()
    reason: str | None = None

    @property
    def compared_ids(self) -> tuple[UUID, ...]:
        return tuple(one.entity_id for one in self.compared)

    def link(self, entity_id: UUID, name: str, role: Role = "mention") -> EntityLink:
        return EntityLink(
            entity_id=entity_id, role=role, name=name, step=self.step, compared=self.compared_ids, reason=self.reason
        )


class Fit(NamedTuple):
    """What fits a known entity to a name: the place of the step, the step, and what speaks against the join."""

    place: int
    step: ResolutionStep
    against: str | None = None


def find_entity(asked: AskedName, registry: EntityRegistry) -> FoundEntity:
    """The entity that a name means, by the first step that finds any.

    The name joins the only entity that this step means, if nothing speaks against it; else it is of a new entity, and
    the found ones are its possible twins.
    """
    possible = (one for one in registry if not is_certainly_another(asked, one))
    fits = [(one, fit) for one in possible if (fit := _fit(asked, one, registry))]
    place = min((fit.place for _, fit in fits), default=None)
    found = {one.entity_id: (one, fit) for one, fit in fits if fit.place == place}
    compared = tuple(one for one, _ in found.values())
    meant = _meant(asked, list(found.values()))
    against = next((why for one in meant if (why := found[one.entity_id][1].against or _objection(asked, one))), None)
    if len(meant) != 1 or against:
        return FoundEntity(compared=compared, reason=against)
    (entity,) = meant
    others = tuple(one for one in compared if one.entity_id != entity.entity_id)
    return FoundEntity(entity=entity, step=found[entity.entity_id][1].step, compared=others)


def _fit(asked: AskedName, entity: KnownEntity, registry: EntityRegistry) -> Fit | None:
    """The surest step by which a name may mean an entity; None where it does not.

    An equal name; the tie of an entity without a name ("my wife", after "my wife Ana" was said); of a person a longer
    or shorter name ("Ana", "Ana Keller"); a short form ("Bob", "Robert") or a slip of spelling; a name of a thing that
    is near in meaning.
    """
    name, names = asked.name.proper, names_of(entity)
    is_tied = asked.tie_key is not None and asked.tie_key in entity.keys("tie")
    if not name.key:
        return Fit(0, "tie", _told_apart(asked, entity, registry)) if is_tied else None
    proper = [name, *(proper_name(one.text) for one in entity.aliases if one.kind == "name")]
    if not names.isdisjoint(asked.keys) and not (asked.others and are_of_two(asked.keys, names)):
        is_own = bool(entity.aliases) and entity.aliases[0].key.partition(" (")[0] == name.key
        titles = {one.title for one in proper[1:]} - {""}
        against = "known by another title" if name.title and titles and name.title not in titles else None
        is_bare = {one.is_surname for one in proper[1:] if one.key == name.key} == {not name.is_surname}
        if is_bare and is_first_name(name.key):  # "Martin", after "Dr. Martin"
            against = "the names may be of two"
        return Fit(3 if is_bare else 0, "exact" if is_own else "alias", against)
    if is_tied and not names:
        return Fit(1, "tie", _told_apart(asked, entity, registry))
    kinds = {"person": {"person", "other"}, "other": {"person"}}.get(asked.kind, set())
    pairs = product(asked.keys, names) if entity.type in kinds else ()
    related = {"doubtful" if is_surname_of(key, one) else relation_of_names(key, one) for key, one in pairs} - {None}
    if related and (any(one.is_surname for one in proper) or len({one.double for one in proper}) > 1):
        related = {"doubtful"}
    has_first = name.key.partition(" ")[0] in {one.partition(" ")[0] for one in names}
    if related or (is_tied and has_first):  # a surname may change by marriage
        against = None
        if related.isdisjoint(("part", "form")) or (registry.has_twin(entity) and not has_first):
            against = "the names may be of two"
        elif are_of_two(asked.keys, names):
            against = "known by another full name or short form"
        return Fit(2 if has_first else 3, "prefix" if "part" in related else "diminutive", against)
    if likeness := likeness_of(name.text, entity):
        return Fit(3, "fuzzy", None if likeness == "same" else "the names may be of two")
    are_near = registry.vectors.are_near(asked.name, asked.kind, entity)
    return Fit(4, "new", "the names are near in meaning") if are_near else None


_TOLD_APART: Final = frozenset({"first", "second", "third", "late", "best", "other"})
"""Traits that nobody has of whom they are not said: "my first wife" is not "my wife"."""


def _told_apart(asked: AskedName, entity: KnownEntity, registry: EntityRegistry) -> str | None:
    """What speaks against an entity as the bearer of the same tie, where nothing else is known of one of them."""
    traits, ties = asked.name.traits & _TOLD_APART, _known_ties(asked, entity)
    if asked.name.is_new and not any(one.is_new for one in ties):
        return "said to be a new one"
    known = [one.traits & _TOLD_APART for one in ties]
    if traits not in known and not (traits == {"late"} and frozenset() in known):  # who has died since
        return "said to be another of that tie"
    may_be_several = "one" in asked.name.traits.union(*(one.traits for one in ties))
    may_be_several |= asked.name.tie in SEVERAL and not asked.name.traits
    is_known = entity.entity_id in registry.known_before
    return "there may be several of that tie" if may_be_several and is_known else None


def _known_ties(asked: AskedName, entity: KnownEntity) -> list[SpokenName]:
    """The names of an entity that say the asked tie."""
    ties = (read_name(one.text) for one in entity.aliases if (one.kind, one.key) == ("tie", asked.tie_key))
    return [one for one in ties if one is not None]


def _meant(asked: AskedName, fits: Sequence[tuple[KnownEntity, Fit]]) -> Sequence[KnownEntity]:
    """Of the entities with this very name those with the tie or origin that was said; without one those with none.

    Of the entities with a tie, and for a new one ("my new dog"), those without a name: not where another of them was
    said to be the new one, "my wife" after "my new wife Petra". Of a misspelled name those of this very type.
    """
    found = [one for one, fit in fits if fit.step != "fuzzy" or one.type == asked.kind]
    if any(fit.place for _, fit in fits):
        return found
    if not asked.name.key:
        found = [one for one, fit in fits if fit.against is None] or found
        if len(found) == 1:
            return found
        told = [(one, read_name(alias.text)) for one in found for alias in one.aliases if alias.kind == "tie"]
        newer_than = {twin for one, name in told if name is not None and name.is_new for twin in one.possible_twins}
        return [one for one in found if not names_of(one) and one.entity_id not in newer_than]
    if asked.marks:
        marked = [one for one in found if not marks_of(one).isdisjoint(asked.marks)]
        return marked or (found if len(found) == 1 else [])
    return found if len(found) == 1 else [one for one in found if not marks_of(one)]


def _objection(asked: AskedName, entity: KnownEntity) -> str | None:
    """What speaks against an entity as the bearer of a name beside the name itself, in words for `explain`."""
    name, names, marks = asked.name, names_of(entity), marks_of(entity)
    if name.is_another or (name.origin == "another" and " (another)" not in marks):
        return "said to be another one"
    if asked.marks and (marks or entity.keys("user")) and marks.isdisjoint(asked.marks):
        return "known by another tie or origin"
    if not entity.keys("user") or not names or not name.key or name.key in names:
        return None
    is_called = any(known.startswith(f"{name.key} ") or compare_names(name.key, known) == "same" for known in names)
    return None if is_called else "the user is not called so"


_CONTRARY: Final = (frozenset({"older", "middle", "younger"}), frozenset({"first", "second", "third"}))
"""Traits of which one bearer of a tie has one."""


def is_certainly_another(asked: AskedName, entity: KnownEntity) -> bool:
    """Whether a name is certainly not of an entity, which is then no possible twin either.

    It is of another type; nobody is anything to themselves; the user is the one who speaks, and not "Sam from work"; or
    one is the older, one the younger of a tie, or the first and the second.
    """
    if asked.kind != entity.type and "other" not in (asked.kind, entity.type):
        return True
    if asked.tie_key and asked.tie_key.endswith(str(entity.entity_id)):
        return True
    if asked.name.origin and entity.keys("user"):
        return True
    known = frozenset[str]().union(*(one.traits for one in _known_ties(asked, entity)))
    pairs = ((asked.name.traits & kind, known & kind) for kind in _CONTRARY)
    return any(mine and its and mine.isdisjoint(its) for mine, its in pairs)


NameAnswers = Mapping[str, AnsweredName]
"""The answers of a model about the names of one turn, by the keys of the names as they were said."""


def answers_by_name(answers: Iterable[AnsweredName]) -> NameAnswers:
    """The answers that choose an entity; the others change nothing."""
    return {name_key(answer.name): answer for answer in answers if answer.entity_id is not None}


def find_by_answer(
    name: SpokenName, finding: FoundEntity, answers: NameAnswers, registry: EntityRegistry
) -> FoundEntity:
    """The entity that a model chose among the possible ones; else `finding`, the one of the rules."""
    answer = answers.get(name_key(name.text))
    possible = finding.compared if finding.entity is None else (*finding.compared, finding.entity)
    if answer is None or answer.entity_id not in {one.entity_id for one in possible}:
        return finding
    entity = registry[answer.entity_id]
    meant = {one.entity_id: one for one in (*finding.compared, *(registry[twin] for twin in answer.twins))}
    others = tuple(one for one in meant.values() if one.entity_id != entity.entity_id)
    return FoundEntity(entity=entity, step="model", compared=others, reason=answer.reason)


MAX_NEW_ENTITIES: Final = 100
"""How many entities one source may add; names beyond them are not linked."""


class AddedAlias(NamedTuple):
    """A new alias of a known entity, how the entity was found, and the words that say it: "my wife Ana" of "Ana"."""

    entity_id: UUID
    alias: Alias
    finding: FoundEntity
    said: str


class ProposedMerge(NamedTuple):
    """Two known entities that may be one, by a name ("my wife Ana"), or by `words` that state it (`is_stated`)."""

    merged: KnownEntity
    into: KnownEntity
    words: str
    is_stated: bool = False


@dataclass(slots=True)
class NameResolver:
    """Resolves the names of one source, in order: what a name adds is known to the names after it.

    `new` and `added` are in the order in which they were said. `doubtful` are the names of new entities with possible
    twins; `types` are types that the source gives to known entities of an unknown type.
    """

    context: NameContext
    registry: EntityRegistry
    answers: NameAnswers
    new: dict[UUID, tuple[KnownEntity, FoundEntity]] = field(default_factory=dict)
    added: list[AddedAlias] = field(default_factory=list)
    proposed: dict[tuple[UUID, UUID], ProposedMerge] = field(default_factory=dict)
    unlinked: list[UnlinkedName] = field(default_factory=list)
    doubtful: dict[UUID, SpokenName] = field(default_factory=dict)
    types: dict[UUID, EntityType] = field(default_factory=dict)

    def entity_of(
        self, name: SpokenName, kind: EntityType, words: str | None = None
    ) -> tuple[UUID, FoundEntity] | None:
        """The entity of a name, registered where it is new; None where the source adds too many entities.

        `words` are those of a fact that is said again: of the name and the tie in it only what they have is recorded.
        """
        asked, finding = self.find(name, kind)
        if words is not None and name.tie and name.name:
            is_told = has_tie(words, name.tie)
            is_named = not is_told or next(whole_words(words_key(name.name), words_key(words)), None) is not None
            said = replace(
                name, text=name.text.replace(name.name, "").strip(" ,"), name=name.name if is_named else None
            )
            asked = asked._replace(name=said, tie_key=asked.tie_key if is_told else None)
        entity_id = self.record(asked, finding)
        return None if entity_id is None else (entity_id, finding)

    def find(self, name: SpokenName, kind: EntityType) -> tuple[AskedName, FoundEntity]:
        """The entity of a name. Of what the name itself means nothing is recorded; the owner of its tie is."""
        if name.is_bare and kind not in {*BEINGS, "other"}:  # a brand called Boss
            name = SpokenName(text=name.text, name=name.text)
        kind = TIE_TYPES[name.tie] if name.tie else kind
        owner_id = self.owner_of(name) if name.tie is not None else None
        others = (self.context.in_run or {}).get(name.text, frozenset()) if name.key else frozenset()
        asked = AskedName(name, kind, f"{name.tie} of {owner_id}" if owner_id else None, others)
        found = find_entity(asked, self.registry)
        is_of_user = self.context.user_names and name.key and self.context.is_user(name.name)
        if is_of_user and found.entity is not None and found.step not in ("exact", "alias", "tie"):
            found = FoundEntity(compared=(found.entity, *found.compared), reason="the user is called so")
        return asked, find_by_answer(name, found, self.answers, self.registry)

    def record(self, asked: AskedName, finding: FoundEntity, said: str = "") -> UUID | None:
        """Give the found entity the name as an alias, or register a new entity with it; `said` is a name that it has.

        None where the source adds too many entities, and for a bare tie ("girlfriend") of nobody known.
        """
        name, kind, tie_key = asked[:3]
        if name.is_bare:
            return finding.entity.entity_id if finding.entity else None
        aliases = []
        if name.name is not None and name.key:
            key = key_with_origin(name.key, name.origin)
            vector = self.registry.vectors.vector_of(name, kind)
            aliases.append(Alias(text=name.text if name.origin else name.name, key=key, vector=vector))
        if tie_key is not None:
            aliases.append(Alias(text=name.text, kind="tie", key=tie_key))
        if finding.entity is not None:
            self.propose_tie_merge(name, tie_key, finding.entity)
            entity_id = finding.entity.entity_id
            entity = self.registry[entity_id]
            if entity.type == "other" != kind:
                self.types[entity_id] = kind
                self.registry.add(entity.model_copy(update={"type": kind}))
            for alias in aliases:
                self.add_alias(entity_id, alias, finding, said or name.text)
            return entity_id
        if len(self.new) >= MAX_NEW_ENTITIES or not aliases:
            return None
        entity_id = self._register(name.name or name.text, kind, aliases, finding)
        if finding.compared and not (name.is_another or name.is_new):
            self.doubtful[entity_id] = name
        return entity_id

    def add_alias(self, entity_id: UUID, alias: Alias, finding: FoundEntity, said: str = "") -> None:
        """Add an alias, unless readers see that the entity has it.

        A name that another entity has stays with that entity; several entities may share a tie ("my brother"), and a
        tie has each of its wordings ("my wife", "my wife Ana"): it holds while a fact says one. Where a model chose
        among several entities, the name is an alias of the chosen one within this source alone.
        """
        shown = self.registry[entity_id].as_shown
        if alias.kind == "name" and alias.key in {*shown.keys("name"), *names_of(shown)}:
            return
        said_of = (one.text.casefold() for one in shown.aliases if (one.kind, one.key) == (alias.kind, alias.key))
        if alias.text.casefold() in said_of:
            return
        if alias.kind == "name" and (holders := self.registry.shown_of_name(alias.key)):
            if finding.step != "model":
                self.report_taken(alias.text, holders)
            return
        self.registry.add_alias(entity_id, alias)
        if alias.kind == "name" and finding.step == "model" and finding.compared:
            return
        self.added.append(AddedAlias(entity_id, alias, finding, said or alias.text))

    def add_tie(self, tie: str, owner: str, owner_id: UUID, entity_id: UUID) -> None:
        """Let "my wife" mean of whom a fact says so: "Ana is my wife"; a predicate that is no tie adds nothing."""
        key, entity = f"{tie} of {owner_id}", self.registry[entity_id]
        if entity_id in self.doubtful or TIE_TYPES.get(tie) not in BEINGS:
            return
        if key not in entity.as_shown.keys("tie"):
            whose = "my" if self.context.is_user(owner) else f"{owner}'s"
            alias = Alias(text=f"{whose} {tie.replace('_', '-')}"[:MAX_NAME], kind="tie", key=key)
            self.add_alias(entity_id, alias, FoundEntity(entity=entity, step="tie"))

    def owner_of(self, name: SpokenName) -> UUID | None:
        """The owner of the tie in a name: who is named ("Tom's wife"), else the speaker. In "my wife's dog" the wife.

        Of several Toms, "Tom's wife Eva" is of the one whose wife is called so. None for an owner whose text is too
        long for a name. A speaker called "my wife" has this as a proper name.
        """
        owner = name.owner if name.owner is not None else self.context.other_speaker
        if self.context.is_user(owner):
            return self.user().entity_id
        if owner is None or len(owner) > MAX_NAME:
            return None
        spoken = read_name(owner)
        if spoken is None:
            return None
        if name.owner is None and spoken.tie is not None and spoken.owner is None:
            spoken = SpokenName(text=spoken.text, name=spoken.text)
        if spoken.tie is None and spoken.origin is None:
            called = (one.entity_id for one in self.registry.of_name(spoken.key))
            ties = {f"{name.tie} of {one}": one for one in called}
            owners = {ties[key] for one in self.registry.of_name(name.key) for key in one.keys("tie") & ties.keys()}
            if len(owners) == 1:
                return owners.pop()
        found = self.entity_of(spoken, "person")
        return found[0] if found else None

    def user(self) -> KnownEntity:
        """The user's entity; registered where it is new, unless one known person already has a name of the user."""
        context, names = self.context, self.context.user_names
        if names and context.speaker is not None and context.other_speaker is None:
            names = (context.speaker, *names)  # the first one names the entity
        known = [(name[:MAX_NAME], name_key(name)) for name in list(dict.fromkeys(names))[:MAX_USER_NAMES]]
        aliases = [Alias(text=name, key=key) for name, key in known if key]
        if (user := self.registry.user()) is not None:
            for alias in aliases:
                self.add_alias(user.entity_id, alias, FoundEntity(entity=user, step="user"))
            return self.registry[user.entity_id]
        found = {one.entity_id: one for alias in aliases for one in self.registry.of_name(alias.key)}
        called = tuple(found.values())
        mark = Alias(text=aliases[0].text if aliases else USER, kind="user", key="user")
        if len(called) == 1 and called[0].type in ("person", "other") and not marks_of(called[0]):
            self.add_alias(called[0].entity_id, mark, FoundEntity(entity=called[0], step="exact"))
            return self.registry[called[0].entity_id]
        finding = FoundEntity(step="user", compared=called)
        return self.registry[self._register(mark.text, "person", (mark, *aliases), finding)]

    def report_taken(self, name: str, holders: Sequence[KnownEntity]) -> None:
        """Report a name that stays with its holder: a person may move it."""
        known = next((one.entity_id for one in holders if one.entity_id not in self.new), None)
        self.unlinked.append(UnlinkedName(name=name, reason="name_taken", entity_id=known))

    def propose_tie_merge(self, name: SpokenName, tie_key: str | None, found: KnownEntity) -> None:
        """Propose to merge a wife known without a name into Ana, who is known by her name, after "my wife Ana"."""
        tied = self.registry.of_tie(tie_key) if tie_key and name.key else []
        nameless = [one for one in tied if not names_of(one) and not one.keys("user") and one.entity_id not in self.new]
        if len(nameless) == 1 and found.entity_id not in {nameless[0].entity_id, *self.new}:
            self.propose(ProposedMerge(nameless[0], found, name.text))

    def propose(self, merge: ProposedMerge) -> None:
        """Propose to merge two known entities; the user is always the target."""
        if merge.merged.keys("user"):
            merge = merge._replace(merged=merge.into, into=merge.merged)
        self.proposed.setdefault((merge.merged.entity_id, merge.into.entity_id), merge)

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
