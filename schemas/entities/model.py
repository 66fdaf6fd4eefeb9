"""Entities: the people, places and things that facts name, and the names that they have."""

from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import Record, Text

MAX_NAME: Final = 200
"""Characters of a name; what is longer is no name."""
MAX_ENTITIES: Final = 20
"""How many entities one fact may name."""
MAX_UNLINKED: Final = 50
"""How many names that link no fact are told of a source, and of a fact on its way."""
MAX_LINKS: Final = 2 * (MAX_ENTITIES + 1)
"""Links of a fact: its subject, those that it names, and an owner of each ("Ana's dog")."""
MAX_MERGED: Final = 20
"""How many entities one command may merge into another one."""
MAX_MOVED: Final = 100
"""How many facts, and how many names, a split may give to a new entity."""
MAX_SUMMARISED: Final = 60
"""How many facts a summary is written from at the most."""
MAX_SUMMARY: Final = 8000
"""Characters of a summary."""
HEAD_LETTERS: Final = 3
"""So many letters of its first word are the head of a name: its parts and its short forms are found by theirs."""
USER_HEAD: Final = "@user"
ENTITY_TYPES: Final = ("person", "place", "organisation", "product", "event", "animal", "other")
"""The types that are known; any other word in small letters is a type as well."""

EntityType = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,31}$")]
EntityName = Annotated[Text, Field(min_length=1, max_length=MAX_NAME)]
Role = Literal["subject", "object", "mention"]
"""What an entity is in a fact: whom it is about, what it says of them, or named besides."""
AliasKind = Literal["name", "tie", "user"]
"""A name ("Ana"), what somebody is to another one ("my wife"), or the user, who needs no name."""

ResolutionStep = Literal["user", "exact", "alias", "tie", "prefix", "diminutive", "fuzzy", "new"]
"""What found the entity of a name: it is the user, the name that it was registered by, another one of its names, what
it is to somebody, a part of its name, a short form, a misspelled one; or it was not known before."""


SummaryLanguage = Literal["facts", "english"]
"""A summary is in the language that most of its facts are in, or in English."""


class NamedEntity(Record):
    """An entity that a fact names, as it was said: "Ana", "my wife", "my brother Tom", "Tom from work"."""

    name: EntityName
    type: EntityType = "other"
    role: Role = "mention"


UnlinkedReason = Literal["not_said", "too_long", "too_many", "never_stored", "no_name", "no_new_fact", "name_taken"]
"""Why a name links no fact: a model named whom nobody said, it has too many letters, it is one too many of a fact or a
source, it has a word of a topic that is never stored, it names nobody ("she"), or only statements that became no new
fact have it. One that another entity has already became no name of the one that it was said of."""


class UnlinkedName(Record):
    """A name that was read in a source and that links no fact, and why.

    One of what is never stored is told by the topic. `step` and `compared` say how its entity was found where it was
    looked for; `entity_id` is that of a known one; of a name that is taken, whose it is.
    """

    name: EntityName
    reason: UnlinkedReason
    step: ResolutionStep | None = Field(default=None, exclude_if=lambda step: step is None)
    entity_id: UUID | None = Field(default=None, exclude_if=lambda entity_id: entity_id is None)
    compared: tuple[UUID, ...] = Field(default=(), exclude_if=lambda compared: not compared)


class Alias(Record):
    """One of the names of an entity. Equal keys of one kind are the same name; the text is how it was said first.

    The key is written by who resolves names, so that a rebuild does not depend on how names are compared today.
    """

    text: EntityName
    kind: AliasKind = "name"
    key: Annotated[Text, Field(min_length=1, max_length=2 * MAX_NAME)]

    @property
    def head(self) -> str:
        """What the alias is looked up by."""
        match self.kind:
            case "name":
                return name_head(self.key)
            case "tie":
                return tie_head(self.key.partition(" ")[0])
            case "user":
                return USER_HEAD


class KnownEntity(Record):
    """An entity with its names, the first of them its own; `subject_of` are those of some facts that are about it."""

    entity_id: UUID
    name: EntityName
    type: EntityType
    aliases: tuple[Alias, ...]
    possible_twins: tuple[UUID, ...] = ()
    subject_of: tuple[UUID, ...] = ()

    def keys(self, kind: AliasKind) -> frozenset[str]:
        """The keys of its names of one kind."""
        return frozenset(alias.key for alias in self.aliases if alias.kind == kind)


class EntityLink(Record):
    """The entity that a fact names in one role, and how it was found.

    `name` is how it was said; None where the fact says "the user", or nobody. `compared` are the entities that the
    name could have meant as well. `type` is what the source tells that the entity is, where nobody had told it.
    """

    entity_id: UUID
    role: Role
    name: EntityName | None = Field(default=None, exclude_if=lambda name: name is None)
    step: ResolutionStep
    compared: tuple[UUID, ...] = Field(default=(), exclude_if=lambda compared: not compared)
    type: EntityType | None = Field(default=None, exclude_if=lambda kind: kind is None)


def name_head(key: str) -> str:
    """What a name of this key is looked up by: the first letters of its first word."""
    return key.partition(" ")[0][:HEAD_LETTERS]


def name_ends(key: str) -> str:
    """The first and the last letter of a name without its origin: a slip within it leaves both."""
    name = key.partition(" (")[0]
    return name[:1] + name[-1:]


def tie_head(tie: str) -> str:
    """What the aliases of a tie, such as "wife", are looked up by."""
    return f"@{tie}"
