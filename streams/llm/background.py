"""What a prompt shows beside a turn: which entities its words may name, and what fits into the tokens for it."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Final, TypeVar
from uuid import UUID

from mnemolog.common.tokens import estimate_tokens
from mnemolog.schemas.entities import HEAD_LETTERS, MAX_NAME, name_head, name_of_predicate, tie_head
from mnemolog.schemas.stored import EarlierMessage, ShownEntity, ShownFact
from mnemolog.streams.entities.names import TIE_TYPES, name_key, ties_in
from mnemolog.streams.text.tokens import SMALL_WORDS

MAX_HEADS: Final = 256
"""Beginnings of words of a turn that are looked up at most."""
TIE_HEADS: Final = frozenset(map(tie_head, TIE_TYPES))
"""The keys by which aliases that are ties ("my wife") are looked up."""
_WORD: Final = re.compile(r"\w+(?:['\u2019\u2018`.]\w+)*")
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that put no space between words, where a name may begin at any place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidNames:
    """The keys by which entities that a text may name are looked up: heads of names, ties, predicates of the ties.

    `text` has its words twice: as they are, and as names are compared.
    """

    text: str
    heads: tuple[str, ...]
    ties: tuple[str, ...]
    predicates: tuple[str, ...]


_key_of_word: Final = lru_cache(maxsize=8_192)(name_key)
"""A language has few words: most of a turn were read in the turns before it."""


def names_said_in(text: str) -> SaidNames:
    words = [word[:MAX_NAME].replace("\u2019", "'") for word in _WORD.findall(text)]
    heads = dict[str, None]()
    for word in dict.fromkeys(words):
        if not word.isascii() and _UNSPACED.search(word):
            places = range(len(word))
            heads |= dict.fromkeys(
                word[start : start + size] for start in places for size in range(1, HEAD_LETTERS + 1)
            )
        elif word not in SMALL_WORDS:  # in small letters it begins no name
            for part in (word, *word.split("'")[1:]):
                if key := _key_of_word(part):
                    heads[name_head(key)] = None
    compared = " ".join(map(_key_of_word, " ".join(words).replace("'", " ").split(" ")))
    ties = tuple(dict.fromkeys(tie for tie, _ in ties_in(text)))
    predicates = dict.fromkeys(map(name_of_predicate, ties))
    return SaidNames(
        text=f"{text}\n{compared}",
        heads=tuple(islice(heads, MAX_HEADS)),
        ties=tuple(map(tie_head, ties)),
        predicates=tuple(predicates),
    )


_LEAST: Final = 24
"""Tokens of the end of a message that is worth showing."""
_AROUND: Final = 12
"""Tokens of a line besides its text: the mark, the time, the role."""

Shown = TypeVar("Shown", ShownFact, ShownEntity)


def last_messages(messages: Sequence[EarlierMessage], *, count: int, tokens: int) -> tuple[EarlierMessage, ...]:
    """The last messages that fit, the oldest first; of the first one that does not fit, its end."""
    kept: list[EarlierMessage] = []
    for message in reversed(messages[-count:] if count else ()):
        room = tokens - _AROUND - estimate_tokens(message.name or "")
        size = estimate_tokens(message.content)
        if size > room:
            if room >= _LEAST:
                words = message.content.split()
                fitting = bisect_right(
                    range(1, len(words) + 1), room, key=lambda count: estimate_tokens(" ".join(words[-count:]))
                )
                end = " ".join(words[-fitting:]) if fitting else message.content[-room:]
                kept.append(message.model_copy(update={"content": f"… {end}"}))
            break
        kept.append(message)
        tokens = room - size
    return tuple(reversed(kept))


def best_shown(
    entities: Iterable[ShownEntity], facts: Iterable[ShownFact], *, tokens: int
) -> tuple[tuple[ShownEntity, ...], tuple[ShownFact, ...]]:
    """The first entities that fit into half of these tokens, and the first facts that fit into what is left."""
    kept_entities, kept_facts, left = list[ShownEntity](), list[ShownFact](), tokens
    for entity in entities:
        size = _AROUND + estimate_tokens(" ".join((entity.name, entity.type, *entity.names, *entity.ties)))
        if left - size < tokens - tokens // 2:
            break
        kept_entities.append(entity)
        left -= size
    for fact in facts:
        left -= _AROUND + estimate_tokens(f"{fact.key} {fact.value} {fact.subject} {fact.text}")
        if left < 0:
            break
        kept_facts.append(fact)
    return tuple(kept_entities), tuple(kept_facts)


def in_turn(*lists: Sequence[Shown]) -> tuple[Shown, ...]:
    """The items of these lists, each once: the first of each list, then the second of each."""
    found: dict[UUID, Shown] = {}
    for rank in zip_longest(*lists):
        for item in rank:
            if item is not None:
                found[item.fact_id if isinstance(item, ShownFact) else item.entity_id] = item
    return tuple(found.values())
