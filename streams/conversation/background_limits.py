"""What of a conversation and of known facts fits into the tokens that a prompt has for them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Final, TypeVar
from uuid import UUID

from mnemolog.projections.context.tokens import estimate_tokens
from mnemolog.schemas.stored import EarlierMessage, ShownEntity, ShownFact

_LEAST: Final = 24
"""Tokens of the end of a message that still tells something."""
_AROUND: Final = 12
"""Tokens of a line besides its text: the mark, the time, the role."""

T = TypeVar("T")
Shown = TypeVar("Shown", ShownFact, ShownEntity)


def last_messages(messages: Sequence[EarlierMessage], *, count: int, tokens: int) -> tuple[EarlierMessage, ...]:
    """The last messages that fit, the oldest first; of the first one that does not fit, its end."""
    kept: list[EarlierMessage] = []
    for message in reversed(messages[-count:] if count else ()):
        room = tokens - _AROUND - estimate_tokens(message.name or "")
        size = estimate_tokens(message.content)
        if size > room:
            if room >= _LEAST:
                kept.append(message.model_copy(update={"content": _end_of(message.content, room)}))
            break
        kept.append(message)
        tokens = room - size
    return tuple(reversed(kept))


def best_facts(facts: Iterable[ShownFact], *, tokens: int) -> tuple[ShownFact, ...]:
    """The first facts that fit."""
    return tuple(_fitting(facts, tokens, lambda fact: f"{fact.key} {fact.value} {fact.subject} {fact.text}"))


def best_entities(entities: Iterable[ShownEntity], *, tokens: int) -> tuple[ShownEntity, ...]:
    """The first entities that fit into half of these tokens: the other half is for facts."""
    return tuple(_fitting(entities, tokens // 2, _entity_text))


def tokens_of_entities(entities: Iterable[ShownEntity]) -> int:
    """The tokens that these entities take."""
    return sum(_AROUND + estimate_tokens(_entity_text(entity)) for entity in entities)


def _entity_text(entity: ShownEntity) -> str:
    """All that is shown of an entity."""
    return " ".join((entity.name, entity.type, *entity.names, *entity.ties))


def in_turn(*lists: Sequence[Shown]) -> tuple[Shown, ...]:
    """What these lists have, each once: the first of each, then the second of each."""
    found = {_id_of(one): one for rank in zip_longest(*lists) for one in rank if one is not None}
    return tuple(found.values())


def _id_of(one: ShownFact | ShownEntity) -> UUID:
    return one.fact_id if isinstance(one, ShownFact) else one.entity_id


def _fitting(items: Iterable[T], tokens: int, text_of: Callable[[T], str]) -> Iterable[T]:
    for item in items:
        tokens -= _AROUND + estimate_tokens(text_of(item))
        if tokens < 0:
            return
        yield item


def _end_of(content: str, tokens: int) -> str:
    """The last words of a text that fit."""
    words = content.split()
    low, high = 0, len(words)
    while low < high:  # so many words from the end fit
        middle = (low + high + 1) // 2
        fits = estimate_tokens(" ".join(words[len(words) - middle :])) <= tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    end = " ".join(words[len(words) - low :]) if low else content[-tokens:]
    return f"… {end}"
