"""Whom and what the facts of a reply name: accepted is what the turn itself says."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter
from pydantic.json_schema import SkipJsonSchema

from mnemolog.schemas.base import Text
from mnemolog.schemas.entities.model import (
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
from mnemolog.streams.entities.spoken_names import ALSO_CALLED, read_name, ties_in
from mnemolog.streams.llm.reply_parser import ReplyModel, shortened
from mnemolog.streams.text.normalise import has_words

_TYPE: TypeAdapter[str] = TypeAdapter(EntityType)
_ROLES: tuple[Role, ...] = ("subject", "object", "mention")


class EntityReply(ReplyModel):  # a docstring would be a part of the schema that models are sent
    name: Text
    type: Text
    role: Annotated[Text, Field(json_schema_extra={"enum": list(_ROLES)})]
    aliases: SkipJsonSchema[tuple[Text, ...]] = ()
    """Nobody asks for them: each is read as a relation `same_as`."""


def said_entities(
    replies: Iterable[EntityReply], said: Sequence[str], turn: Turn
) -> tuple[tuple[NamedEntity, ...], tuple[UnlinkedName, ...]]:
    """The entities whose names occur in `said`, the messages of the turn and the fact's text, or are its speakers.

    And the names that are left out: that nobody said, of too many letters, and beyond the bound of a fact. A type that
    is no plain word is `other`, an unknown role a mention.
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
            kept[name] = _entity(name, reply)
        else:
            left_out.setdefault(name, UnlinkedName(name=shortened(name, MAX_NAME), reason=reason or "too_many"))
    return tuple(kept.values()), tuple(left_out.values())[:MAX_UNLINKED]


def long_name_notes(replies: Iterable[EntityReply]) -> Iterator[str]:
    """What is said of names that are left out because they are too long to be one; not the names themselves."""
    for reply in replies:
        if len(reply.name) > MAX_NAME:
            yield f"a name of {len(reply.name)} characters was left out: the limit is {MAX_NAME}"


def _fault(name: str, said: Sequence[str], speakers: Collection[str | None]) -> UnlinkedReason | None:
    if len(name) > MAX_NAME:
        return "too_long"
    return None if name in speakers or is_said(name, said) else "not_said"


def _entity(name: str, reply: EntityReply) -> NamedEntity:
    kind = reply.type.strip().casefold()
    try:
        _TYPE.validate_python(kind)
    except ValueError:
        kind = "other"
    role: Role = next((role for role in _ROLES if role == reply.role), "mention")
    return NamedEntity(name=name, type=kind, role=role)


def is_said(name: str, said: Sequence[str]) -> bool:
    """Whether the name was said; of "Alice's brother Tom" what was said is "my brother Tom", or "Tom".

    Another name that is given with it has to be said in the same text.
    """
    bearer, is_given, alias = name.rpartition(ALSO_CALLED)
    if is_given:
        return any(has_words(text, alias) and is_said(bearer, [text]) for text in said)
    if any(has_words(text, name) for text in said):
        return True
    spoken = read_name(name)
    if spoken is None or spoken.tie is None:
        return False
    return any(has_words(text, spoken.name) if spoken.name else spoken.tie in _ties(text) for text in said)


def _ties(text: str) -> Iterator[str]:
    return (tie for tie, _ in ties_in(text))
