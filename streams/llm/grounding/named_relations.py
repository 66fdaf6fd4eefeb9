"""What the facts of a reply say that those they name are to each other: accepted is what is between accepted names."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from mnemolog.schemas.base import Text
from mnemolog.schemas.entities.model import MAX_NAME
from mnemolog.schemas.entities.relations import (
    MAX_RELATIONS,
    STRENGTHS,
    NamedRelation,
    Strength,
    is_same_as,
    read_predicate,
)
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.stated_relations import name_forms
from mnemolog.streams.llm.reply_parser import ReplyModel
from mnemolog.streams.text.subjects import is_user_word


class RelationReply(ReplyModel):  # a docstring would be a part of the schema that models are sent
    subject: Text
    predicate: Text
    object: Text
    strength: Annotated[Text, Field(json_schema_extra={"enum": list(STRENGTHS)})]


def named_relations(
    replies: Iterable[RelationReply], names: Iterable[str], turn: Turn, other_speaker: str | None
) -> tuple[NamedRelation, ...]:
    """The relations between those that a fact names, those who speak in the turn, and the user.

    `names` are those of its entities and its subject. What another speaker says of "the user" is about that speaker.
    One with anybody else is left out, and so is one whose predicate is no word, or of a name with itself. `told_names`
    has those that say that two names are of one. An unknown strength is weak.
    """
    speakers = (turn.speaker, *(message.name for message in turn.messages))
    known = {form for name in (*names, *speakers) if name for form in name_forms(name)}
    found = (relation for reply in replies if (relation := _relation(reply, known, other_speaker)) is not None)
    kept = {(one.subject, one.predicate, one.object): one for one in found}
    return tuple(kept.values())[:MAX_RELATIONS]


def _relation(reply: RelationReply, known: set[str], other_speaker: str | None) -> NamedRelation | None:
    if is_same_as(reply.predicate):
        return None
    read = read_predicate(reply.predicate)
    said = _known_names((reply.subject, reply.object), known)
    names = [other_speaker if other_speaker and is_user_word(name) else name for name in said]
    if read is None or len(names) < 2 or name_key(names[0]) == name_key(names[1]):  # noqa: PLR2004 -- both of them
        return None
    strength: Strength = next((strength for strength in STRENGTHS if strength == reply.strength), "weak")
    return NamedRelation(subject=names[0], predicate=read.word, object=names[1], strength=strength)


def _known_names(names: Iterable[str], known: set[str]) -> Iterator[str]:
    for name in (" ".join(name.split()) for name in names):
        if 0 < len(name) <= MAX_NAME and (is_user_word(name) or not known.isdisjoint(name_forms(name)[:1])):
            yield name
