"""Finds ties in a text that are told in other ways: "Tom is my brother", "my brother is called Tom", "Ana's dog"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.short_forms import forms_of
from mnemolog.streams.entities.spoken_names import GROUP, NAME, PRONOUNS, TIE, TIE_TYPES, WORDS, tie_of

TITLED: Final = rf"(?:{WORDS['titles']})\.? {NAME}(?: {NAME})?"
"""The pattern of a name with a title, in which case counts."""
_NAMES: Final = rf"(?P<name>{TITLED}|{NAME}(?: {NAME})?)"
_MY_TIE: Final = rf"(?<!\w)(?i:{WORDS['my']}) (?P<tie>(?i:{TIE}))"
_TIE_FIRST: Final = re.compile(rf"{_MY_TIE} (?:(?:{WORDS['called']}) {_NAMES}|(?:{WORDS['is']}) (?P<titled>{TITLED}))")
_TIE_IS: Final = re.compile(rf"{_MY_TIE} (?:{WORDS['is']}) (?P<name>{NAME}(?: {NAME})?)")
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
