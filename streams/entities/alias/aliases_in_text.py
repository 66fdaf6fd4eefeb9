"""Finds in a text, without a model, that somebody is called something else as well: "Everyone calls Josefine Fini"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mnemolog.streams.entities.spoken_names import ANY_TIE, NAME, PRONOUNS, WORDS
from mnemolog.streams.text.patterns import compiled, tables
from mnemolog.streams.text.word_lists import DATES, SENTENCE_STARTERS

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
