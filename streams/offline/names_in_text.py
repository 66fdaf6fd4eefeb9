"""Names, ties, other names and relations in an English sentence, found by patterns in the clear cases.

`subject` is who speaks: "my brother Tom" is "Alice's brother Tom" where Alice does. Typewriter quotes are expected.
"""

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
    with_owner,
)
from mnemolog.streams.text.differences import USER, is_user_word
from mnemolog.streams.text.patterns import compiled, tables
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATES, SENTENCE_STARTERS, SMALL_WORDS

_NAME: Final = rf"{NAME}(?: {NAME})?"
_MY: Final = rf"(?i:{WORDS['my']})"
_MY_TIE: Final = rf"(?<!\w){_MY} (?P<tie>(?i:{TIE}))"
_TITLE: Final = rf"(?:{WORDS['titles']})\.? {_NAME}"
_TITLE_OR_NAME: Final = rf"(?P<name>{_TITLE}|{_NAME})"

_ALIAS_TABLES: Final = tables(Path(__file__).with_name("aliases.toml"))
_ALIAS_PARTS: Final = _ALIAS_TABLES["parts"] | {
    "name": rf"[\"']?(?-i:{_NAME})[\"']?",
    "my_tie": rf"(?:(?:{WORDS['my']}) (?:{ANY_TIE}),? )?",
    "bearer": rf"(?<!\w){{my_tie}}(?-i:{_NAME})",
}
_ALIAS_FORMS: Final = tuple(compiled(text, _ALIAS_PARTS) for text in _ALIAS_TABLES["forms"].values())
_LEADING_TIE: Final = re.compile(rf"^{_ALIAS_PARTS['my_tie']}", re.IGNORECASE)
_TIE_ALONE: Final = re.compile(ANY_TIE, re.IGNORECASE)
_NO_ALIASES: Final = PRONOUNS | SENTENCE_STARTERS | DATES.keys()

_TIE_FIRST: Final = re.compile(
    rf"{_MY_TIE} (?:(?:{WORDS['called']}) {_TITLE_OR_NAME}|(?:{WORDS['is']}) (?P<titled>{_TITLE}))"
)
_TIE_IS: Final = re.compile(rf"{_MY_TIE} (?:{WORDS['is']}) (?P<name>{_NAME})")
_NAME_FIRST: Final = re.compile(rf"(?<!\w){_TITLE_OR_NAME}(?:,| (?:{WORDS['is']})) {_MY} (?P<tie>(?i:{TIE}))(?!\w|'s)")
_ENDED: Final = re.compile(rf"(?<!\w){_TITLE_OR_NAME}(?:{WORDS['ended']}) {_MY} (?P<tie>(?i:{TIE}))(?!\w|'s)")
_ENDED_BOTH: Final = re.compile(rf"(?<!\w){_TITLE_OR_NAME} (?i:{WORDS['ended_both']}) (?P<tie>(?i:{TIE}))s(?!\w)")
_MEMBERS: Final = re.compile(rf"(?<!\w){_MY} (?i:{GROUP})(?P<names> {NAME}(?:(?:, | and ){NAME})+)")
_OWNED: Final = re.compile(rf"(?<!\w){NAME}(?:'s|(?<=s)') (?i:{TIE})(?!\w|'s)(?: {NAME})?")
_OVER: Final = re.compile(rf"(?<!\w)(?:{WORDS['over']}) $", re.IGNORECASE)
"""What stands right before "my wife" where a sentence that ends something says that she no longer is."""

_VALUE_TYPES: Final[dict[str, EntityType]] = {"home_city": "place", "home_country": "place", "employer": "organisation"}
_INNER_NAME: Final = re.compile(rf"(?<=[\w,] ){NAME}(?: {NAME}){{0,2}}")
_FIRST_NAME: Final = re.compile(rf"^\W*(?P<name>{NAME}(?: {NAME}){{0,2}})")
_TITLED: Final = re.compile(rf"(?<!\w){_TITLE}")
_ANOTHER: Final = re.compile(rf"(?<!\w)(?i:{WORDS['another']}) {_NAME}")
_IS_OR_HAS: Final = re.compile(rf" (?:{WORDS['is_or_has']})(?!\w)")
_BEGINNINGS: Final = SMALL_WORDS | frozenset(WORDS["no_names"].split("|"))
_NO_NAMES: Final = _BEGINNINGS | DATES.keys()
_ORIGINS: Final = frozenset(WORDS["origins"].split("|"))
_GAP: Final = " , "  # in the place of what was read: what follows stands inside the sentence
MAX_HEARD: Final = 50
"""Sentences whose names are known in the sentences that follow."""
MIN_SHARED: Final = 3
"""Letters that a name at the beginning of a sentence shares at least with a longer or shorter one that was said."""

