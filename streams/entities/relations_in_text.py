"""Finds relations in a text without a model, in the clear cases: what fills a slot, and a tie that is over."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from mnemolog.schemas.entities.model import MAX_ENTITIES, MAX_NAME, EntityType, NamedEntity
from mnemolog.schemas.entities.relations import SAME_AS, NamedRelation, read_predicate
from mnemolog.schemas.entities.relations import WORDS as PREDICATE_WORDS
from mnemolog.streams.entities.alias.aliases_in_text import aliases_in
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.named_ties import ended_ties_in, members_in
from mnemolog.streams.entities.names_in_text import value_entities
from mnemolog.streams.entities.short_forms import forms_of
from mnemolog.streams.entities.spoken_names import ANY_TIE, NAME, WORDS, ties_in, told_name
from mnemolog.streams.text.subjects import USER

_OVER: Final = re.compile(rf"(?<!\w)(?:{WORDS['over']}) $", re.IGNORECASE)
"""What stands right before "my wife" where a sentence that ends something says that she is that no longer."""


_WHERE: Final = rf"(?!(?i:{WORDS['no_employers']})(?!\w)){NAME}(?: {NAME}){{0,2}}"
_PLACES: Final = {"employer": ("works", "works_no_more"), "lives_in": ("lives", "lives_no_more")}
_PLACE_TYPES: Final[dict[str, EntityType]] = {"employer": "organisation", "lives_in": "place"}
_AT_PLACE: Final = "|".join(WORDS[words] for forms in _PLACES.values() for words in forms)
_AT_NAME: Final = re.compile(rf"(?<!\w)(?i:{_AT_PLACE}) (?P<name>{_WHERE})")
_OF_SOMEBODY: Final = {
    predicate: tuple(
        re.compile(
            rf"^(?P<who>(?:(?i:{WORDS['my']}) (?i:{ANY_TIE})(?:,? {NAME}(?: {NAME})?)?)|{NAME}(?: {NAME})?)"
            rf"(?: (?i:{_AT_PLACE}) {_WHERE} and)? (?i:{WORDS[words]}) (?P<name>{_WHERE})"
        )
        for words in forms
    )
    for predicate, forms in _PLACES.items()
}
_CLUB: Final = re.compile(rf"(?<!\w)(?i:{WORDS['my']}) (?i:{WORDS['clubs']}) (?i:{WORDS['called']}) (?P<name>{_WHERE})")


def value_relations(key: str, value: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """What the value of a key is to the subject: a home, an employer, somebody or something of theirs."""
    if len(subject or "") > MAX_NAME:
        return ()
    named, read = value_entities(key, value, subject), read_predicate(key)
    return tuple(
        NamedRelation(subject=subject or USER, predicate=read.word, object=entity.name) for entity in named if read
    )


def _member_relations(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """What those are to the subject who are named as members of a group, in passing: "my kids Leo and Mia"."""
    return tuple(
        NamedRelation(subject=subject or USER, predicate=tie, object=name, strength="medium")
        for tie, names in members_in(said)
        for name in names
    )


def _club_relations(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The named group that the subject is a member of: "My band is called The Wet Socks"."""
    return tuple(
        NamedRelation(subject=subject or USER, predicate="member_of", object=match["name"])
        for match in _CLUB.finditer(said)
    )


def aliases_told(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The names that a sentence says to be of one: "Everyone calls my aunt Margarethe Gretel"."""
    told = ((told_name(given.bearer, subject), given.alias) for given in aliases_in(said))
    return tuple(same for bearer, alias in told for same in same_as(bearer, alias))


def same_as(bearer: str, alias: str) -> Iterator[NamedRelation]:
    """That two names are of one; nothing where one is too long."""
    if max(len(bearer), len(alias)) <= MAX_NAME:
        yield NamedRelation(subject=bearer, predicate=SAME_AS, object=alias)


def stated_in_text(said: str, subject: str | None, named: Collection[str] = ()) -> tuple[NamedRelation, ...]:
    """What a sentence that ends nothing says of the subject, of those who have a tie to them, and of those named."""
    if len(subject or "") > MAX_NAME:
        return ()
    others = relations_of_others(said, subject, named)
    return (*_member_relations(said, subject), *_club_relations(said, subject), *others)


def relations_of_others(
    said: str, subject: str | None, named: Collection[str] = (), *, ended: bool = False
) -> tuple[NamedRelation, ...]:
    """Where somebody works or lives, or no longer does: "My brother works at Acme".

    They have a tie to the subject, or one of the names that are known to be `named`.
    """
    found = ((predicate, forms[ended].match(said)) for predicate, forms in _OF_SOMEBODY.items())
    told = ((predicate, match, told_name(match["who"], subject)) for predicate, match in found if match)
    return tuple(
        NamedRelation(subject=name, predicate=predicate, object=match["name"])
        for predicate, match, name in told
        if max(len(name), len(match["name"])) <= MAX_NAME and (name in named or any(ties_in(match["who"])))
    )


def workplaces_and_homes(said: str) -> Iterator[str]:
    """The names that a sentence has for where anybody works or lives; none that is a first name."""
    return (match["name"] for match in _AT_NAME.finditer(said) if not _is_first_name(match["name"]))


def with_workplaces_and_homes(
    entities: Sequence[NamedEntity], relations: Collection[NamedRelation]
) -> tuple[NamedEntity, ...]:
    """The entities with those where somebody is said to work or live: organisations and places, but for first names."""
    kinds = {one.object: _PLACE_TYPES[one.predicate] for one in relations if one.predicate in _PLACE_TYPES}
    missing = [NamedEntity(name=name) for name in kinds if name not in {one.name for one in entities}]
    return tuple(
        one.model_copy(update={"type": kinds[one.name]})
        if one.type == "other" and one.name in kinds and not _is_first_name(one.name)
        else one
        for one in (*entities, *missing)
    )[:MAX_ENTITIES]


def _is_first_name(name: str) -> bool:
    return bool(forms_of(name_key(name).partition(" ")[0]))


def ended_relations(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The ties of the subject that a sentence says to be over: "Ana is no longer my wife"."""
    whose = f"{subject}'s" if subject else "my"
    found, rest, start = {}, said, 0
    for one in ended_ties_in(said):
        rest = rest.replace(one.words, " ")
        found[f"{whose} {one.whom}"] = one.tie
    for tie, words in ties_in(rest):
        at = rest.index(words, start)
        start = at + 1
        if _OVER.search(rest[:at]) and not rest[at:].startswith(f"{words}'s"):
            found[told_name(words, subject)] = tie
    return tuple(_over(subject, tie, name) for name, tie in found.items() if len(name) <= MAX_NAME)


def ended_values(keys: Collection[str], value: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """What is over where the value of one of these keys has ended; without a value, what is named by its key alone."""
    if not value:
        named = f"{subject}'s" if subject else "my"
        return tuple(_over(subject, key, f"{named} {key}") for key in keys if len(keys) == 1)
    words = {PREDICATE_WORDS[key].predicate: key for key in sorted(keys) if key in PREDICATE_WORDS}
    return tuple(_over(subject, key, value) for key in words.values() if len(value) <= MAX_NAME)


def _over(subject: str | None, tie: str, name: str) -> NamedRelation:
    return NamedRelation(subject=subject or USER, predicate=tie, object=name)
