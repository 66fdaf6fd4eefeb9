"""Names, ties, other names and relations in an English sentence, found by patterns in the clear cases.

`subject` is who speaks: "my brother Tom" is "Alice's brother Tom" where Alice does. Typewriter quotes are expected.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from mnemolog.schemas.entities import (
    MAX_ENTITIES,
    MAX_NAME,
    SAME_AS,
    EntityType,
    NamedEntity,
    NamedRelation,
    Role,
    read_predicate,
)
from mnemolog.schemas.entities import WORDS as PREDICATE_WORDS
from mnemolog.streams.entities.names import (
    ANY_TIE,
    GROUP,
    NAME,
    PRONOUNS,
    TIE,
    TIE_TYPES,
    WORDS,
    forms_of,
    name_key,
    names_with_origin,
    read_name,
    tie_of,
    ties_in,
    with_owner,
)
from mnemolog.streams.text.differences import USER, is_user_word
from mnemolog.streams.text.patterns import compiled, tables
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATES, SENTENCE_STARTERS, SMALL_WORDS

_NAME: Final = rf"{NAME}(?: {NAME})?"
_MY_TIE: Final = rf"(?<!\w)(?i:{WORDS['my']}) (?P<tie>(?i:{TIE}))"
_TITLED: Final = rf"(?:{WORDS['titles']})\.? {_NAME}"
_TITLED_OR_NAME: Final = rf"(?P<name>{_TITLED}|{_NAME})"
_INTRODUCTIONS: Final = (
    re.compile(rf"{_MY_TIE} (?:{WORDS['called']}) {_TITLED_OR_NAME}"),
    re.compile(rf"(?<!\w){_TITLED_OR_NAME}(?:,| (?:{WORDS['is']})) (?i:{WORDS['my']}) (?P<tie>(?i:{TIE}))(?!\w|'s)"),
)
_TIE_IS: Final = re.compile(rf"{_MY_TIE} (?:{WORDS['is']}) {_TITLED_OR_NAME}")
"""Introduces only a title or a known first name: "my boss is German"."""
_ENDED: Final = (
    re.compile(rf"(?<!\w){_TITLED_OR_NAME}(?:{WORDS['ended']}) (?i:{WORDS['my']}) (?P<tie>(?i:{TIE}))(?!\w|'s)"),
    re.compile(rf"(?<!\w){_TITLED_OR_NAME} (?i:{WORDS['ended_both']}) (?P<tie>(?i:{TIE}))s(?!\w)"),
)
_OVER: Final = re.compile(rf"(?<!\w)(?:{WORDS['over']}) $", re.IGNORECASE)
"""The words right before "my wife" in a sentence that says that she no longer is."""
_OWNED: Final = re.compile(rf"(?<!\w){NAME}(?:'s|(?<=s)') (?i:{TIE})(?!\w|'s)(?: {NAME})?")
_WITH_TITLE: Final = re.compile(rf"(?<!\w){_TITLED}")
_INNER_NAME: Final = re.compile(rf"(?<=[\w,] ){NAME}(?: {NAME}){{0,2}}")
_FIRST_NAME: Final = re.compile(rf"^\W*(?P<name>{NAME}(?: {NAME}){{0,2}})")
_IS_OR_HAS: Final = re.compile(rf" (?:{WORDS['is_or_has']})(?!\w)")
_ANOTHER: Final = re.compile(rf"(?<!\w)(?i:{WORDS['another']}) {_NAME}")
_MEMBERS: Final = re.compile(rf"(?<!\w)(?i:{WORDS['my']}) (?i:{GROUP})(?P<names> {NAME}(?:(?:, | and ){NAME})+)")
MIN_SHARED: Final = 3
"""Letters that a name at the beginning of a sentence shares at least with a longer or shorter one that was heard."""
_GAP: Final = " , "  # in the place of a name that was read: the words after it stand inside the sentence
_VALUE_TYPES: Final[dict[str, EntityType]] = {"home_city": "place", "home_country": "place", "employer": "organisation"}

_ALIAS_TABLES: Final = tables(Path(__file__).with_name("aliases.toml"))
_ALIAS_PARTS: Final = _ALIAS_TABLES["parts"] | {
    "name": rf"[\"']?(?-i:{_NAME})[\"']?",
    "my_tie": rf"(?:(?:{WORDS['my']}) (?:{ANY_TIE}),? )?",
    "bearer": rf"(?<!\w){{my_tie}}(?-i:{_NAME})",
}
_ALIAS_FORM: Final = compiled(_ALIAS_TABLES["forms"]["english"], _ALIAS_PARTS)
_LEADING_TIE: Final = re.compile(rf"^{_ALIAS_PARTS['my_tie']}", re.IGNORECASE)
_TIE_ALONE: Final = re.compile(ANY_TIE, re.IGNORECASE)
_NO_NAMES: Final = SMALL_WORDS | SENTENCE_STARTERS | PRONOUNS | DATES.keys() | frozenset(WORDS["no_names"].split("|"))


def is_known_first_name(word: str, heard: Collection[str] = ()) -> bool:
    """Whether a word is a common first name, or a longer or shorter form of a name that was `heard`."""
    key = name_key(word)
    pairs = (sorted((key, other), key=len) for other in heard)
    is_form = key in heard or any(len(short) >= MIN_SHARED and long.startswith(short) for short, long in pairs)
    return word.casefold() not in _NO_NAMES and (is_form or bool(forms_of(key)))


@lru_cache(maxsize=512)  # a sentence is before each sentence that follows, and before the turns after it
def names_heard(said: str) -> frozenset[str]:
    """The first words of the names in a sentence, without ties, in the form in which names are compared."""
    names = (*(entity.name for entity in sentence_entities(said, None)), *(given.alias for given in aliases_in(said)))
    return frozenset(name.key.partition(" ")[0] for name in map(read_name, names) if name and name.key)


def sentence_entities(  # noqa: C901, PLR0912 - one loop a form, in the order in which the forms are looked for
    said: str, subject: str | None, heard: Collection[str] = ()
) -> tuple[NamedEntity, ...]:
    """The entities that a sentence names, each once: first names with a tie, an origin or a title, then bare names.

    `heard` are the `names_heard` before it, which may begin a sentence.
    """
    found: dict[str, NamedEntity] = {}
    rest = said

    def take(words: str, name: str, kind: EntityType, role: Role = "mention") -> None:
        nonlocal rest
        rest = rest.replace(words, _GAP)
        if len(name) <= MAX_NAME:
            found.setdefault(name, NamedEntity(name=name, type=kind, role=role))

    for given in aliases_in(said):
        take(given.words, with_owner(given.bearer, subject), "other", "object")
    for pattern in (*_INTRODUCTIONS, _TIE_IS, *_ENDED):
        for words, tie, whom in _ties(pattern, rest):
            take(words, f"{_whose(subject)} {whom}", TIE_TYPES[tie], "object")
    for _, names in members_in(rest):
        for name in names:
            take(name, name, "person", "object")
    for tie, words in ties_in(rest):
        take(words, with_owner(words, subject), TIE_TYPES[tie], "object")
    for match in _OWNED.finditer(said):
        take(match[0], match[0], TIE_TYPES[tie_of(match)], "object")
    for words in names_with_origin(rest):
        if words.partition(" ")[0].casefold() not in _NO_NAMES:
            take(words, words, "person", "object")
    for match in _WITH_TITLE.finditer(rest):
        take(match[0], match[0], "person")
    for match in _ANOTHER.finditer(rest):
        take(match[0], match[0], "other")
    for name in _bare_names(rest, heard):
        if not (is_user_word(name) or any(word in DATES for word in name.casefold().split())):
            is_person = " " in name and is_known_first_name(name.partition(" ")[0])  # "Rex" alone may be a dog
            is_place = name.casefold() in CITIES | COUNTRIES
            take(name, name, "place" if is_place else "person" if is_person else "other")
    return tuple(found.values())[:MAX_ENTITIES]


def members_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """The groups of the speaker's whose members are named ("my kids Leo and Mia"), each with their names."""
    return ((tie_of(match), re.findall(NAME, match["names"])) for match in _MEMBERS.finditer(text))


