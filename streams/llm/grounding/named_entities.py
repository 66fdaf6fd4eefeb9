"""Whom and what the facts of a reply name: accepted is what the turn itself says."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter

from mnemolog.schemas.base import Text
from mnemolog.schemas.entities.model import MAX_ENTITIES, MAX_NAME, EntityType, NamedEntity, Role
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.spoken_names import read_name, ties_in
from mnemolog.streams.llm.reply_parser import Line, ReplyModel
from mnemolog.streams.text.normalise import has_words

_TYPE: TypeAdapter[str] = TypeAdapter(EntityType)
_ROLES: tuple[Role, ...] = ("subject", "object", "mention")


class EntityReply(ReplyModel):  # a docstring would be a part of the schema that models are sent
    name: Text
    type: Line
    role: Annotated[Line, Field(json_schema_extra={"enum": list(_ROLES)})]


def said_entities(replies: Iterable[EntityReply], said: Sequence[str], turn: Turn) -> tuple[NamedEntity, ...]:
    """The entities whose names occur in `said`, the messages of the turn and the fact's text, or are its speakers.

    A name that nobody said is left out, and so is one of too many letters. A type that is no plain word is `other`, an
    unknown role a mention.
    """
    speakers = {turn.speaker, *(message.name for message in turn.messages)}
    found = (_entity(reply) for reply in replies if _is_said(reply.name, said) or reply.name in speakers)
    kept = {entity.name: entity for entity in found if entity is not None}
    return tuple(kept.values())[:MAX_ENTITIES]


def long_name_notes(replies: Iterable[EntityReply]) -> Iterator[str]:
    """What is said of names that are left out because they are too long to be one; not the names themselves."""
    for reply in replies:
        if len(reply.name) > MAX_NAME:
            yield f"a name of {len(reply.name)} characters was left out: the limit is {MAX_NAME}"


def _entity(reply: EntityReply) -> NamedEntity | None:
    name = " ".join(reply.name.split())
    if not 0 < len(name) <= MAX_NAME:
        return None
    kind = reply.type.strip().casefold()
    try:
        _TYPE.validate_python(kind)
    except ValueError:
        kind = "other"
    role: Role = next((role for role in _ROLES if role == reply.role), "mention")
    return NamedEntity(name=name, type=kind, role=role)


def _is_said(name: str, said: Sequence[str]) -> bool:
    """Whether the name was said; of "Alice's brother Tom" what was said is "my brother Tom", or "Tom"."""
    if len(name) > MAX_NAME:
        return False
    if any(has_words(text, name) for text in said):
        return True
    spoken = read_name(name)
    if spoken is None or spoken.tie is None:
        return False
    return any(has_words(text, spoken.name) if spoken.name else spoken.tie in _ties(text) for text in said)


def _ties(text: str) -> Iterator[str]:
    return (tie for tie, _ in ties_in(text))
