"""Entities: the people, places and things that facts name, their names, and the relations between them."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import IfAny, IfSet, Record, Text
from mnemolog.schemas.vector import Vector

_TABLES: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("ties.toml").read_text(encoding="utf-8")
)
TIES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {kind: _TABLES[kind] for kind in ("group", "person", "animal")}
)
"""The words for each tie, by the type of the entity that has it, in the order in which they are looked for."""
WORDS_AROUND_TIES: Final = _TABLES["words"]
"""Patterns of the words around ties and names."""


MAX_NAME: Final = 200
"""Characters of a name; what is longer is no name."""
MAX_ENTITIES: Final = 20
"""How many entities one fact may name."""
MAX_UNLINKED: Final = 50
"""How many names without a link one source, or one fact on its way, may list."""
MAX_NAME_VECTORS: Final = 20
"""How many names of one turn get vectors; the others of it are found by their words alone."""
MAX_LINKS: Final = 2 * (MAX_ENTITIES + 1)
"""Links of a fact: its subject, the other entities that it names, and an owner of each ("Ana's dog")."""
MAX_MERGED: Final = 20
"""How many entities one command may merge into another one."""
MAX_MOVED: Final = 100
"""How many facts, and how many names, a split may give to a new entity."""
MAX_SUMMARISED: Final = 60
"""How many facts a summary is written from at the most."""
MAX_SUMMARY: Final = 8000
"""Characters of a summary."""
MAX_NAME_REASON: Final = 300
"""Characters of why a model takes a name for that of an entity."""
HEAD_LETTERS: Final = 3
"""So many letters of its first word are the head of a name: its parts and its short forms are found by theirs."""
USER_HEAD: Final = "@user"
ENTITY_TYPES: Final = ("person", "place", "organisation", "product", "event", "animal", "other")
"""The types that are known; any other word in small letters is a type as well."""
BEINGS: Final = frozenset({"person", "animal"})
"""Types of which two entities are certainly two: of things it is often a matter of words what a statement is about."""

EntityType = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,31}$")]
EntityName = Annotated[Text, Field(min_length=1, max_length=MAX_NAME)]
Role = Literal["subject", "object", "mention"]
"""What an entity is in a fact: its subject, what the fact says of the subject, or a mention."""
NameReason = Annotated[Text, Field(min_length=1, max_length=MAX_NAME_REASON)]
AliasKind = Literal["name", "tie", "user"]
"""A name ("Ana"), what somebody is to another one ("my wife"), or the user, who needs no name."""

ResolutionStep = Literal["user", "exact", "alias", "tie", "prefix", "diminutive", "fuzzy", "model", "new"]
"""What found the entity of a name: it is the user, the name that it was registered by, another one of its names, what
it is to somebody, a part of its name, a short form, a misspelled one, a model that was asked; or it was not known
before."""
SummaryLanguage = Literal["facts", "english"]
"""A summary is in the language that most of its facts are in, or in English."""


class NamedEntity(Record):
    """An entity that a fact names, as it was said: "Ana", "my wife", "my brother Tom", "Tom from work"."""

    name: EntityName
    type: EntityType = "other"
    role: Role = "mention"


UnlinkedReason = Literal[
    "not_said", "too_long", "too_many", "never_stored", "no_name", "no_new_fact", "name_taken", "in_doubt"
]
"""Why a name links no fact. `not_said`: only the model has it, the source does not. `too_long`, `too_many`: it exceeds
a bound of a name, a fact or a source. `never_stored`: it has a word of such a topic. `no_name`: it names nobody
("she"). `no_new_fact`: only statements that became no new fact have it. `name_taken`: another entity has it.
`in_doubt`: it could mean several entities."""


class UnlinkedName(Record):
    """A name that was read in a source and that links no fact, and why.

    In the place of a name of a topic that is never stored stands the topic. `step` and `compared` say how its entity
    was looked for; `entity_id` is the known entity, or the entity that has a taken name.
    """

    name: EntityName
    reason: UnlinkedReason
    step: IfSet[ResolutionStep] = None
    entity_id: IfSet[UUID] = None
    compared: IfAny[tuple[UUID, ...]] = ()


class Alias(Record):
    """One of the names of an entity. Equal keys of one kind are the same name; the text is how it was said first.

    The key is written by who resolves names, so that a rebuild does not depend on how names are compared today.
    `vector` is the vector of a name with a meaning, where a turn gave the name.
    """

    text: EntityName
    kind: AliasKind = "name"
    key: Annotated[Text, Field(min_length=1, max_length=2 * MAX_NAME)]
    vector: IfSet[Vector] = None

    @property
    def head(self) -> str:
        match self.kind:
            case "name":
                return name_head(self.key)
            case "tie":
                return tie_head(self.key.partition(" ")[0])
            case "user":
                return USER_HEAD


class KnownEntity(Record):
    """An entity with its names, the first of them its own; `subject_of` are the asked facts that are about it.

    `hidden` are names that readers are not shown, as all facts that gave them were taken back. The entity is found by
    a hidden name, and gets it again where it is said again. `bearers` are, where entities were merged into it, its
    names with the entity that each was given to. `near` are the keys of the names that were looked up by their vectors
    and are near one of its names.
    """

    entity_id: UUID
    name: EntityName
    type: EntityType
    aliases: tuple[Alias, ...]
    hidden: tuple[Alias, ...] = ()
    bearers: tuple[tuple[UUID, Alias], ...] = ()
    possible_twins: tuple[UUID, ...] = ()
    subject_of: tuple[UUID, ...] = ()
    near: tuple[Text, ...] = ()

    def keys(self, kind: AliasKind) -> frozenset[str]:
        return frozenset(alias.key for alias in self.aliases if alias.kind == kind)

    @property
    def as_shown(self) -> "KnownEntity":
        """The entity with the names that are not hidden."""
        shown = tuple(alias for alias in self.aliases if alias not in self.hidden)
        return self.model_copy(update={"aliases": shown, "hidden": ()})


class EntityLink(Record):
    """The entity that a fact names in one role, and how it was found.

    `name` is how it was said; None where the fact says "the user", or nobody. `compared` are the entities that the
    name could have meant as well; `reason` is that of the model that was asked which entity the name means, or what
    speaks against the compared entities. `type` is what the source says that the entity is, where nobody had said it
    before.
    """

    entity_id: UUID
    role: Role
    name: IfSet[EntityName] = None
    step: ResolutionStep
    compared: IfAny[tuple[UUID, ...]] = ()
    reason: IfSet[NameReason] = None
    type: IfSet[EntityType] = None


class NameVector(Record):
    """The vector of a name of a turn, by the key of the name."""

    key: Text
    vector: Vector


class NameQuery(NameVector):
    """A name of a turn whose vector is compared with the vectors of names of known entities of its type."""

    type: EntityType


class AnsweredName(Record):
    """The answer of a model to the question whether a name of a turn means one of `twins`, with its reason.

    `entity_id` is None where the name means another entity, or nobody can say, or no valid answer came.
    """

    name: EntityName
    twins: Annotated[tuple[UUID, ...], Field(min_length=1)]
    entity_id: IfSet[UUID] = None
    reason: NameReason


_BEFORE_NAMES: Final = frozenset(
    word.casefold() for kind in ("titles", "older", "younger", "old") for word in WORDS_AROUND_TIES[kind].split("|")
)


def name_head(key: str) -> str:
    """What a name of this key is looked up by: the first letters of its first word that is no title and no age."""
    first, *rest = key.split(" ", 2)
    return (rest[0] if rest and first in _BEFORE_NAMES else first)[:HEAD_LETTERS]


def name_ends(key: str) -> str:
    """The first and the last letter of the last word of a name without its origin: a surname and a slip keep both."""
    word = key.partition(" (")[0].rpartition(" ")[2]
    return word[:1] + word[-1:]


def tie_head(tie: str) -> str:
    """What the aliases of a tie, such as "wife", are looked up by."""
    return f"@{tie}"


MAX_RELATIONS: Final = 20
"""How many relations one fact may state."""
MAX_PREDICATE: Final = 64
Strength = Literal["strong", "medium", "weak"]
"""How a fact states a relation: it is what the fact says; the fact names it in passing ("my wife Ana sings"), or it
only suggests it."""
SAME_AS: Final = "same_as"
"""The predicate of two names of one entity: it gives a name, or proposes a merge, and never becomes a relation."""
STRENGTHS: Final[tuple[Strength, ...]] = ("strong", "medium", "weak")
PredicateName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class NamedRelation(Record):
    """A relation between two entities that a fact names: the object is the subject's `predicate`.

    The names are as the fact has them, the predicate is a word as it was said ("wife", "works_at").
    """

    subject: EntityName
    predicate: PredicateName
    object: EntityName
    strength: Strength = "strong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A predicate: what an object is to its subject. `inverse` is what the subject is to the object, None if unknown.

    With a `single_valued` predicate a subject has one object at a time.
    """

    name: str
    inverse: str | None = None
    single_valued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPredicate:
    """What a word for a predicate means; where `is_reversed`, with the subject in the place of the object."""

    word: str
    predicate: Predicate
    is_reversed: bool = False


