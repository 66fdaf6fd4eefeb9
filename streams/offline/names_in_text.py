"""Names, ties, aliases and relations in a text, found without a model in the clear cases."""

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
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
    told_name,
)
from mnemolog.streams.text.differences import USER, is_user_word
from mnemolog.streams.text.patterns import compiled, tables
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATES, SENTENCE_STARTERS, SMALL_WORDS

_TABLES: Final = tables(Path(__file__).with_name("aliases.toml"))
_NAME: Final = rf"(?-i:{NAME}(?: {NAME})?)"
_PARTS: Final = _TABLES["parts"] | {
    "name": rf"[\"']?{_NAME}[\"']?",
    "my_tie": rf"(?:(?:{WORDS['my']}) (?:{ANY_TIE}),? )?",
    "bearer": rf"(?<!\w){{my_tie}}{_NAME}",
}
_FORMS: Final = tuple(compiled(text, _PARTS) for text in _TABLES["forms"].values())
_NO_NAMES: Final = PRONOUNS | SENTENCE_STARTERS | DATES.keys()
_TIE: Final = re.compile(ANY_TIE, re.IGNORECASE)
_MY_TIE: Final = re.compile(rf"^{_PARTS['my_tie']}", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedAlias:
    """The words of a text that give somebody another name: whose name it is, and the name."""

    words: str
    bearer: str
    alias: str


def aliases_in(text: str) -> Iterator[StatedAlias]:
    """Each name that is said to be another one of somebody; typewriter quotes are expected."""
    for form in _FORMS:
        for match in form.finditer(text):
            got = {group.partition("_")[0]: said for group, said in match.groupdict().items() if said}
            bearer, alias = got["who"], got["alias"].strip("\"'")
            if all(is_another_name(said) for said in (_MY_TIE.sub("", bearer), alias)):
                yield StatedAlias(words=match[0], bearer=bearer, alias=alias)


def is_another_name(said: str) -> bool:
    """Whether it is no word that merely has a capital: "Everyone calls Ana Grandma", "He goes by Monday"."""
    return said.partition(" ")[0].casefold() not in _NO_NAMES and not _TIE.fullmatch(said)


TITLED: Final = rf"(?:{WORDS['titles']})\.? {NAME}(?: {NAME})?"
"""The pattern of a name with a title, in which case counts."""
_NAMES: Final = rf"(?P<name>{TITLED}|{NAME}(?: {NAME})?)"
_NAMED_TIES_MY_TIE: Final = rf"(?<!\w)(?i:{WORDS['my']}) (?P<tie>(?i:{TIE}))"
_TIE_FIRST: Final = re.compile(
    rf"{_NAMED_TIES_MY_TIE} (?:(?:{WORDS['called']}) {_NAMES}|(?:{WORDS['is']}) (?P<titled>{TITLED}))"
)
_TIE_IS: Final = re.compile(rf"{_NAMED_TIES_MY_TIE} (?:{WORDS['is']}) (?P<name>{NAME}(?: {NAME})?)")
_NAME_FIRST: Final = re.compile(
    rf"(?<!\w){_NAMES}(?:,| (?:{WORDS['is']})) (?i:{WORDS['my']}) (?P<tie>(?i:{TIE}))(?!\w|'s)"
)
_ENDED: Final = re.compile(rf"(?<!\w){_NAMES}(?:{WORDS['ended']}) (?i:{WORDS['my']}) (?P<tie>(?i:{TIE}))(?!\w|'s)")
_ENDED_BOTH: Final = re.compile(rf"(?<!\w){_NAMES} (?i:{WORDS['ended_both']}) (?P<tie>(?i:{TIE}))s(?!\w)")
_MEMBERS: Final = re.compile(rf"(?<!\w)(?i:{WORDS['my']}) (?i:{GROUP})(?P<names> {NAME}(?:(?:, | and ){NAME})+)")
_NAMED: Final = re.compile(NAME)
_OWNED: Final = re.compile(rf"(?<!\w){NAME}(?:'s|(?<=s)') (?i:{TIE})(?!\w|'s)(?: {NAME})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTie:
    """The words of a text that name somebody by a tie, the tie, and the name as it is said otherwise.

    `whom` goes on after "my": "brother Tom". "My boss is German" has no common first name.
    """

    words: str
    tie: str
    whom: str
    is_of_common_name: bool = False


def introductions_in(text: str) -> Iterator[NamedTie]:
    """Who is introduced with a tie to the speaker; typewriter quotes are expected."""
    for pattern in (_TIE_FIRST, _NAME_FIRST):
        yield from _named_ties(pattern, text)
    yield from (one for one in _named_ties(_TIE_IS, text) if one.is_of_common_name)


def ended_ties_in(text: str) -> Iterator[NamedTie]:
    """Who is named as what they are no longer to the speaker: "Ana is no longer my wife" or friend."""
    for pattern in (_ENDED, _ENDED_BOTH):
        yield from _named_ties(pattern, text)


def _named_ties(pattern: re.Pattern[str], text: str) -> Iterator[NamedTie]:
    for match in pattern.finditer(text):
        name = match["name"] or match.groupdict()["titled"]
        if TIE_TYPES[tie_of(match)] != "group" and name.partition(" ")[0].casefold() not in PRONOUNS:
            is_common = bool(forms_of(name_key(name).partition(" ")[0]))
            whom = f"{match['tie']} {name}"
            yield NamedTie(words=match[0], tie=tie_of(match), whom=whom, is_of_common_name=is_common)


def members_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """The groups of the speaker's whose members are named ("my kids Leo and Mia"), each with their names."""
    for match in _MEMBERS.finditer(text):
        yield tie_of(match), _NAMED.findall(match["names"])


def owned_ties_in(text: str) -> Iterator[NamedTie]:
    """The ties to others who are named, as they are said."""
    for match in _OWNED.finditer(text):
        yield NamedTie(words=match[0], tie=tie_of(match), whom=match[0])


_VALUE_TYPES: Final[dict[str, EntityType]] = {"home_city": "place", "home_country": "place", "employer": "organisation"}
_INNER_NAME: Final = re.compile(rf"(?<=[\w,] ){NAME}(?: {NAME}){{0,2}}")
_FIRST_NAME: Final = re.compile(rf"^\W*(?P<name>{NAME}(?: {NAME}){{0,2}})")
_TITLED: Final = re.compile(rf"(?<!\w){TITLED}")
_ANOTHER: Final = re.compile(rf"(?<!\w)(?i:{WORDS['another']}) {NAME}(?: {NAME})?")
_BEGINNINGS: Final = SMALL_WORDS | frozenset(WORDS["no_names"].split("|"))
_NAMES_IN_TEXT_NO_NAMES: Final = _BEGINNINGS | DATES.keys()
_IS_OR_HAS: Final = re.compile(rf" (?:{WORDS['is_or_has']})(?!\w)")
_ORIGINS: Final = frozenset(WORDS["origins"].split("|"))
_ENDINGS: Final = ("ed", "ing")
_GAP: Final = " , "  # in the place of what was read: what follows stands inside the sentence
MAX_HEARD: Final = 50
"""Sentences whose names are known in those that follow."""
MIN_SHARED: Final = 3
"""Letters that a name at the beginning of a sentence shares at least with a longer or shorter one that was said."""


def value_entities(key: str, value: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """What the value of a key names: a place, an organisation, or somebody or something of the subject's."""
    if key in _VALUE_TYPES:
        return tuple(_named(value, _VALUE_TYPES[key], "object"))
    if key in TIE_TYPES:
        whose = f"{subject}'s" if subject else "my"
        return tuple(_named(f"{whose} {key} {value}", TIE_TYPES[key], "object"))
    return ()


def sentence_entities(said: str, subject: str | None, named: Collection[str] = ()) -> tuple[NamedEntity, ...]:
    """What an English sentence of `subject` names besides, each once. `named` are `names_heard` before it."""
    marked, rest = _marked(said, subject, named)
    names = (
        name
        for name in _bare_names(rest, named)
        if not (is_user_word(name) or any(word in DATES for word in _words(name)))
    )
    found = {entity.name: entity for entity in (*map(_bare_entity, names), *marked)}
    order = dict.fromkeys(entity.name for entity in marked) | found
    return tuple(found[name] for name in order)[:MAX_ENTITIES]


def names_heard(before: Iterable[str]) -> frozenset[str]:
    """The first words of the names in the last of these sentences, in the form in which names are compared."""
    return frozenset[str]().union(*map(_first_words, deque(before, maxlen=MAX_HEARD)))


@lru_cache(maxsize=512)  # a sentence is before each of those that follow
def _first_words(said: str) -> frozenset[str]:
    names = (*(entity.name for entity in sentence_entities(said, None)), *(given.alias for given in aliases_in(said)))
    read = filter(None, map(read_name, names))
    return frozenset(name.key.partition(" ")[0] for name in read if name.key)


def _marked(said: str, subject: str | None, named: Collection[str]) -> tuple[Sequence[NamedEntity], str]:
    """What has a tie, an origin or a title, and the text without it."""
    whose = f"{subject}'s" if subject else "my"
    found: list[NamedEntity] = []
    rest = said
    for given in aliases_in(said):
        rest = rest.replace(given.words, _GAP)
        found.extend(_named(told_name(given.bearer, subject), "other", "object"))
    for one in (*introductions_in(said), *ended_ties_in(said)):
        rest = rest.replace(one.words, _GAP)
        found.extend(_named(f"{whose} {one.whom}", TIE_TYPES[one.tie], "object"))
    for _, names in members_in(rest):
        for name in names:
            found.extend(_named(name, "person", "object"))
    for tie, words in ties_in(rest):
        rest = rest.replace(words, _GAP)
        found.extend(_named(told_name(words, subject), TIE_TYPES[tie], "object"))
    for one in owned_ties_in(said):
        rest = rest.replace(one.words, _GAP)
        found.extend(_named(one.whom, TIE_TYPES[one.tie], "object"))
    for words in names_with_origin(rest):
        if _has_clear_origin(words, named, is_first=rest.startswith(words)):
            rest = rest.replace(words, _GAP)
            found.extend(_named(words, "person", "object"))
    for pattern, kind in ((_TITLED, "person"), (_ANOTHER, "other")):
        found.extend(entity for match in pattern.finditer(rest) for entity in _named(match[0], kind))
        rest = pattern.sub(_GAP, rest)
    return found, rest


def _named(name: str, kind: EntityType, role: Role = "mention") -> Iterator[NamedEntity]:
    """The entity of a name; none where it is too long to be one."""
    if len(name) <= MAX_NAME:
        yield NamedEntity(name=name, type=kind, role=role)


def _has_clear_origin(words: str, named: Collection[str], *, is_first: bool) -> bool:
    """Whether "Tom from the pub" begins with a name: at the beginning of a sentence it may be "Apart from meetings"."""
    first, name = _words(words)[0], read_name(words)
    is_common = name is not None and name.origin in _ORIGINS
    return first not in _BEGINNINGS and (not is_first or is_common or _is_known(first, named))


def _bare_entity(name: str) -> NamedEntity:
    first, _, surname = name_key(name).partition(" ")
    is_person = surname and forms_of(first)  # a first name alone may be that of a dog
    is_place = name.casefold() in CITIES | COUNTRIES
    return NamedEntity(name=name, type="place" if is_place else "person" if is_person else "other")


def _bare_names(text: str, named: Collection[str]) -> Iterator[str]:
    """Names inside a sentence, and one at its beginning."""
    first = _FIRST_NAME.match(text)
    start = 0
    if first and (
        _is_first_name(_words(first["name"]), named) or _is_said_again(first["name"], first.end(), text, named)
    ):
        start = first.end()
        yield first["name"]
    for match in _INNER_NAME.finditer(text, start):
        yield match[0]


def _is_first_name(words: Sequence[str], named: Collection[str]) -> bool:
    """Whether these words, which begin a sentence with capitals, are a name: known, or of two words and no verb.

    Of two words of which the second is known, the first is none: "Congrats Ana".
    """
    first = words[0]
    if _is_known(first, named) or len(words) == 1:
        return _is_known(first, named)
    return not (first in _NAMES_IN_TEXT_NO_NAMES or first.endswith(_ENDINGS) or _is_known(words[1], named))


def _is_said_again(name: str, end: int, text: str, named: Collection[str]) -> bool:
    """Whether a name that is a small word as well ("Mia") was said before, and now is or has something."""
    word = name.casefold()
    return word in named and word not in DATES and bool(_IS_OR_HAS.match(text, end))


def _is_known(word: str, named: Collection[str]) -> bool:
    key = name_key(word)
    return word not in _NAMES_IN_TEXT_NO_NAMES and (bool(forms_of(key)) or any(_share(key, other) for other in named))


def _share(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= MIN_SHARED and long.startswith(short))


def _words(name: str) -> list[str]:
    return name.casefold().split()


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
    return (match["name"] for match in _AT_NAME.finditer(said) if not _relations_in_text_is_first_name(match["name"]))


def with_workplaces_and_homes(
    entities: Sequence[NamedEntity], relations: Collection[NamedRelation]
) -> tuple[NamedEntity, ...]:
    """The entities with those where somebody is said to work or live: organisations and places, but for first names."""
    kinds = {one.object: _PLACE_TYPES[one.predicate] for one in relations if one.predicate in _PLACE_TYPES}
    missing = [NamedEntity(name=name) for name in kinds if name not in {one.name for one in entities}]
    return tuple(
        one.model_copy(update={"type": kinds[one.name]})
        if one.type == "other" and one.name in kinds and not _relations_in_text_is_first_name(one.name)
        else one
        for one in (*entities, *missing)
    )[:MAX_ENTITIES]


def _relations_in_text_is_first_name(name: str) -> bool:
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
