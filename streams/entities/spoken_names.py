"""Takes a name apart as it was said: "my brother Tom" is a tie and a name, "Tom from work" has an origin."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.text.patterns import tables

_TABLES: Final[Mapping[str, Mapping[str, str]]] = tables(Path(__file__).with_name("ties.toml"))
TIE_TYPES: Final = {tie: kind for kind in ("person", "animal") for tie in _TABLES[kind]}
"""What somebody or something can be to another one, with the type of it."""
_TIE: Final = "|".join(f"(?P<{tie}>{words})" for kind in ("person", "animal") for tie, words in _TABLES[kind].items())
_WORDS: Final = _TABLES["words"]
_MY: Final = re.compile(rf"^(?:{_WORDS['my']}) (?:{_TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
_OWNED: Final = re.compile(rf"^(?P<owner>\S.*?)(?:'s|'|s(?= \S+ )) (?:{_TIE})(?:,? (?P<name>.+))?$", re.IGNORECASE)
"""Without an apostrophe ("Annas Bruder Tom") a name has to follow: "Thomas Mann" is nobody's husband."""
_TIE_OF: Final = re.compile(
    rf"^(?:(?:{_WORDS['the']}) ?)?(?:{_TIE}) (?:{_WORDS['of']}) ?(?P<owner>\S.*)$", re.IGNORECASE
)
_NAME_FIRST: Final = re.compile(rf"^(?P<name>.+?),? (?:{_WORDS['my']}) (?:{_TIE})$", re.IGNORECASE)
_FROM: Final = re.compile(
    rf"^(?P<name>.+?) (?:from (?:the )?(?P<there>.+)|(?:{_WORDS['from']}) ?(?P<origin>{_WORDS['origins']}))$",
    re.IGNORECASE,
)
_FROM_IN_TEXT: Final = re.compile(
    rf"(?<!\w)[^\W\d_a-z][\w'-]+ (?i:from|{_WORDS['from']}) (?i:the )?(?i:{_WORDS['origins']})(?!\w)"
)
_PRONOUNS: Final = frozenset(_WORDS["pronouns"].split("|"))
_MY_WORD: Final = re.compile(rf"(?<!\w)(?:{_WORDS['my']}) (?:{_TIE})(?!\w)", re.IGNORECASE)
_NEXT_NAME: Final = re.compile(r",? [^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)?")
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenName:
    """A name as it was said (`text`), and its parts.

    `name` is the proper name in it, `tie` what it is to `owner`, which is None for the speaker, and `origin` the key
    of where it is from.
    """

    text: str
    name: str | None = None
    tie: str | None = None
    owner: str | None = None
    origin: str | None = None

    @property
    def key(self) -> str:
        return name_key(self.name or "")


def read_name(text: str) -> SpokenName | None:
    """The parts of a name; None where it names nobody: a pronoun, or nothing but signs."""
    said = " ".join(text.translate(_TYPOGRAPHY).split())
    if not name_key(said) or name_key(said) in _PRONOUNS:
        return None
    for pattern in (_MY, _OWNED, _TIE_OF, _NAME_FIRST):
        if (match := pattern.match(said)) and (found := _with_tie(said, match)):
            return found
    if match := _FROM.match(said):
        origin = match["there"] or match["origin"]
        return SpokenName(text=said, name=match["name"], origin=name_key(origin))
    return SpokenName(text=said, name=said)


def ties_in(text: str) -> Iterator[tuple[str, str]]:
    """What a text says of ties to its speaker: each tie, and its words with the name after it."""
    for match in _MY_WORD.finditer(text.translate(_TYPOGRAPHY)):
        name = _NEXT_NAME.match(text, match.end())
        yield _tie(match), text[match.start() : name.end() if name else match.end()]


def names_with_origin(text: str) -> Iterator[str]:
    """The names with where they are from, in a text ("Tom from work"), as they are said."""
    return (match[0] for match in _FROM_IN_TEXT.finditer(text.translate(_TYPOGRAPHY)))


def _with_tie(said: str, match: re.Match[str]) -> SpokenName | None:
    groups = match.groupdict()
    name = groups.get("name")
    if name is not None and not _is_proper(name):
        return None
    return SpokenName(text=said, name=name, tie=_tie(match), owner=groups.get("owner"))


def _tie(match: re.Match[str]) -> str:
    return next(tie for tie in TIE_TYPES if match[tie] is not None)


def _is_proper(name: str) -> bool:
    """Whether it begins like a name: with a capital, or a letter of a script without them."""
    return not name[0].islower()