_WHERE: Final = rf"(?!(?i:{WORDS['no_employers']})(?!\w)){NAME}(?: {NAME}){{0,2}}"
_PLACES: Final = {"employer": ("works", "works_no_more"), "lives_in": ("lives", "lives_no_more")}
_PLACE_TYPES: Final[dict[str, EntityType]] = {"employer": "organisation", "lives_in": "place"}
_AT_PLACE: Final = "|".join(WORDS[words] for forms in _PLACES.values() for words in forms)
_AT_NAME: Final = re.compile(rf"(?<!\w)(?i:{_AT_PLACE}) (?P<name>{_WHERE})")
_OF_SOMEBODY: Final = {
    predicate: tuple(
        re.compile(
            rf"^(?P<who>(?:{_MY} (?i:{ANY_TIE})(?:,? {_NAME})?)|{_NAME})"
            rf"(?: (?i:{_AT_PLACE}) {_WHERE} and)? (?i:{WORDS[words]}) (?P<name>{_WHERE})"
        )
        for words in forms
    )
    for predicate, forms in _PLACES.items()
}
_CLUB: Final = re.compile(rf"(?<!\w){_MY} (?i:{WORDS['clubs']}) (?i:{WORDS['called']}) (?P<name>{_WHERE})")


def sentence_entities(said: str, subject: str | None, named: Collection[str] = ()) -> tuple[NamedEntity, ...]:
    """The entities that a sentence names, each once. `named` are the `names_heard` before it."""
    marked, rest = _marked(said, subject, named)
    found: dict[str, NamedEntity] = {}
    first_name = _FIRST_NAME.match(rest)
    if first_name is not None and not _begins_with_name(first_name, rest, named):
        first_name = None
    inner = (match[0] for match in _INNER_NAME.finditer(rest, first_name.end() if first_name else 0))
    for name in (*([first_name["name"]] if first_name else ()), *inner):
        if not (is_user_word(name) or any(word in DATES for word in name.casefold().split())):
            first, _, surname = name_key(name).partition(" ")
            is_person = surname and forms_of(first)  # a first name alone may be that of a dog
            is_place = name.casefold() in CITIES | COUNTRIES
            kind: EntityType = "place" if is_place else "person" if is_person else "other"
            found[name] = NamedEntity(name=name, type=kind)
    found |= {entity.name: entity for entity in marked}
    order = dict.fromkeys(entity.name for entity in marked) | found
    return tuple(found[name] for name in order)[:MAX_ENTITIES]


