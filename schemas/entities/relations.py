"""What entities are to each other: relations as facts state them, and the registry of predicates."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from mnemolog.schemas.base import Record
from mnemolog.schemas.entities.model import EntityName

MAX_RELATIONS: Final = 20
"""How many relations one fact may state."""
MAX_PREDICATE: Final = 64
Strength = Literal["strong", "medium", "weak"]
"""How a fact states a relation: it is what the fact says; the fact names it in passing ("my wife Ana sings"), or it
only suggests it."""
SAME_AS: Final = "same_as"
"""The predicate of two names of one: it tells a name, or proposes a merge, and never becomes a relation."""
STRENGTHS: Final[tuple[Strength, ...]] = ("strong", "medium", "weak")
PredicateName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class NamedRelation(Record):
    """A relation between two whom a fact names: the object is the subject's `predicate`.

    The names are those that the fact gives them, the predicate is a word as it was said ("wife", "works_at").
    """

    subject: EntityName
    predicate: PredicateName
    object: EntityName
    strength: Strength = "strong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A predicate: what an object is to its subject. `inverse` is what the subject is to the object, None if unknown.

    Of a `single_valued` one a subject has one object at a time.
    """

    name: str
    inverse: str | None = None
    single_valued: bool = False

    @property
    def is_symmetric(self) -> bool:
        return self.inverse == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPredicate:
    """What a word for a predicate means; where `is_reversed`, with the subject in the place of the object."""

    word: str
    predicate: Predicate
    is_reversed: bool = False


_PREFIXES: Final = ("is_", "are_", "has_", "my_", "a_", "the_")
_MAX_SAID: Final = 2 * MAX_PREDICATE
"""Characters of what is said for a predicate: with more, it is none."""
_GAPS: Final = re.compile(r"[^a-z0-9]+")


def _registry() -> Iterator[tuple[str, ReadPredicate]]:
    tables = tomllib.loads(Path(__file__).with_name("predicates.toml").read_text(encoding="utf-8"))
    for name, entry in tables.items():
        predicate = Predicate(name=name, inverse=entry["inverse"], single_valued=entry.get("single_valued", False))
        for word in (*entry.get("inverse_words", "").split(), entry["inverse"]):
            yield word, ReadPredicate(word=word, predicate=predicate, is_reversed=True)
        for word in (*entry.get("words", "").split(), name):
            yield word, ReadPredicate(word=word, predicate=predicate)


WORDS: Final[Mapping[str, ReadPredicate]] = dict(_registry())
"""What each known word for a predicate or its inverse means."""
PREDICATES: Final[Mapping[str, Predicate]] = {word.predicate.name: word.predicate for word in WORDS.values()}
"""The registered predicates; a relation that is stated by the inverse of one is kept by the predicate itself."""
ONE_AT_A_TIME: Final = tuple(one.name for one in PREDICATES.values() if one.single_valued)
"""Predicates of which a subject has one object at a time."""


def read_predicate(said: str) -> ReadPredicate | None:
    """What a word for a predicate means: one of the registry, else the word itself without an inverse.

    None for what is no word in Latin letters.
    """
    word = _GAPS.sub("_", said[:_MAX_SAID].casefold()).strip("_")
    for form in _forms(word):
        if form in WORDS:
            return WORDS[form]
        stem = form.removesuffix("_of")
        if stem != form and stem in WORDS:
            known = WORDS[stem]
            return ReadPredicate(word=form, predicate=known.predicate, is_reversed=not known.is_reversed)
    if not word or not word[0].isalpha() or len(word) > MAX_PREDICATE:
        return None
    return ReadPredicate(word=word, predicate=Predicate(name=word))


def name_of_predicate(said: str) -> str:
    """The predicate that a word means, read from its subject: that of "wife" is "spouse", of "employee" itself.

    A word that is none gives itself: no relation has it.
    """
    read = read_predicate(said)
    if read is None:
        return said
    return read.predicate.inverse or said if read.is_reversed else read.predicate.name


def is_same_as(said: str) -> bool:
    """Whether a word for a predicate says that two names are of one: that is no relation."""
    read = read_predicate(said)
    return read is not None and read.predicate.name == SAME_AS


def _forms(word: str) -> Iterator[str]:
    """The word, and without the small words before it: "is_the_wife_of", "wife_of"."""
    yield word
    while (prefix := next(filter(word.startswith, _PREFIXES), None)) is not None:
        word = word.removeprefix(prefix)
        yield word
