"""What of a text may name known entities, without a model: the beginnings of its words, and the ties of its speaker."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from mnemolog.schemas.entities.model import HEAD_LETTERS, name_head, tie_head
from mnemolog.schemas.entities.relations import name_of_predicate
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.spoken_names import TIE_TYPES, ties_in
from mnemolog.streams.text.word_lists import SMALL_WORDS

MAX_HEADS: Final = 256
"""How many beginnings of words of a turn count."""
TIE_HEADS: Final = frozenset(map(tie_head, TIE_TYPES))
"""What the aliases of all ties are looked up by."""
_WORD: Final = re.compile(r"\w+(?:['\u2019\u2018`.]\w+)*")
_JOINS: Final = re.compile("['\u2019]")
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that put no space between words, where a name may begin at any place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidNames:
    """By what the entities are looked up that a text may name; `predicates` are those of its ties.

    `text` has its words twice: as they are, and as names are compared.
    """

    text: str
    heads: tuple[str, ...]
    ties: tuple[str, ...]
    predicates: tuple[str, ...]


def names_said_in(text: str) -> SaidNames:
    """What of `text` may name entities."""
    words = _WORD.findall(text)
    heads = dict.fromkeys(head for word in words for head in _heads_of_word(word))
    compared = " ".join(name_key(part) for word in words for part in _JOINS.split(word))
    ties = tuple(dict.fromkeys(tie for tie, _ in ties_in(text)))
    predicates = dict.fromkeys(map(name_of_predicate, ties))
    return SaidNames(
        text=f"{text}\n{compared}",
        heads=tuple(islice(heads, MAX_HEADS)),
        ties=tuple(map(tie_head, ties)),
        predicates=tuple(predicates),
    )


def _heads_of_word(word: str) -> Iterator[str]:
    """What names that begin with a word are looked up by; a small word in small letters begins none."""
    if _UNSPACED.search(word):
        places = range(len(word))
        yield from (word[start : start + size] for start in places for size in range(1, HEAD_LETTERS + 1))
    elif word not in SMALL_WORDS:
        yield from (name_head(key) for part in (word, *_JOINS.split(word)[1:]) if (key := name_key(part)))
