"""The labelled cases: the turns of a dialogue, and what holds of it afterwards."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from mnemolog.schemas.base import Count, Identifier, Record, Text
from mnemolog.schemas.entities import WORDS
from mnemolog.schemas.turn import Message

FOLDER: Final = Path(__file__).with_name("cases")
Family = Literal[
    "answer",
    "confirmation",
    "pronoun",
    "alias",
    "role_noun",
    "diminutive",
    "two_of_one_name",
    "merge",
    "ended_relation",
    "group",
]
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)
Language = Literal["en", "de", "fr", "es"]
Split = Literal["dev", "test"]
SPLITS: Final[tuple[Split, ...]] = get_args(Split)
USER: Final = "user"
"""The label of the user in relations."""

Words = tuple[Text, ...]


class SpokenTurn(Record):
    """One turn: its messages, how many days it comes after the one before, and its run, a scope of its own."""

    messages: Annotated[tuple[Message, ...], Field(min_length=1)]
    days: Count = 0
    run: Identifier | None = None


class ExpectedFact(Record):
    """A fact that has to hold: its text has each of the words `says`.

    One of `about` is in its subject, or in a name of the entity that it is about.
    """

    says: Annotated[Words, Field(min_length=1)]
    about: Annotated[Words, Field(min_length=1)]


class EndedFact(Record):
    """What the turn at this place stated, in a fact with all these words, and what holds no more."""

    turn: Count
    says: Annotated[Words, Field(min_length=1)]


class Mention(Record):
    """Where an entity is named: in a fact of the turn at this place, as one of `names` or as something that ends so."""

    turn: Count
    names: Annotated[Words, Field(min_length=1)]


class ExpectedEntity(Record):
    """One person, place or thing. All its mentions mean one entity, which is that of no other label and not the user.

    Each of `names` is one of its names afterwards. Where it is `unclear` who is meant, it is nobody who is known, and
    may be left out.
    """

    label: Text
    mentions: Annotated[tuple[Mention, ...], Field(min_length=1)]
    names: Words = ()
    unclear: bool = False


class ExpectedRelation(Record):
    """What somebody is to another one, by their labels: it `holds` at the end, or it was stated and has ended.

    Where it is not `sure` that it was said ("Tom from work" is a colleague), it may be left out.
    """

    predicate: Text
    subject: Text
    object: Text
    holds: bool = True
    sure: bool = True

    @field_validator("predicate")
    @classmethod
    def _is_registered(cls, said: str) -> str:
        if said not in WORDS:
            raise ValueError(f"{said} is no word of the registry of predicates")
        return said


class DialogueCase(Record):
    """A dialogue of one user with what has to hold after it. No fact may say anything of `never`.

    `relations` are all between its entities and the user that are said in words of the registry.
    """

    id: Annotated[Text, Field(pattern=r"^[a-z_]+-\d\d$")]
    language: Language
    speaker: Text
    turns: Annotated[tuple[SpokenTurn, ...], Field(min_length=1)]
    facts: tuple[ExpectedFact, ...] = ()
    never: Words = ()
    ended: tuple[EndedFact, ...] = ()
    entities: tuple[ExpectedEntity, ...] = ()
    relations: tuple[ExpectedRelation, ...] = ()

    @property
    def family(self) -> str:
        return self.id.rpartition("-")[0]

    @property
    def split(self) -> Split:
        """Odd numbers are for tuning, even ones for testing."""
        return "dev" if int(self.id.rpartition("-")[2]) % 2 else "test"

    @model_validator(mode="after")
    def _names_what_it_has(self) -> Self:
        labels = [entity.label for entity in self.entities]
        if len({*labels}) < len(labels):
            raise ValueError("two entities have one label")
        unknown = {name for one in self.relations for name in (one.subject, one.object)} - {*labels, USER}
        if unknown:
            raise ValueError(f"relations of unknown labels: {unknown}")
        places = {mention.turn for entity in self.entities for mention in entity.mentions}
        places |= {one.turn for one in self.ended}
        if places and max(places) >= len(self.turns):
            raise ValueError(f"there is no turn {max(places)}")
        if not (self.facts or self.never or self.ended or self.entities or self.relations):
            raise ValueError("nothing has to hold")
        return self


def load(split: Split | None = None) -> list[DialogueCase]:
    """All cases, or those of one split, in the order of their families."""
    return [case for family in FAMILIES for case in read(family) if split in (None, case.split)]


def read(family: str) -> Iterator[DialogueCase]:
    for line in (FOLDER / f"{family}.jsonl").read_text(encoding="utf-8").splitlines():
        yield DialogueCase.model_validate_json(line)


def ends_with(name: str, words: str) -> bool:
    """Whether a name ends with these words, in any case: "Ben's wife Ana" ends with "ana", "Hanna" does not."""
    return re.search(rf"(?<!\w){re.escape(words.casefold())}\W*$", name.casefold()) is not None
