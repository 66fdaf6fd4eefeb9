"""Names as text: keys for comparison, short forms, the parts of a spoken name, and slips of spelling.

A tie is what somebody is to another person: in "my brother Tom" it is "brother".
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

from mnemolog.schemas.entities import (
    MAX_NAME,
    TIES,
    WORDS_AROUND_TIES,
    Alias,
    KnownEntity,
    read_predicate,
)
from mnemolog.streams.text.differences import is_user_word
from mnemolog.streams.text.tokens import PLACES, plain_letters, tables, typewriter_quotes

_SILENT: Final = re.compile("['\u2019\u2018`\u00b4.]")
_GAPS: Final = re.compile("[\\s\\-\u2800\u2010\u2011\u2013_/()]+")  # a " (" in a key begins an origin, nothing else
_EDGES: Final = ' ,;:!?"“”„«»[]{}<>*#'


def name_key(name: str) -> str:
    """The form in which names are compared: "ÁNA" and "Ana" are "ana"; empty for text without letters or digits.

    "ø" and "ł" become "o" and "l", although Unicode does not decompose them.
    """
    return _GAPS.sub(" ", _SILENT.sub("", plain_letters(name))).strip(_EDGES)[:MAX_NAME].rstrip()


def words_key(text: str) -> str:
    """A text in the form in which names are searched in it: as `name_key`, of any length, and "Ana's" is "ana s"."""
    return _GAPS.sub(" ", _SILENT.sub(" ", plain_letters(text))).strip(_EDGES)


def key_words(text: str) -> list[str]:
    """The words of a text of any length, each as in the key of a name."""
    return [word.strip(_EDGES) for word in _GAPS.sub(" ", _SILENT.sub("", plain_letters(text))).split(" ")]


_TABLE: Final = tables(Path(__file__).with_name("short_forms.toml"))
_SHORT_FORMS: Final = [
    (short, full)
    for language in _TABLE.values()
    if isinstance(language, dict)
    for full, shorts in language.items()
    for short in shorts.split()
]
_OWN_NAMES: Final = frozenset((*_TABLE["full_names"].split(), *(full for _, full in _SHORT_FORMS)))
_FEMININE_ENDINGS: Final = re.compile(r"(?:i|in|n|nn|l|ll|ell|ett|iett|ienn)[ae]|bel")
"""Endings that make a woman's name of a man's: "Daniela", "Paulina", "Antoinette"."""
MIN_PREFIX: Final = 3
"""Letters that a part of a first name has at least: "Jo" is not João."""
MAX_PREFIX: Final = 5
"""Letters that a part of a first name has at most: "Nathan" is a name of its own, and not a Nathaniel."""
MIN_LEFT_OUT: Final = 2
"""Letters that a short form leaves out at least: "Carl" and "Carla", "Jan" and "Jana" are different names."""


def _by_first(pairs: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for first, second in pairs:
        found.setdefault(first, set()).add(second)
    return {first: frozenset(seconds) for first, seconds in found.items()}


_FULL: Final = _by_first(_SHORT_FORMS)
_FORMS: Final = _by_first((*_SHORT_FORMS, *((full, short) for short, full in _SHORT_FORMS)))


def forms_of(first: str) -> frozenset[str]:
    """The short forms of a first name, and the full names of a short form; by their keys."""
    return _FORMS.get(first, frozenset())


def is_first_name(word: str) -> bool:
    return word in _FORMS or word in _OWN_NAMES


def is_short_form(short: str, first: str) -> bool:
    """Whether the table has a short form of a first name, or it is the first letters of that: "Alex" of Alexander.

    For the short forms in the table only that decides: "Dan" is Daniel, and not Daniela. A name of its own is short for
    none: "Jan" for Janet, "Lena" for Magdalena.
    """
    if short in _OWN_NAMES or short in _FULL:
        return first in _FULL.get(short, ()) and short not in _OWN_NAMES
    is_part = MIN_PREFIX <= len(short) <= min(MAX_PREFIX, len(first) - MIN_LEFT_OUT) and first.startswith(short)
    return is_part and not _FEMININE_ENDINGS.fullmatch(first.removeprefix(short))


WORDS: Final = WORDS_AROUND_TIES
"""Patterns of the words around ties and names."""
_ROLES: Final = frozenset(WORDS["roles"].split("|"))
SEVERAL: Final = frozenset(WORDS["several"].split("|"))
"""Ties of which a speaker has several: "my friend", said twice, need not be one."""
_ONCE: Final = _ROLES | frozenset(WORDS["once"].split("|"))
TIE_TYPES: Final = {tie: kind for kind, ties in TIES.items() for tie in ties} | {
    f"ex_{tie}": "person" for tie in sorted(_ONCE)
}
"""Each tie with the type of entity that it names. A group ("kids") takes no name of a member."""
_TIES: Final = "|".join(words for ties in TIES.values() for words in ties.values())
_TRAITS: Final = ("older", "middle", "younger", "first", "second", "third", "late", "best", "other")
_ADJECTIVES: Final = "|".join(WORDS[kind] for kind in ("new", "former", "old", "before_tie", *_TRAITS))
ANY_TIE: Final = rf"(?:(?:{_ADJECTIVES})[ -]|ex(?=\w))*?(?:{_TIES})(?: (?:{WORDS['after_tie']}))?"
"""A tie with its adjectives: "older brother", "ex-wife", "sœur aînée"."""
TIE: Final = (
    rf"(?P<adjectives>(?:(?:{_ADJECTIVES})[ -]|ex(?=\w))*?)(?P<word>{_TIES})(?P<after> (?:{WORDS['after_tie']}))?"
)
"""As `ANY_TIE`, with the regex groups that `tie_of` reads."""
_TIE_OF_WORD: Final = re.compile(
    "|".join(f"(?P<{tie}>{words})" for ties in TIES.values() for tie, words in ties.items()), re.IGNORECASE
)
_FORMER: Final = re.compile(rf"(?<!\w)(?:(?:{WORDS['former']})[ -]|ex$|(?P<old>{WORDS['old']})[ -])", re.IGNORECASE)
_TRAIT: Final = re.compile(
    rf"(?<!\w)(?:{'|'.join(f'(?P<{trait}>{WORDS[trait]})' for trait in _TRAITS)})(?!\w)", re.IGNORECASE
)
NAME: Final = r"[^\W\d_a-z](?:[\w-]|'(?!(?:s|m|d|t|ve|ll|re)(?!\w))){0,40}[^\W\d_](?!\w)"
"""A capitalised word, case-sensitive; of "Tom's" it matches "Tom"."""
_MY: Final = re.compile(rf"^(?:{WORDS['my']}) (?:{TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
_OWNED: Final = re.compile(rf"^(?P<owner>\S.*?)(?:'s|'|s(?= \S+ )) (?:{TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
"""Without an apostrophe ("Annas Bruder Tom") a name has to follow: "Thomas Mann" is not the husband of a Thoma."""
_TIE_OF: Final = re.compile(rf"^(?:(?:{WORDS['the']}) ?)?(?:{TIE}) (?:{WORDS['of']}) ?(?P<owner>\S.*)$", re.IGNORECASE)
_NAME_FIRST: Final = re.compile(rf"^(?P<name>.+?),? (?:{WORDS['my']}) (?:{TIE})$", re.IGNORECASE)
_SURNAME_FIRST: Final = re.compile(r"^(?P<surname>[^,()]+), (?P<first>[^\W\d_][^,()]*)$")
_ONE_OF: Final = re.compile(
    rf"^one of (?P<whose>(?:{WORDS['my']}|\S.*?(?:'s|s')) {ANY_TIE})e?s(?P<name> .+)?$", re.IGNORECASE
)
_APPOSED: Final = re.compile(r"^(?P<name>[^,()]+?)(?:, | \()(?P<tie>[^,()]+)\)?$")
"""A name with its tie beside it: "Carol (Alice's girlfriend)", "Carol, la novia de Alice"."""
_BARE: Final = re.compile(rf"^(?P<article>(?:{WORDS['article']}) ?)?(?:{TIE})$", re.IGNORECASE)
_BEFORE_NAME: Final = re.compile(rf"^{TIE} (?P<name>.+)$", re.IGNORECASE)
_CALLED_BY_TIE: Final = frozenset({"aunt", "uncle", "grandmother", "grandfather"})
"""Ties that stand before a name with a capital: "Uncle Bob"; of others ("Father Brown") it is a name."""
_SEVERAL: Final = re.compile(
    rf"^(?P<first>(?:{WORDS['my']}|{WORDS['whose']}|{WORDS['article']}) )?{ANY_TIE}(?:s|es|e|n|en|innen)$",
    re.IGNORECASE,
)
_TIE_NAMES: Final = re.compile(WORDS["tie_names"], re.IGNORECASE)
_OF_OTHERS: Final = re.compile(
    rf"^(?P<tie_words>(?:{WORDS['whose']}|{WORDS['indefinite']}) {ANY_TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE
)
"""A tie to somebody who is not named: "her mother", "a friend", "his brother Tom"."""
_INDEFINITE: Final = re.compile(rf"(?:{WORDS['indefinite']}|{WORDS['another']}) |some(?:one|body)$", re.IGNORECASE)
_NEW: Final = re.compile(rf"(?<!\w)(?:{WORDS['new']})(?!\w)", re.IGNORECASE)
_FROM: Final = re.compile(
    rf"^(?P<name>.+?) (?:from (?:(?:the|my|our) )?(?P<there>.+)|(?:{WORDS['from']}) ?(?P<origin>{WORDS['origins']}))$",
    re.IGNORECASE,
)
_FROM_IN_TEXT: Final = re.compile(
    rf"(?<!\w)(?P<name>{NAME}(?: {NAME})?) "
    rf"(?:from (?:(?:the|my|our) )?[a-z][\w-]+|(?i:{WORDS['from']}) (?i:{WORDS['origins']}))(?!\w)"
)
MAX_ORIGIN: Final = MAX_NAME - len(" ()")
"""Letters of the key of an origin, which is appended to the key of a name."""
PRONOUNS: Final = frozenset(WORDS["pronouns"].split("|"))
_MY_WORD: Final = re.compile(rf"(?<!\w)(?:{WORDS['my']}) (?:{TIE})(?!\w)", re.IGNORECASE)
_TIE_WORD: Final = re.compile(rf"(?<!\w){TIE}(?!\w)", re.IGNORECASE)
_NEXT_NAME: Final = re.compile(rf",? {NAME}(?: {NAME})?")
_ANOTHER: Final = re.compile(rf"^(?:{WORDS['another']}) (?P<name>.+)$", re.IGNORECASE)
_THE_OTHER: Final = re.compile(rf"^(?:{WORDS['the_other']}) (?P<name>.+)$", re.IGNORECASE)
_TITLE: Final = re.compile(r"^(?:(?:(?P<title>dr|doctor|prof|professor)\.?|the) (?=\S))+", re.IGNORECASE)
"""Words that do not count in a name; "Mr." and "Mrs." do: they name two people."""
_OF_UNKNOWN_TIE: Final = re.compile(
    rf"^(?P<tie_words>(?i:{WORDS['my']}) (?:[a-z][\w-]* ){{1,2}})(?:(?:called|named) )?(?P<name>{NAME}(?: {NAME})*)$"
)
"""A name with a word for what its bearer is, which is no tie: "my trainer Bob"."""
_NO_DIGIT: Final = re.compile("[^0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProperName:
    """The parts of a proper name: its text and `key` without a title or an article, and what they are compared by.

    `title` is "dr" or "prof", else "". A surname is one word after it: "Dr. Martin" is no Martin Keller. `double` is
    the key of a first name of two words ("Anna-Lena", "Mary Ann"), else "".
    """

    text: str
    key: str
    title: str = ""
    is_surname: bool = False
    double: str = ""


@lru_cache(maxsize=4096)
def proper_name(name: str) -> ProperName:
    match = _TITLE.match(name)
    title = (match["title"] or "").casefold() if match else ""
    text = name[match.end() :] if match else name
    first, _, rest = text.partition(" ")
    second = rest.partition(" ")[0]
    is_double = "-" in first or is_first_name(name_key(second))
    double = name_key(first if "-" in first else f"{first} {second}") if is_double else ""
    return ProperName(
        text=text,
        key=name_key(text),
        title={"doctor": "dr", "professor": "prof"}.get(title, title),
        is_surname=bool(title) and " " not in text.strip(),
        double=double,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenName:
    """A name as it was said (`text`), and its parts.

    `name` is the proper name in it; `tie` is what the bearer is to `owner` (None for the speaker), with `traits` that
    tell several of one tie apart ("older", "second", "late"); `origin` is the key of the place or group that the bearer
    is from, or of what they are to nobody named. "Another Tom" `is_another`: no known entity, with the origin
    "another"; "the other Tom" is the entity with that origin. "My new dog" `is_new`: not the dog that is known by the
    tie. "Girlfriend" or "the boss" `is_bare`: a word for the speaker's girlfriend or boss, and no name.
    """

    text: str
    name: str | None = None
    tie: str | None = None
    owner: str | None = None
    origin: str | None = None
    traits: frozenset[str] = frozenset()
    is_another: bool = False
    is_new: bool = False
    is_bare: bool = False

    @property
    def proper(self) -> ProperName:
        return proper_name(self.name or "")

    @property
    def key(self) -> str:
        return self.proper.key


@lru_cache(maxsize=4096)
def read_name(text: str) -> SpokenName | None:  # noqa: C901, PLR0911 -- a return for each form
    """The parts of a name; None for a pronoun, a tie to nobody named ("her mother", "friends"), and no letters.

    Of "her mother Eva" the words before the name are the origin.
    """
    said = " ".join(typewriter_quotes(text).split())
    if not name_key(said) or name_key(said) in PRONOUNS:
        return None
    if (match := _ONE_OF.match(said)) and (one := read_name(f"{match['whose']}{match['name'] or ''}")):
        return replace(one, text=said, traits=one.traits | {"one"})
    if found := _apposed(said) or _tied(said) or _bare_tie(said):
        return None if found.owner in {*PRONOUNS, "mine", "mir", "moi"} else found
    if (match := _SEVERAL.match(said)) and (match["first"] or not _is_proper(said)):
        return None
    match = _OF_OTHERS.match(said) or _OF_UNKNOWN_TIE.match(said)
    if match and (match["name"] is None or _is_proper(match["name"])):
        origin = name_key(match["tie_words"])[:MAX_ORIGIN]
        return SpokenName(text=said, name=match["name"], origin=origin) if match["name"] else None
    if match := _FROM.match(said):
        origin = match["there"] or match["origin"]
        return SpokenName(text=said, name=match["name"], origin=name_key(origin)[:MAX_ORIGIN])
    if (match := _INDEFINITE.match(said)) and said[match.end() :].islower():  # "a colleague of mine", twice, are two
        return None
    if (match := _SURNAME_FIRST.match(said)) and is_first_name(name_key(match["first"]).partition(" ")[0]):
        is_one = not (is_first_name(name_key(match["surname"])) or match["surname"].casefold() in PLACES)
        return SpokenName(text=said, name=f"{match['first']} {match['surname']}" if is_one else said)
    for pattern in (_ANOTHER, _THE_OTHER):
        if (match := pattern.match(said)) and _is_proper(match["name"]):
            return SpokenName(text=said, name=match["name"], origin="another", is_another=pattern is _ANOTHER)
    return SpokenName(text=said, name=said)


def is_nobody(words: str | None) -> bool:
    """Whether a subject is a word for somebody, and no name: "a friend", "the doctor", "she"; the user is somebody."""
    if words is None or is_user_word(words):
        return False
    name = read_name(words)
    return name is None or name.is_bare


def is_indefinite(words: str | None) -> bool:
    """Whether the words mean somebody else each time: "a friend", "someone"."""
    return _INDEFINITE.match(words or "") is not None


def ties_in(text: str) -> Iterator[tuple[str, str]]:
    """The ties to its speaker that a text mentions: each tie, and its words with the name after it."""
    for match in _MY_WORD.finditer(typewriter_quotes(text)):
        tie = tie_of(match)
        name = _NEXT_NAME.match(text, match.end()) if TIE_TYPES[tie] != "group" else None
        yield tie, text[match.start() : name.end() if name else match.end()]


def has_tie(text: str, tie: str) -> bool:
    """Whether a text has a word for a tie, whoever the owner is."""
    return any(tie_of(match) == tie for match in _TIE_WORD.finditer(text))


def ties_told(text: str) -> set[str]:
    """The predicates of the ties for which a text has words: "spouse" for "wife", whoever the owner is."""
    ties = (read_predicate(tie_of(match)) for match in _TIE_WORD.finditer(text))
    return {read.predicate.name for read in ties if read is not None}


def with_owner(name: str, subject: str | None) -> str:
    """A name without "my": what Alice calls "my brother Tom" is "Alice's brother Tom" in a fact with her as subject."""
    tie_and_name = next((words.partition(" ")[2] for _, words in ties_in(name)), None)
    return f"{subject}'s {tie_and_name}" if subject and tie_and_name else name


_ACTS: Final = (
    r"(?:(?:has|have|had|is|are|was|were|now|just|recently|no longer) )*(?:mov|liv|relocat|work|stud|settl|return)"
)
"""The beginning of what people and companies do, and no home, job or birthday."""
_OWNED_THING: Final = re.compile(rf"(?:[a-z-]+ ){{1,3}}?(?={_ACTS})")
_OF_OWNER: Final = re.compile("'s? ", re.IGNORECASE)
_IS_NAMED: Final = re.compile(rf" (?:{WORDS['called']}|{WORDS['is']}|are|were|ist|est|es|è|é) {NAME}")


def owned_subject(text: str, owner: str, key: str | None) -> str | None:
    """Who of an owner a text begins with: "Tom's sister Ana", "Tom's ex" of one who lives or moves; None for nobody.

    Not a tie that is the `key` of what the text says: "Tom's boss is Henrik", "Tom's cat is old" of the key `pet`; nor
    "Tom's wife is Ana".
    """
    said, owner = typewriter_quotes(text), typewriter_quotes(owner)
    whose = _OF_OWNER.match(said, len(owner))
    if whose is None or said[: len(owner)].lower() != owner.lower():
        return None
    tie = _TIE_WORD.match(said, whose.end())
    if tie is not None:
        name = _NEXT_NAME.match(said, tie.end()) if TIE_TYPES[tie_of(tie)] != "group" else None
        is_told = key in (tie_of(tie), "pet" if TIE_TYPES[tie_of(tie)] == "animal" else tie_of(tie))
        is_told |= name is None and _IS_NAMED.match(said, tie.end()) is not None
        return None if is_told else said[: name.end() if name else tie.end()]
    thing = _OWNED_THING.match(said, whose.end())
    return said[: thing.end()].rstrip() if thing else None


_NAME_MARK: Final = "\ue000"
_WHOSE: Final = rf"(?:{WORDS['my']}|(?:(?-i:{NAME}) ?){{1,2}}'s?|the user's)"
# The name is marked in the text first: patterns of all ties take a hundred times as long to compile as to search.
_DESCRIPTIONS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\w)(?P<tie>{_WHOSE} {ANY_TIE})(?: (?:called|named))?,? {_NAME_MARK}",
        rf"(?<!\w){_NAME_MARK}(?:, | \()(?P<tie>{_WHOSE} {ANY_TIE})(?=[,)])",
        rf"(?<!\w){_NAME_MARK} (?:from|at) (?:(?:the|my|our) )?[\w-]+",
        rf"^(?:{WORDS['my']}) (?-i:[a-z-]+)(?: (?:called|named))?,? {_NAME_MARK}",
        rf"^(?:{WORDS['indefinite']}) (?-i:[a-z-]+ ){{1,2}}?(?:called|named) {_NAME_MARK}",
        rf"^(?:(?:{WORDS['indefinite']}|{WORDS['article']}) )?{ANY_TIE},? {_NAME_MARK}",
        rf"^(?:{WORDS['older']}|{WORDS['younger']}|old|young) {_NAME_MARK}",
        rf"(?<!\w)(?:{WORDS['whose']}) {ANY_TIE},? {_NAME_MARK}",
    )
)


def described_name(name: str, *texts: str) -> str | None:
    """A name with the owner and tie, description or origin that one of the texts gives it; None where it stands alone.

    "my colleague Ana", "Tom's sister Ana", "Ana from work", "Little Sam", "a girl called Ana"; "Ana, my colleague" is
    "my colleague Ana".
    """
    said = typewriter_quotes(name)
    plain = [typewriter_quotes(text) for text in texts]
    marked = [re.sub(rf"{re.escape(said)}(?![\w'])", _NAME_MARK, text) for text in plain if said in text]
    for pattern in _DESCRIPTIONS:
        for text in marked:
            if match := pattern.search(text):
                tie = match.groupdict().get("tie")
                return f"{tie} {name}" if tie else match[0].replace(_NAME_MARK, said)
    return None


def names_with_origin(text: str) -> Iterator[str]:
    """The names of a text with an origin ("Tom from work"), as they are said. Known places have no origin."""
    found = _FROM_IN_TEXT.finditer(typewriter_quotes(text))
    return (match[0] for match in found if match["name"].casefold() not in PLACES)


def _apposed(said: str) -> SpokenName | None:
    """The parts of a name with its tie beside it; "Alices Freundin" is a tie only where a name follows."""
    match = _APPOSED.match(said)
    if match is None or not _is_proper(match["name"]) or _tied(match["name"]):
        return None
    name, tie = match["name"], match["tie"]
    found = _tied(tie)
    if found is None or found.name is not None:
        found = _tied(f"{tie} {name}")
    return None if found is None or TIE_TYPES[found.tie or ""] == "group" else replace(found, text=said, name=name)


def _tied(said: str) -> SpokenName | None:
    for pattern in (_MY, _OWNED, _TIE_OF, _NAME_FIRST):
        if match := pattern.match(said):
            groups = match.groupdict()
            if groups.get("name") is None or _is_proper(groups["name"]):
                return _with_tie(said, match, owner=groups.get("owner"))
    return None


def _bare_tie(said: str) -> SpokenName | None:
    """A tie of the speaker without "my"; with a capital, a word that is a name too ("Tia", "Boss") is a name."""
    named = _BEFORE_NAME.match(said)
    if named and _is_proper(named["name"]) and (not _is_proper(said) or tie_of(named) in _CALLED_BY_TIE):
        return _with_tie(said, named)
    match = _BARE.match(said)
    if match is None or (match["article"] is None and _is_proper(said) and _TIE_NAMES.fullmatch(said)):
        return None
    return replace(_with_tie(said, match), is_bare=True)


def _with_tie(said: str, match: re.Match[str], owner: str | None = None) -> SpokenName:
    tie, words = tie_of(match), f"{match['adjectives']}{match['word']}{match['after'] or ''}"
    traits = frozenset(found.lastgroup for found in _TRAIT.finditer(words) if found.lastgroup)
    return SpokenName(
        text=said,
        name=None if TIE_TYPES[tie] == "group" else match.groupdict().get("name"),
        tie=tie,
        owner=owner,
        traits=traits,
        is_new=_NEW.search(f"{match['adjectives']}{match['after'] or ''}") is not None,
    )


def tie_of(match: re.Match[str]) -> str:
    """The tie in a match of `TIE`."""
    return _tie(match["word"], match["adjectives"])


@lru_cache(maxsize=1024)
def _tie(word: str, adjectives: str) -> str:
    found, former = _TIE_OF_WORD.fullmatch(word), _FORMER.search(adjectives)
    tie = (found and found.lastgroup) or word
    return f"ex_{tie}" if former and tie in (_ROLES if former["old"] else _ONCE) else tie


def _is_proper(name: str) -> bool:
    """Whether a name begins with a capital, or with a letter of a script without capitals."""
    return not name[0].islower()


NameRelation = Literal["part", "form", "doubtful"]
_TITLES: Final = frozenset(map(name_key, WORDS["titles"].split("|")))
_TITLES_OF_MEN: Final = frozenset(map(name_key, WORDS["titles_of_men"].split("|")))
_AND: Final = re.compile(r" (?:and|und|et|y|&) ")
"""Words between the names of two people: "Ana and Ben"."""
_AT: Final = re.compile(r" (?:at|in|on|with|near) ")
"""Words that tell one from another of the name: "Ana at the gym"."""
_AGES: Final = "|".join(plain_letters(WORDS[age]) for age in ("older", "younger"))
_AGE_AFTER: Final = re.compile(
    rf" (?:jr|jun|junior|sr|sen|senior|ii|iii|iv|filho|neto|d j|d a|(?:the|der|die|le|la|el|il) (?:{_AGES}))"
)
_AGE_BEFORE: Final = re.compile(rf"(?:the )?(?:old|young|{_AGES}) ")
"""Words that tell a child from a parent of the same name: "Max Jr.", "little Max"."""


def relation_of_names(one: str, other: str) -> NameRelation | None:
    """How the keys of two names of people relate; None where neither is a part or a short form of the other.

    "part": the first words ("Ana", "Ana Keller") or the first letters ("Alex", "Alexander"); "form": a short form by
    the table. "doubtful": it may be a part, or another's name ("Jan" and "Janet", "Max" and "Max Jr.", "J. Keller" and
    "Jan Keller", "Ana Keller" and "Ana Schmidt Keller", "Mr. Keller" and "Jan Keller").
    """
    if titles := {_title(one), _title(other)} - {""}:
        are_of_two_sexes = {title in _TITLES_OF_MEN for title in titles} == {True, False}
        return None if are_of_two_sexes or one.rpartition(" ")[2] != other.rpartition(" ")[2] else "doubtful"
    short, long = sorted((one, other), key=len)
    if long.startswith(f"{short} "):
        after = long.removeprefix(short)
        return None if _AND.match(after) else "doubtful" if _AGE_AFTER.fullmatch(after) or _AT.match(after) else "part"
    if long.endswith(f" {short}") and _AGE_BEFORE.fullmatch(long.removesuffix(short)):
        return "doubtful"
    (first, *rest), (full, *others) = sorted((one.split(" "), other.split(" ")), key=lambda words: len(words[0]))
    if first == full or (rest and others and rest != others):
        return "doubtful" if first == full and rest and others and _may_be_one_surname(rest, others) else None
    if is_short_form(first, full) or is_short_form(full, first):
        return "part" if full.startswith(first) else "form"
    is_initial = len(first) == 1 and bool(rest) and rest == others
    is_beginning = full.startswith(first) and (is_initial or len(first) >= MIN_PREFIX)
    return "doubtful" if is_beginning or full in forms_of(first) else None


def is_surname_of(one: str, other: str) -> bool:
    """Whether one of two keys is a word that ends the other one, and no first name: "keller", "ana keller"."""
    short, long = sorted((one, other), key=len)
    return " " not in short and long.endswith(f" {short}") and not (_title(long) or is_first_name(short))


def _may_be_one_surname(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one of these names after a first name has the surname of the other, or its initial."""
    is_initial = 1 in (len(words[-1]), len(others[-1])) and words[-1][0] == others[-1][0]
    return is_initial or words[-1] in others or others[-1] in words


