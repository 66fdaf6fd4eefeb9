"""Finds relations in a text without a model, in the clear cases: what fills a slot, and a tie that is over."""

import re
from pathlib import Path
from typing import Final

from mnemolog.schemas.entities.model import MAX_NAME
from mnemolog.schemas.entities.relations import NamedRelation, read_predicate
from mnemolog.streams.entities.named_ties import members_in
from mnemolog.streams.entities.names_in_text import value_entities
from mnemolog.streams.entities.spoken_names import ties_in
from mnemolog.streams.text.patterns import tables
from mnemolog.streams.text.subjects import USER

_OVER: Final = re.compile(
    rf"(?<!\w)(?:{tables(Path(__file__).with_name('ties.toml'))['words']['over']}) $", re.IGNORECASE
)
"""What stands right before "my wife" where a sentence that ends something says that she is that no longer."""


def value_relations(key: str, value: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """What the value of a key is to the subject: a home, an employer, somebody or something of theirs."""
    if len(subject or "") > MAX_NAME:
        return ()
    named, read = value_entities(key, value, subject), read_predicate(key)
    return tuple(
        NamedRelation(subject=subject or USER, predicate=read.word, object=entity.name) for entity in named if read
    )


def member_relations(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """What those are to the subject who are named as members of a group, in passing: "my kids Leo and Mia"."""
    if len(subject or "") > MAX_NAME:
        return ()
    return tuple(
        NamedRelation(subject=subject or USER, predicate=tie, object=name, strength="medium")
        for tie, names in members_in(said)
        for name in names
    )


def ended_relations(said: str, subject: str | None) -> tuple[NamedRelation, ...]:
    """The ties of the subject that a sentence says to be over: "Ana is no longer my wife"."""
    found, start = {}, 0
    for tie, words in ties_in(said):
        at = said.index(words, start)
        start = at + 1
        if _OVER.search(said[:at]):
            _, _, whom = words.partition(" ")
            name = f"{subject}'s {whom}" if subject else words
            if len(name) <= MAX_NAME:
                found[name] = NamedRelation(subject=subject or USER, predicate=tie, object=name)
    return tuple(found.values())
