"""Finds the entity that a name means, step by step. In doubt it is a new one, a possible twin of those that it may be.

The order: the user, an equal name, a tie ("my wife"), for people a part or a short form of a name, a misspelled name;
and for things a name that may mean the same, which makes a possible twin. A tie or an origin tells two of one name
apart: "my brother Tom" is not "Tom from work".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from mnemolog.schemas.entities.model import Alias, Comparison, EntityType, KnownEntity, ResolutionStep
from mnemolog.streams.entities.entity_registry import EntityRegistry, marks_of, names_of, same_type
from mnemolog.streams.entities.short_forms import forms_of, is_beginning_of
from mnemolog.streams.entities.similar.misspelled_names import likeness_of
from mnemolog.streams.entities.spoken_names import SpokenName, age_in

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