_PREFIXES: Final = ("is_", "are_", "has_", "my_", "a_", "the_")
_MAX_SAID: Final = 2 * MAX_PREDICATE
"""Characters of what is said for a predicate: with more, it is none."""
_GAPS: Final = re.compile(r"[^a-z0-9]+")


def _registry() -> Iterator[tuple[str, ReadPredicate]]:
    tables = tomllib.loads(Path(__file__).with_name("predicates.toml").read_text(encoding="utf-8"))
    for name, entry in tables.items():
        for before in ("", "former_") if entry.get("may_end") else ("",):
            is_single = entry.get("single_valued", False)
            predicate = Predicate(name=before + name, inverse=before + entry["inverse"], single_valued=is_single)
            inverse = (*entry.get("inverse_words", "").split(), entry["inverse"])
            words = (*entry.get("words", "").split(), name)
            for word, is_reversed in (*((one, True) for one in inverse), *((one, False) for one in words)):
                for prefix in (before, "ex_") if before else ("",):
                    read = ReadPredicate(word=prefix + word, predicate=predicate, is_reversed=is_reversed)
                    yield read.word, read


WORDS: Final[Mapping[str, ReadPredicate]] = dict(_registry())
"""What each known word for a predicate or its inverse means."""
PREDICATES: Final[Mapping[str, Predicate]] = {word.predicate.name: word.predicate for word in WORDS.values()}
"""The registered predicates; a relation that is stated by the inverse of one is kept by the predicate itself."""
ONE_AT_A_TIME: Final = tuple(one.name for one in PREDICATES.values() if one.single_valued)
"""Predicates of which a subject has one object at a time."""