def are_of_two(names: Collection[str], others: Collection[str]) -> bool:
    """Whether the names of two people, by their keys, show that these are two: one fits the names of both but one.

    Alexandra, where Alex is Alexander; Beth, where Elizabeth is Liz; Ana Schmidt, where Ana is Ana Keller. A nickname
    that fits none ("Bee") shows nothing.
    """
    together = {*names, *others}
    related = {one for one in together if any(relation_of_names(one, other) for other in together - {one})}
    mine, theirs = related.intersection(names) - {*others}, related.intersection(others) - {*names}

    def fits(one: str, other: str) -> bool:
        return relation_of_names(one, other) in ("part", "form") or compare_names(one, other) == "same"

    return any(
        not any(fits(one, known) for known in theirs if known == other or compare_names(known, other) == "same")
        for one in mine
        for other in theirs
    )


TWIN_SIMILARITY: Final = 0.75
"""Names at least so similar may be one: 1 minus the share of letters that differ, a swap of neighbours counted once.

Measured on `tests/data/similar_names.toml`: record 13 of docs/decisions has the figures.
"""
MAX_EDITS: Final = 2
MIN_SWAPPED: Final = 5
"""Letters of a word in which two neighbours may have changed places."""
_VOWELS: Final = frozenset("aeiouy")
_LIQUIDS: Final = frozenset("lr")
"""A swap with a vowel makes another name: "Kirsten" and "Kristen", "Leila" and "Lelia"."""
_UMLAUTS: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "å": "aa", "ø": "oe"}
)