def _bare_names(text: str, heard: Collection[str]) -> Iterator[str]:
    """Names inside a sentence; at its beginning a known first name, or two words with capitals that no verb is of."""
    first, start = _FIRST_NAME.match(text), 0
    if first:
        words = first["name"].casefold().split()
        is_verb = words[0] in _NO_NAMES or words[0].endswith(("ed", "ing"))
        is_second = len(words) > 1 and is_known_first_name(words[1], heard)  # "Congrats Ana"
        is_again = words[0] in set(heard) - DATES.keys() and _IS_OR_HAS.match(text, first.end())  # "Mia", a small word
        if is_again or is_known_first_name(words[0], heard) or (len(words) > 1 and not is_verb and not is_second):
            start = first.end()
            yield first["name"]
    for match in _INNER_NAME.finditer(text, start):
        yield match[0]


def _ties(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str, str]]:
    """The words that name somebody by a tie, the tie, and its words with the name ("brother Tom")."""
    for match in pattern.finditer(text):
        tie, name = tie_of(match), match["name"]
        is_name = pattern is not _TIE_IS or _WITH_TITLE.match(name) or is_known_first_name(name.partition(" ")[0])
        if is_name and TIE_TYPES[tie] != "group" and name.partition(" ")[0].casefold() not in PRONOUNS:
            yield match[0], tie, f"{match['tie']} {name}"


