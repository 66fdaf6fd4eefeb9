"""Takes a name apart as it was said: "my brother Tom" is a tie and a name, "Tom from work" has an origin."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from mnemolog.schemas.entities.model import MAX_NAME
from mnemolog.schemas.entities.tie_words import TIES, WORDS_AROUND_TIES
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.text.word_lists import CITIES, COUNTRIES

TIE_TYPES: Final = {tie: kind for kind, ties in TIES.items() for tie in ties}
"""What somebody or something can be to another one, with the type of it. A group has no name of one who is in it."""
WORDS: Final = WORDS_AROUND_TIES
"""Patterns of the words around ties and names."""
_TIES: Final = "|".join(f"(?P<{tie}>{words})" for ties in TIES.values() for tie, words in ties.items())
TIE: Final = (
    rf"(?P<attributes>(?:(?:{WORDS['new']}|{WORDS['before_tie']}) )*?)(?:{_TIES})(?P<after> (?:{WORDS['after_tie']}))?"
)
"""The pattern of all ties, a group each, with the adjectives at them: "older brother", "sœur aînée"."""
ANY_TIE: Final = re.sub(r"\?P<\w+>", "?:", TIE)
"""The pattern of all ties, without groups of their own."""
GROUP: Final = "|".join(f"(?P<{tie}>{words})" for tie, words in TIES["group"].items())
"""The pattern of groups, a group each."""
NAME: Final = r"[^\W\d_a-z](?:[\w-]|'(?!(?:s|m|d|t|ve|ll|re)(?!\w))){0,40}[^\W\d_](?!\w)"
"""The pattern of a word with a capital, in which case counts; of "Tom's" it is "Tom"."""
_MY: Final = re.compile(rf"^(?:{WORDS['my']}) (?:{TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
_OWNED: Final = re.compile(rf"^(?P<owner>\S.*?)(?:'s|'|s(?= \S+ )) (?:{TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
"""Without an apostrophe ("Annas Bruder Tom") a name has to follow: "Thomas Mann" is nobody's husband."""
_TIE_OF: Final = re.compile(rf"^(?:(?:{WORDS['the']}) ?)?(?:{TIE}) (?:{WORDS['of']}) ?(?P<owner>\S.*)$", re.IGNORECASE)
_NAME_FIRST: Final = re.compile(rf"^(?P<name>.+?),? (?:{WORDS['my']}) (?:{TIE})$", re.IGNORECASE)
_APPOSED: Final = re.compile(r"^(?P<name>[^,()]+?)(?:, | \()(?P<tie>[^,()]+)\)?$")
"""A name and what its bearer is to somebody: "Carol (Alice's girlfriend)", "Carol, la novia de Alice"."""
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
"""Letters of the key of an origin: it stands behind the key of a name."""
PRONOUNS: Final = frozenset(WORDS["pronouns"].split("|"))
"""Words that stand for somebody and name nobody."""
_MY_WORD: Final = re.compile(rf"(?<!\w)(?:{WORDS['my']}) (?:{TIE})(?!\w)", re.IGNORECASE)
_NEXT_NAME: Final = re.compile(rf",? {NAME}(?: {NAME})?")
_AGES: Final = re.compile(rf"(?<!\w)(?:(?P<older>{WORDS['older']})|(?P<younger>{WORDS['younger']}))(?!\w)")
_ANOTHER: Final = re.compile(rf"^(?:{WORDS['another']}) (?P<name>.+)$", re.IGNORECASE)
_TITLE: Final = re.compile(r"^(?:(?:dr|prof)\.?|the) (?=\S)", re.IGNORECASE)
"""Words without which a name is the same; "Mr. Miller" and "Mrs. Miller" are two."""
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenName:
    """A name as it was said (`text`), and its parts.

    `name` is the proper name in it, `tie` what it is to `owner`, which is None for the speaker, and `origin` the key
    of where it is from. Where it `is_another`, it is nobody who is known ("another Tom"), and that is the origin. A new
    one of a tie ("my new dog") `is_new`: it is not the one that was known by the tie.
    """

    text: str
    name: str | None = None
    tie: str | None = None
    owner: str | None = None
    origin: str | None = None
    is_another: bool = False
    is_new: bool = False

    @property
    def untitled(self) -> str:
        """The proper name without the words that do not count."""
        return _TITLE.sub("", self.name or "")

    @property
    def key(self) -> str:
        return name_key(self.untitled)