Likeness = Literal["same", "doubtful"]


def likeness_of(name: str, entity: KnownEntity) -> Likeness | None:
    """The best likeness of a name with the proper names of an entity; names with an origin do not count."""
    names = [alias for alias in entity.aliases if alias.kind == "name" and " (" not in alias.key]
    found = {compare_names(name, one.text if _keys(one.text)[0] == one.key else one.key) for one in names}
    return "same" if "same" in found else "doubtful" if "doubtful" in found else None


def bearer_called(entity: KnownEntity, said: str) -> UUID | None:
    """The entity that had this name before others were merged into `entity`; None where that is none or several."""
    name = read_name(said) if entity.bearers else None
    if name is None:
        return None
    steps: tuple[Callable[[Alias], object], ...] = (  # an equal name, the same tie, a part of a name or a slip
        lambda alias: alias.kind == "name" and name.key in (alias.key, alias.key.partition(" (")[0]),
        lambda alias: alias.kind == "tie" and alias.key.partition(" ")[0] == name.tie,
        lambda alias: (
            alias.kind == "name"
            and name.key
            and (relation_of_names(name.key, alias.key) or compare_names(name.key, alias.key))
        ),
    )
    found = ({bearer for bearer, alias in entity.bearers if is_called(alias)} for is_called in steps)
    called = next(filter(None, found), set())
    return called.pop() if len(called) == 1 else None


