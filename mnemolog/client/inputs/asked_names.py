"""Reads who is asked for: "my wife", "Tom's boss", "my wife's dog", "my employer"."""

import re
from dataclasses import dataclass
from typing import Final

from mnemolog.projections.lists.entity_graph import AskedTie
from mnemolog.schemas.entities.relations import WORDS, read_predicate
from mnemolog.streams.entities.spoken_names import read_name

_MAX_OWNERS: Final = 5
"""How many owners are read: "my wife's boss's dog's vet" has three."""
_OWNED: Final = re.compile(r"^(?:my|our|(?P<owner>\S.*?)['\u2019]s) (?P<word>[^'\u2019]+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedName:
    """A name, or what somebody is to `owner`; without an owner that is the user."""

    name: str
    tie: AskedTie | None = None
    owner: "AskedName | None" = None


def read_question(text: str, *, owners: int = _MAX_OWNERS) -> AskedName | None:
    """Who is asked for; None where that is no name, or has too many owners."""
    spoken = read_name(text)
    if spoken is None or owners == 0:
        return None
    if spoken.tie is not None:
        tie = AskedTie(predicate=spoken.tie, tie=spoken.tie, name_key=spoken.key)
        return _asked(spoken.text, tie, spoken.owner, owners)
    owned = _OWNED.match(spoken.text)
    read = read_predicate(owned["word"]) if owned else None
    if owned is None or read is None or read.word not in WORDS:
        return AskedName(name=spoken.text)
    return _asked(spoken.text, AskedTie(predicate=read.word), owned["owner"], owners)


def _asked(text: str, tie: AskedTie, owner: str | None, owners: int) -> AskedName | None:
    if owner is None:
        return AskedName(name=text, tie=tie)
    whose = read_question(owner, owners=owners - 1)
    return None if whose is None else AskedName(name=text, tie=tie, owner=whose)