def _whose(subject: str | None) -> str:
    return f"{subject}'s" if subject else "my"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedAlias:
    """The words of a text that give somebody another name: whose name it is, and the name."""

    words: str
    bearer: str
    alias: str


def aliases_in(text: str) -> Iterator[StatedAlias]:
    """Each name that a text says to be another name of somebody: "Everyone calls my aunt Margarethe Gretel"."""
    for match in _ALIAS_FORM.finditer(text):
        got = {group.partition("_")[0]: said for group, said in match.groupdict().items() if said}
        bearer, alias = got["who"], got["alias"].strip("\"'")
        names = (_LEADING_TIE.sub("", bearer), alias)
        if all(one.partition(" ")[0].casefold() not in _NO_NAMES and not _TIE_ALONE.fullmatch(one) for one in names):
            yield StatedAlias(words=match[0], bearer=bearer, alias=alias)


def stated_aliases(said: str, subject: str | None) -> Iterator[NamedRelation]:
    """The relations `same_as` of a sentence."""
    for given in aliases_in(said):
        yield from _relation(with_owner(given.bearer, subject), SAME_AS, given.alias)


def stated_members(said: str, subject: str | None) -> Iterator[NamedRelation]:
    """The relations of the members of the subject's groups: "my kids Leo and Mia"."""
    for tie, names in members_in(said):
        for name in names:
            yield from (one.model_copy(update={"strength": "medium"}) for one in _relation(subject, tie, name))


def value_entities(key: str, value: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """What the value of a key names: a place, an organisation, or somebody or something of the subject's."""
    tie = key in TIE_TYPES
    name, kind = (f"{_whose(subject)} {key} {value}", TIE_TYPES[key]) if tie else (value, _VALUE_TYPES.get(key))
    return (NamedEntity(name=name, type=kind, role="object"),) if kind and len(name) <= MAX_NAME else ()


def value_relations(key: str, value: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """What the value of a key is to the subject: a home, an employer, somebody or something of theirs."""
    predicate, entities = read_predicate(key), value_entities(key, value, subject)
    return tuple(one for entity in entities if predicate for one in _relation(subject, predicate.word, entity.name))


def ended_relations(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The ties of the subject that a sentence says to be over: "Ana is no longer my wife"."""
    found, rest = {}, said
    for pattern in _ENDED:
        for words, tie, whom in _ties(pattern, said):
            rest = rest.replace(words, _GAP)
            found[f"{_whose(subject)} {whom}"] = tie
    for tie, words in ties_in(rest):
        places = re.finditer(rf"{re.escape(words)}(?!'s)", rest)
        if any(_OVER.search(rest[: place.start()]) for place in places):
            found[with_owner(words, subject)] = tie
    return tuple(one for name, tie in found.items() for one in _relation(subject, tie, name))


def ended_values(keys: Collection[str], value: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The relations that are over where the value of a key has ended; without a value, by the name of a lone key."""
    if not value:
        return tuple(
            one for key in keys if len(keys) == 1 for one in _relation(subject, key, f"{_whose(subject)} {key}")
        )
    words = {PREDICATE_WORDS[key].predicate: key for key in sorted(keys) if key in PREDICATE_WORDS}
    return tuple(one for key in words.values() for one in _relation(subject, key, value))


def _relation(subject: str | None, predicate: str, name: str) -> Iterator[NamedRelation]:
    """A relation; nothing where a name is too long."""
    if max(len(subject or ""), len(name)) <= MAX_NAME:
        yield NamedRelation(subject=subject or USER, predicate=predicate, object=name)
