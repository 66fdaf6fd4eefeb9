"""Names and ties in an English sentence, in the clear cases, and what the values of keys name.

`subject` is who speaks: "my brother Tom" is "Alice's brother Tom" where Alice does. Typewriter quotes are expected.
"""

import re
from collections.abc import Iterator
from typing import Final

from mnemolog.schemas.entities import MAX_ENTITIES, MAX_NAME, EntityType, NamedEntity
from mnemolog.streams.entities import names
from mnemolog.streams.entities.names import NAME, TIE, TIE_TYPES, WORDS, forms_of, name_key
from mnemolog.streams.offline.sentences import PLACES
from mnemolog.streams.text.differences import is_user_word
from mnemolog.streams.text.tokens import DATES, SENTENCE_STARTERS, SMALL_WORDS

_INTRODUCED: Final = re.compile(
    rf"(?<!\w)(?i:{WORDS['my']}) (?P<tie>(?i:{TIE})) (?:(?P<called>{WORDS['called']})|{WORDS['is']}) "
    rf"(?P<name>(?P<title>(?:{WORDS['titles']})\.? )?{NAME}(?: {NAME})?)"
)
_OWNED: Final = re.compile(rf"(?<!\w){NAME}(?:'s|(?<=s)') (?i:{TIE})(?!\w|'s)(?: {NAME})?")
_MARK: Final = rf"(?:(?i:{WORDS['another']})|(?:{WORDS['titles']})\.?) "
_BARE: Final = re.compile(rf"(?:^\W*|(?<=[\w,] ))(?P<name>(?P<mark>{_MARK})?{NAME}(?: {NAME}){{0,2}})")
_NO_NAMES: Final = (
    SMALL_WORDS | SENTENCE_STARTERS | names.PRONOUNS | DATES.keys() | frozenset(WORDS["no_names"].split("|"))
)
_Found = tuple[str, str, EntityType]  # the words that name somebody or something, and the name


def sentence_entities(said: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """The entities that a sentence names, each once: those with a tie, an origin or a title, then bare names."""
    found: dict[str, NamedEntity] = {}
    rest = said
    for read in (_introduced, _tied, _bare):
        for words, name, kind in read(rest, subject):
            rest = rest.replace(words, " , ")  # the words after it stand inside the sentence
            if len(name) <= MAX_NAME:
                is_bare = read is _bare
                found.setdefault(name, NamedEntity(name=name, type=kind, role="mention" if is_bare else "object"))
    return tuple(found.values())[:MAX_ENTITIES]


def _introduced(said: str, subject: str | None) -> Iterator[_Found]:
    for match in _INTRODUCED.finditer(said):
        tie, is_sure = names.tie_of(match), match["called"] or match["title"]  # "my boss is German"
        if TIE_TYPES[tie] != "group" and (is_sure or _is_first_name(match["name"].partition(" ")[0])):
            whose = f"{subject}'s" if subject else "my"
            yield match[0], f"{whose} {match['tie']} {match['name']}", TIE_TYPES[tie]


def _tied(said: str, subject: str | None) -> Iterator[_Found]:
    for tie, words in names.ties_in(said):
        yield words, names.with_owner(words, subject), TIE_TYPES[tie]
    for match in _OWNED.finditer(said):
        yield match[0], match[0], TIE_TYPES[names.tie_of(match)]
    for words in names.names_with_origin(said):
        if words.partition(" ")[0].casefold() not in _NO_NAMES:
            yield words, words, "person"


def _bare(said: str, _: str | None) -> Iterator[_Found]:
    """Names inside a sentence; at its beginning a known first name, or two words with capitals that no verb is of."""
    for match in _BARE.finditer(said):
        first, *others = words = match["name"].split()
        if not (match["mark"] or said[: match.start("name")].strip(" \"'(") or _is_first_name(first)):
            is_verb = first.casefold() in _NO_NAMES or first.endswith(("ed", "ing"))
            words = words if others and not is_verb and not _is_first_name(others[0]) else others
        name = " ".join(words)
        if name and not is_user_word(name) and DATES.keys().isdisjoint(name.casefold().split()):
            is_person = len(words) > 1 and _is_first_name(words[0])  # "Rex" alone may be a dog
            yield name, name, "place" if name.casefold() in PLACES else "person" if is_person else "other"


def _is_first_name(word: str) -> bool:
    return word.casefold() not in _NO_NAMES and bool(forms_of(name_key(word)))
