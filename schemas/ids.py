"""Deterministic ids: the same source gives the same ids on every delivery, machine and replay.

Nothing that a language model wrote enters an id. The owner is part of it, because two owners may choose equal turn ids.
"""

from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson

from mnemolog.schemas.base import MAX_IDENTIFIER_BYTES

_NAMESPACE = uuid5(NAMESPACE_URL, "mnemolog")

FOLLOW_UP_PREFIX: Final = "promote/"
"""How the ids of commands begin that promote what another command left; no turn and no other command has such an id."""


def fact_id(owner: str, source_id: str, ordinal: int) -> UUID:
    """The id of the fact that event `ordinal` of a source brings."""
    return _derive("fact", owner, source_id, ordinal)


def event_id(owner: str, source_id: str, ordinal: int) -> UUID:
    """The id of event `ordinal` of a source's commit."""
    return _derive("event", owner, source_id, ordinal)


def entity_id(owner: str, source_id: str, place: int) -> UUID:
    """The id of the entity that a source names first; `place` counts those of the source."""
    return _derive("entity", owner, source_id, place)


def summary_command_id(owner: str, source_id: str, place: int) -> str:
    """The id of the command that follows from a source, to summarise the entity at `place` of those that are due."""
    return str(_derive("summary", owner, source_id, place))


def relation_id(subject_id: UUID, predicate: str, object_id: UUID) -> UUID:
    """The id of a relation between two entities, the same whatever states it."""
    return uuid5(_NAMESPACE, orjson.dumps(["relation", subject_id.hex, predicate, object_id.hex]).decode())


def provisional_fact_id(owner: str, source_id: str, place: int) -> UUID:
    """The id of the fact at `place` of a source until it is known which event it becomes; none of `fact_id`."""
    return _derive("provisional", owner, source_id, place)


def is_follow_up_id(source_id: str) -> bool:
    return source_id.startswith(FOLLOW_UP_PREFIX)


def follow_up_id(source_id: str) -> str:
    """The id of the command that promotes what a promote command left: `promote/source_id`, a digest where too long."""
    name = f"{FOLLOW_UP_PREFIX}{source_id}"
    if len(name.encode()) <= MAX_IDENTIFIER_BYTES:
        return name
    return f"{FOLLOW_UP_PREFIX}{_derive('promote', '', source_id, 0).hex}"


def attempt_source(source_id: str, attempt: int) -> str:
    """The source id that the ids of a later attempt are derived from: the first one may have stored raw facts.

    No source has such an id, for an id holds no NUL.
    """
    return source_id if attempt == 1 else f"{source_id}\0{attempt}"


def _derive(kind: str, owner: str, source_id: str, ordinal: int) -> UUID:
    return uuid5(_NAMESPACE, orjson.dumps([kind, owner, source_id, ordinal]).decode())