def read_predicate(said: str) -> ReadPredicate | None:
    """What a word for a predicate means: one of the registry, else the word itself without an inverse.

    None for what is no word in Latin letters.
    """
    word = _GAPS.sub("_", said[:_MAX_SAID].casefold()).strip("_")
    for form in _forms(word):
        if form in WORDS:
            return WORDS[form]
        stem = form.removesuffix("_of")
        if stem != form and stem in WORDS:
            known = WORDS[stem]
            return ReadPredicate(word=form, predicate=known.predicate, is_reversed=not known.is_reversed)
    if not word or not word[0].isalpha() or len(word) > MAX_PREDICATE:
        return None
    return ReadPredicate(word=word, predicate=Predicate(name=word))


def name_of_predicate(said: str) -> str:
    """The predicate that a word means, read from its subject: that of "wife" is "spouse", of "employee" itself.

    A word that is none gives itself: no relation has it.
    """
    read = read_predicate(said)
    if read is None:
        return said
    return read.predicate.inverse or said if read.is_reversed else read.predicate.name


def is_same_as(said: str) -> bool:
    """Whether a word for a predicate says that two names are of one entity, which is no relation."""
    read = read_predicate(said)
    return read is not None and read.predicate.name == SAME_AS


def _forms(word: str) -> Iterator[str]:
    """The word, and without the small words before it: "is_the_wife_of", "wife_of"."""
    yield word
    while (prefix := next(filter(word.startswith, _PREFIXES), None)) is not None:
        word = word.removeprefix(prefix)
        yield word