def age_in(text: str) -> str | None:
    """Whether a name with a tie is of an older or a younger one: "my big brother", "ma sœur cadette"."""
    match = _AGES.search(text)
    return match.lastgroup if match else None


def read_name(text: str) -> SpokenName | None:
    """The parts of a name; None where it names nobody: a pronoun, or nothing but signs."""
    said = " ".join(text.translate(_TYPOGRAPHY).split())
    if not name_key(said) or name_key(said) in PRONOUNS:
        return None
    if found := _apposed(said) or _tied(said):
        return found
    if match := _FROM.match(said):
        origin = match["there"] or match["origin"]
        return SpokenName(text=said, name=match["name"], origin=name_key(origin)[:MAX_ORIGIN])
    if (match := _ANOTHER.match(said)) and _is_proper(match["name"]):
        return SpokenName(text=said, name=match["name"], origin="another", is_another=True)
    return SpokenName(text=said, name=said)


def ties_in(text: str) -> Iterator[tuple[str, str]]:
    """What a text says of ties to its speaker: each tie, and its words with the name after it."""
    for match in _MY_WORD.finditer(text.translate(_TYPOGRAPHY)):
        tie = tie_of(match)
        name = _NEXT_NAME.match(text, match.end()) if TIE_TYPES[tie] != "group" else None
        yield tie, text[match.start() : name.end() if name else match.end()]


def told_name(name: str, subject: str | None) -> str:
    """A name as a fact of `subject` has it: what Alice calls "my brother Tom" is "Alice's brother Tom"."""
    whom = next((words.partition(" ")[2] for _, words in ties_in(name)), None)
    return f"{subject}'s {whom}" if subject and whom else name


def names_with_origin(text: str) -> Iterator[str]:
    """The names with where they are from, in a text ("Tom from work"), as they are said. A place is from nowhere."""
    found = _FROM_IN_TEXT.finditer(text.translate(_TYPOGRAPHY))
    return (match[0] for match in found if match["name"].casefold() not in CITIES | COUNTRIES)


def _apposed(said: str) -> SpokenName | None:
    """A name with its tie beside it; "Alices Freundin" is a tie where the name of its bearer follows."""
    match = _APPOSED.match(said)
    if match is None or not _is_proper(match["name"]) or _tied(match["name"]):
        return None
    name, tie = match["name"], match["tie"]
    found = _tied(tie)
    if found is None or found.name is not None:
        found = _tied(f"{tie} {name}")
    return None if found is None or TIE_TYPES[found.tie or ""] == "group" else replace(found, text=said, name=name)


def _tied(said: str) -> SpokenName | None:
    """The parts of a name that has a tie in it."""
    matches = (pattern.match(said) for pattern in (_MY, _OWNED, _TIE_OF, _NAME_FIRST))
    return next((found for match in matches if match and (found := _with_tie(said, match))), None)


def _with_tie(said: str, match: re.Match[str]) -> SpokenName | None:
    groups = match.groupdict()
    name = groups.get("name")
    if name is not None and not _is_proper(name):
        return None
    tie = tie_of(match)
    name = None if TIE_TYPES[tie] == "group" else name
    is_new = any(_NEW.search(groups[place] or "") for place in ("attributes", "after"))
    return SpokenName(text=said, name=name, tie=tie, owner=groups.get("owner"), is_new=is_new)


def tie_of(match: re.Match[str]) -> str:
    """The tie that a match with `TIE` or `GROUP` has found."""
    return next(tie for tie, said in match.groupdict().items() if said is not None and tie in TIE_TYPES)


def _is_proper(name: str) -> bool:
    """Whether it begins like a name: with a capital, or a letter of a script without them."""
    return not name[0].islower()