def same_numbers(one: str, other: str) -> bool:
    """Whether two keys have the same digits: "iphone 14" is never "iphone 15". The SQL of the lookup does the same."""
    return _NO_DIGIT.sub("", one) == _NO_DIGIT.sub("", other)


def compare_names(one: str, other: str) -> Likeness | None:
    """Whether one name is certainly ("same") or possibly ("doubtful") the other one misspelled; None if neither.

    "same" needs an equal first letter and: two neighbouring letters swapped within a word, not both of them vowels, l
    or r; or an umlaut written as two letters. Other small differences may name two people: "Stafford" and "Stanford",
    "Thomson" and "Thompson", "Ana" and "Anna", "Daniel" and "Daniela".
    """
    (first, spelled), (second, other_spelled) = _keys(one), _keys(other)
    if not first or first == second or first[:1] != second[:1] or abs(len(first) - len(second)) > MAX_EDITS:
        return None
    words, others = first.split(), second.split()
    pairs = (
        [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]] if len(words) == len(others) else []
    )
    if first == other_spelled or second == spelled:
        return "same"
    if not same_numbers(first, second) or _title(first) != _title(second):
        return None
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - of the workers: a client reads names, and compares none

    edits = OSA.distance(first, second, score_cutoff=MAX_EDITS)
    if edits > MAX_EDITS or OSA.normalized_similarity(first, second) < TWIN_SIMILARITY:
        return None
    return "same" if edits == 1 and len(pairs) == 1 and _is_slip(*pairs[0]) else "doubtful"


def _is_slip(one: str, other: str) -> bool:
    """Whether two words differ in two neighbouring inner letters that are swapped by mistake."""
    if len(one) != len(other) or not (one + other).isalpha():
        return False
    start = next(place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    is_within = 0 < start < len(one) - 2 and len(one) >= MIN_SWAPPED
    is_swapped = one[start + 1 :] != other[start + 1 :]
    return is_within and is_swapped and not {one[start], one[start + 1]} <= _VOWELS | _LIQUIDS


@lru_cache(maxsize=4096)
def _keys(name: str) -> tuple[str, str]:
    """The key of a name, and its key with umlauts written as two letters."""
    return name_key(name), name_key(name.translate(_UMLAUTS))


def _title(key: str) -> str:
    first, _, rest = key.partition(" ")
    return first if rest and first in _TITLES else ""
