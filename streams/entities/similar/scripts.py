"""Whether two names may be one that is written in two alphabets: "Анна" and "Anna", "Юлия" and "Julia".

How a name is spelled in another alphabet depends on the language and on the writer. So names are compared by the sounds
that their letters mostly stand for, and who is found so is a possible twin at the most. Scripts without letters for
each sound (Chinese, Arabic) are compared with none.
"""

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Final

from mnemolog.streams.entities.similar.misspelled_names import compare_names
from mnemolog.streams.text.patterns import tables

Letters = Mapping[str, str]
LATIN: Final = "latin"


@lru_cache(maxsize=4096)
def other_script_ends(key: str) -> frozenset[str]:
    """The first and last letters that this name may have in the other alphabets: it is looked up by them.

    Those of its first word count too: a first name may be known with a surname, or the other way round.
    """
    own = _alphabet_of(key)
    if own is None:
        return frozenset()
    words = {key, key.partition(" ")[0]}
    others = [name for name in _LETTERS if name != own and LATIN in (name, own)]
    return frozenset(ends for word in words for other in others for ends in _ends_in(word, other))


def may_be_spelled(one: str, other: str) -> bool:
    """Whether two keys of two alphabets sound nearly alike; a first name alone is compared with the first name."""
    if not {_alphabet_of(one), _alphabet_of(other)} - {None} > {LATIN}:
        return False
    names, words = (_sound(one), _sound(other)), (_sound(one).split(), _sound(other).split())
    is_first_name = 1 in map(len, words) and len(words[0]) != len(words[1])
    return _are_alike(*names) or (is_first_name and _are_alike(words[0][0], words[1][0]))


def _are_alike(one: str, other: str) -> bool:
    return bool(one) and (one == other or compare_names(one, other) is not None)


def _alphabet_of(key: str) -> str | None:
    """That of its first letter."""
    first = next(filter(str.isalpha, key), "")
    if first.isascii():
        return LATIN if first else None
    return next((name for name, letters in _LETTERS.items() if first in letters), None)


@lru_cache(maxsize=4096)
def _sound(key: str) -> str:
    """A key with the Latin letters of its sounds, doubled ones once: "iulia" for "юлия", "julia" and "yuliya"."""
    for name in (*(name for name in _LETTERS if name != LATIN), LATIN):
        key = _SEQUENCES[name].sub(partial(_written, _LETTERS[name]), key)
    return _DOUBLED.sub(r"\1", key)


def _written(letters: Letters, found: re.Match[str]) -> str:
    return letters[found[0]]


def _ends_in(word: str, alphabet: str) -> set[str]:
    """Each way to write the first and the last letter of a word in an alphabet."""
    sound = _sound(word)
    if not sound:
        return set()
    firsts = {letters[0] for letters in _spellings(alphabet, sound[0], at=0)}
    lasts = {letters[-1] for letters in _spellings(alphabet, sound[-1], at=-1)}
    return {f"{first}{last}" for first, last in product(firsts, lasts | _SILENT[alphabet])}


def _spellings(alphabet: str, sound: str, *, at: int) -> set[str]:
    """The letters of an alphabet whose sound begins (`at` 0), or ends (-1), so; Latin ones stand for themselves too."""
    found = {
        letters for letters, written in _LETTERS[alphabet].items() if _sound(written)[at : at + 1 or None] == sound
    }
    return found | ({sound} if alphabet == LATIN else set())


def _table() -> dict[str, Letters]:
    read = tables(Path(__file__).with_name("letters.toml"))
    return {
        name: {letters: sound for letters, _, sound in (pair.partition("=") for pair in table["letters"].split())}
        for name, table in read.items()
    }


def _sequences(letters: Letters) -> re.Pattern[str]:
    return re.compile("|".join(sorted(letters, key=len, reverse=True)))


_LETTERS: Final = _table()
_SEQUENCES: Final = {name: _sequences(letters) for name, letters in _LETTERS.items()}
_SILENT: Final = {name: {one for one, sound in letters.items() if not sound} for name, letters in _LETTERS.items()}
_DOUBLED: Final = re.compile(r"([a-z])\1+")
