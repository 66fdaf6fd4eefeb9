"""Whom and what the facts of a reply name: accepted is what the turn itself says."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from mnemolog.schemas.base import Text
from mnemolog.schemas.entities.model import (
    ENTITY_TYPES,
    MAX_ENTITIES,
    MAX_NAME,
    MAX_UNLINKED,
    EntityType,
    NamedEntity,
    Role,
    UnlinkedName,
    UnlinkedReason,
)
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.spoken_names import read_name, ties_in
from mnemolog.streams.llm.grounding.entity_types import read_type
from mnemolog.streams.llm.reply_parser import ReplyModel, shortened
from mnemolog.streams.text.normalise import has_words

_ROLES: tuple[Role, ...] = ("subject", "object", "mention")


class EntityReply(ReplyModel):  # a docstring would be a part of the schema that models are sent
    name: Text
    type: Text
    role: Annotated[Text, Field(json_schema_extra={"enum": list(_ROLES)})]
    aliases: SkipJsonSchema[tuple[Text, ...]] = ()
    """Nobody asks for them: each is read as a relation `same_as`."""


def said_entities(
    replies: Iterable[EntityReply], said: Sequence[str], turn: Turn, types: Collection[EntityType] = ENTITY_TYPES
) -> tuple[tuple[NamedEntity, ...], tuple[UnlinkedName, ...]]:
    """The entities whose names occur in `said`, the messages of the turn and the fact's text, or are its speakers.

    And the names that are left out: that nobody said, of too many letters, and beyond the bound of a fact. `types` are
    those that were asked for; an unknown role is a mention.
    """
    speakers = {turn.speaker, *(message.name for message in turn.messages)}
    kept: dict[str, NamedEntity] = {}
    left_out: dict[str, UnlinkedName] = {}
    for reply in replies:
        name = " ".join(reply.name.split())
        if not name:
            continue
        reason = _fault(reply.name, said, speakers)
        if name in kept or (reason is None and len(kept) < MAX_ENTITIES):
            role: Role = next((role for role in _ROLES if role == reply.role), "mention")
            kept[name] = NamedEntity(name=name, type=read_type(reply.type, types), role=role)
        else:
            left_out.setdefault(name, UnlinkedName(name=shortened(name, MAX_NAME), reason=reason or "too_many"))
    return tuple(kept.values()), tuple(left_out.values())[:MAX_UNLINKED]


def _fault(name: str, said: Sequence[str], speakers: Collection[str | None]) -> UnlinkedReason | None:
    if len(name) > MAX_NAME:
        return "too_long"
    return None if name in speakers or is_said(name, said) else "not_said"


def is_said(name: str, said: Sequence[str]) -> bool:
    """Whether the name was said; of "Alice's brother Tom" what was said is "my brother Tom", or "Tom"."""
    if any(has_words(text, name) for text in said):
        return True
    spoken = read_name(name)
    if spoken is None or spoken.tie is None:
        return False
    return any(has_words(text, spoken.name) if spoken.name else spoken.tie in _ties(text) for text in said)


def _ties(text: str) -> Iterator[str]:
    return (tie for tie, _ in ties_in(text))