def value_entities(key: str, value: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """What the value of a key names: a place, an organisation, or somebody or something of the subject's."""
    if key in _VALUE_TYPES:
        return tuple(_named(value, _VALUE_TYPES[key], "object"))
    if key in TIE_TYPES:
        return tuple(_named(f"{_whose(subject)} {key} {value}", TIE_TYPES[key], "object"))
    return ()


def names_heard(before: Iterable[str]) -> frozenset[str]:
    """The first words of the names in the last of these sentences, in the form in which names are compared."""
    return frozenset[str]().union(*map(_first_words, deque(before, maxlen=MAX_HEARD)))


@lru_cache(maxsize=512)  # a sentence is before each of those that follow
def _first_words(said: str) -> frozenset[str]:
    names = (*(entity.name for entity in sentence_entities(said, None)), *(given.alias for given in aliases_in(said)))
    read = filter(None, map(read_name, names))
    return frozenset(name.key.partition(" ")[0] for name in read if name.key)


def _whose(subject: str | None) -> str:
    return f"{subject}'s" if subject else "my"


def _named(name: str, kind: EntityType, role: Role = "mention") -> Iterator[NamedEntity]:
    """The entity of a name; none where it is too long to be one."""
    if len(name) <= MAX_NAME:
        yield NamedEntity(name=name, type=kind, role=role)


def _marked(said: str, subject: str | None, named: Collection[str]) -> tuple[Sequence[NamedEntity], str]:
    """The entities with a tie, an origin or a title, and the text without their names."""
    found: list[NamedEntity] = []
    rest = said
    for given in aliases_in(said):
        rest = rest.replace(given.words, _GAP)
        found.extend(_named(with_owner(given.bearer, subject), "other", "object"))
    for tied in (*introductions_in(said), *ended_ties_in(said)):
        rest = rest.replace(tied.words, _GAP)
        found.extend(_named(f"{_whose(subject)} {tied.whom}", TIE_TYPES[tied.tie], "object"))
    for _, names in members_in(rest):
        for name in names:
            found.extend(_named(name, "person", "object"))
    for tie, words in ties_in(rest):
        rest = rest.replace(words, _GAP)
        found.extend(_named(with_owner(words, subject), TIE_TYPES[tie], "object"))
    for match in _OWNED.finditer(said):
        rest = rest.replace(match[0], _GAP)
        found.extend(_named(match[0], TIE_TYPES[tie_of(match)], "object"))
    for words in names_with_origin(rest):
        if _has_clear_origin(words, named, is_first=rest.startswith(words)):
            rest = rest.replace(words, _GAP)
            found.extend(_named(words, "person", "object"))
    for pattern, kind in ((_TITLED, "person"), (_ANOTHER, "other")):
        found.extend(entity for match in pattern.finditer(rest) for entity in _named(match[0], kind))
        rest = pattern.sub(_GAP, rest)
    return found, rest


def _has_clear_origin(words: str, named: Collection[str], *, is_first: bool) -> bool:
    """Whether "Tom from the pub" begins with a name: at the beginning of a sentence it may be "Apart from meetings"."""
    first, name = words.casefold().split()[0], read_name(words)
    is_common = name is not None and name.origin in _ORIGINS
    return first not in _BEGINNINGS and (not is_first or is_common or _is_known(first, named))


def _begins_with_name(first: re.Match[str], text: str, named: Collection[str]) -> bool:
    """Whether the words with capitals that begin a sentence are a name: known, or of two words and no verb.

    Of two words of which the second is known, the first is none: "Congrats Ana". A name that is a small word as well
    ("Mia") was said before, and now is or has something.
    """
    words = first["name"].casefold().split()
    if _is_known(words[0], named):
        return True
    if len(words) > 1 and not (words[0] in _NO_NAMES or words[0].endswith(("ed", "ing")) or _is_known(words[1], named)):
        return True
    word = first["name"].casefold()
    return word in named and word not in DATES and bool(_IS_OR_HAS.match(text, first.end()))


def _is_known(word: str, named: Collection[str]) -> bool:
    """Whether a word is a common first name, or a longer or shorter form of a name in `named`."""
    key = name_key(word)
    if word in _NO_NAMES:
        return False
    if forms_of(key):
        return True
    for other in named:
        short, long = sorted((key, other), key=len)
        if key == other or (len(short) >= MIN_SHARED and long.startswith(short)):
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedAlias:
    """The words of a text that give somebody another name: whose name it is, and the name."""

    words: str
    bearer: str
    alias: str


def aliases_in(text: str) -> Iterator[StatedAlias]:
    """Each name that a text says to be another name of somebody: "Everyone calls my aunt Margarethe Gretel"."""
    for form in _ALIAS_FORMS:
        for match in form.finditer(text):
            got = {group.partition("_")[0]: said for group, said in match.groupdict().items() if said}
            bearer, alias = got["who"], got["alias"].strip("\"'")
            if is_another_name(_LEADING_TIE.sub("", bearer)) and is_another_name(alias):
                yield StatedAlias(words=match[0], bearer=bearer, alias=alias)


def is_another_name(said: str) -> bool:
    """Whether it is no word that merely has a capital: "Everyone calls Ana Grandma", "He goes by Monday"."""
    return said.partition(" ")[0].casefold() not in _NO_ALIASES and not _TIE_ALONE.fullmatch(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTie:
    """The words of a text that name somebody by a tie to the speaker, and the tie.

    `whom` goes on after "my": "brother Tom". "My boss is German" has no common first name.
    """

    words: str
    tie: str
    whom: str
    is_of_common_name: bool


def introductions_in(text: str) -> Iterator[NamedTie]:
    """Who is introduced with a tie to the speaker."""
    for pattern in (_TIE_FIRST, _NAME_FIRST):
        yield from _named_ties(pattern, text)
    yield from (tied for tied in _named_ties(_TIE_IS, text) if tied.is_of_common_name)


def ended_ties_in(text: str) -> Iterator[NamedTie]:
    """Who is named as what they are no longer to the speaker: "Ana is no longer my wife" or friend."""
    for pattern in (_ENDED, _ENDED_BOTH):
        yield from _named_ties(pattern, text)


def _named_ties(pattern: re.Pattern[str], text: str) -> Iterator[NamedTie]:
    for match in pattern.finditer(text):
        name, tie = match["name"] or match.groupdict()["titled"], tie_of(match)
        if TIE_TYPES[tie] != "group" and name.partition(" ")[0].casefold() not in PRONOUNS:
            whom = f"{match['tie']} {name}"
            yield NamedTie(words=match[0], tie=tie, whom=whom, is_of_common_name=_has_first_name(name))


def _has_first_name(name: str) -> bool:
    return bool(forms_of(name_key(name).partition(" ")[0]))


def members_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """The groups of the speaker's whose members are named ("my kids Leo and Mia"), each with their names."""
    for match in _MEMBERS.finditer(text):
        yield tie_of(match), re.findall(NAME, match["names"])


def aliases_told(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The relations `same_as` of a sentence: "Everyone calls my aunt Margarethe Gretel"."""
    told = ((with_owner(given.bearer, subject), given.alias) for given in aliases_in(said))
    return tuple(same for bearer, alias in told for same in same_as(bearer, alias))


def same_as(bearer: str, alias: str) -> Iterator[NamedRelation]:
    """That two names are of one entity; nothing where a name is too long."""
    if max(len(bearer), len(alias)) <= MAX_NAME:
        yield NamedRelation(subject=bearer, predicate=SAME_AS, object=alias)


def value_relations(key: str, value: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """What the value of a key is to the subject: a home, an employer, somebody or something of theirs."""
    predicate = read_predicate(key)
    if len(subject or "") > MAX_NAME or not predicate:
        return ()
    return tuple(
        NamedRelation(subject=subject or USER, predicate=predicate.word, object=entity.name)
        for entity in value_entities(key, value, subject)
    )


def stated_in_text(said: str, subject: str | None, named: Collection[str] = ()) -> tuple[NamedRelation, ...]:
    """The relations that a sentence states which ends nothing.

    They are of members of the subject's groups ("my kids Leo and Mia"), of a group that the subject is a member of ("My
    band is called The Wet Socks"), and `relations_of_others`.
    """
    if len(subject or "") > MAX_NAME:
        return ()
    own = subject or USER
    members = (
        NamedRelation(subject=own, predicate=tie, object=name, strength="medium")
        for tie, names in members_in(said)
        for name in names
    )
    clubs = (NamedRelation(subject=own, predicate="member_of", object=club["name"]) for club in _CLUB.finditer(said))
    return (*members, *clubs, *relations_of_others(said, subject, named))


def relations_of_others(
    said: str, subject: str | None, named: Collection[str] = (), *, ended: bool = False
) -> tuple[NamedRelation, ...]:
    """Where somebody works or lives, or no longer does: "My brother works at Acme".

    They have a tie to the subject, or a name that is known to be `named`.
    """
    found: list[NamedRelation] = []
    for predicate, forms in _OF_SOMEBODY.items():
        if match := forms[ended].match(said):
            name = with_owner(match["who"], subject)
            if max(len(name), len(match["name"])) <= MAX_NAME and (name in named or any(ties_in(match["who"]))):
                found.append(NamedRelation(subject=name, predicate=predicate, object=match["name"]))
    return tuple(found)


def workplaces_and_homes(said: str) -> Iterator[str]:
    """The names that a sentence has for where anybody works or lives; none that is a first name."""
    return (match["name"] for match in _AT_NAME.finditer(said) if not _has_first_name(match["name"]))


def with_workplaces_and_homes(
    entities: Sequence[NamedEntity], relations: Collection[NamedRelation]
) -> tuple[NamedEntity, ...]:
    """The entities with the organisations and places where somebody is said to work or live, but for first names."""
    kinds = {one.object: _PLACE_TYPES[one.predicate] for one in relations if one.predicate in _PLACE_TYPES}
    missing = [NamedEntity(name=name) for name in kinds if name not in {one.name for one in entities}]
    return tuple(
        entity.model_copy(update={"type": kinds[entity.name]})
        if entity.type == "other" and entity.name in kinds and not _has_first_name(entity.name)
        else entity
        for entity in (*entities, *missing)
    )[:MAX_ENTITIES]


def ended_relations(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The ties of the subject that a sentence says to be over: "Ana is no longer my wife"."""
    found, rest, start = {}, said, 0
    for tied in ended_ties_in(said):
        rest = rest.replace(tied.words, " ")
        found[f"{_whose(subject)} {tied.whom}"] = tied.tie
    for tie, words in ties_in(rest):
        at = rest.index(words, start)
        start = at + 1
        if _OVER.search(rest[:at]) and not rest[at:].startswith(f"{words}'s"):
            found[with_owner(words, subject)] = tie
    return tuple(_over(subject, tie, name) for name, tie in found.items() if len(name) <= MAX_NAME)


def ended_values(keys: Collection[str], value: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The relations that are over where the value of a key has ended; without a value, by the name of a lone key."""
    if not value:
        return tuple(_over(subject, key, f"{_whose(subject)} {key}") for key in keys if len(keys) == 1)
    words = {PREDICATE_WORDS[key].predicate: key for key in sorted(keys) if key in PREDICATE_WORDS}
    return tuple(_over(subject, key, value) for key in words.values() if len(value) <= MAX_NAME)


def _over(subject: str | None, tie: str, name: str) -> NamedRelation:
    return NamedRelation(subject=subject or USER, predicate=tie, object=name)
