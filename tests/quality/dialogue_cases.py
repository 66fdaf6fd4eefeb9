"""The labelled dialogues: what was said before a turn, and what may and may not become a fact of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from mnemolog.schemas.base import Record, Text
from mnemolog.schemas.turn import Message

FOLDER: Final = Path(__file__).with_name("dialogues")
Family = Literal["answer", "confirmation", "pronoun"]
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)
Split = Literal["dev", "test"]


class ExpectedFact(Record):
    """A fact that has to come of a turn: its text has each of the words `says`, its subject the word `about`."""

    says: Annotated[tuple[Text, ...], Field(min_length=1)]
    about: Text


class DialogueCase(Record):
    """Earlier turns and the turn that counts, message by message; `facts` are all that have to come of it.

    No fact of the turn may have one of the words `never`. Without `facts` the turn states nothing that `never` has.
    """

    id: Text
    family: Family
    language: Literal["en", "de", "fr", "es"]
    split: Split
    speaker: Text
    before: tuple[tuple[Message, ...], ...]
    turn: Annotated[tuple[Message, ...], Field(min_length=1)]
    facts: tuple[ExpectedFact, ...]
    never: tuple[Text, ...]


def load(split: Split | None = None) -> list[DialogueCase]:
    """All cases, or those of one split, in the order of their families."""
    return [case for family in FAMILIES for case in _read(family) if split in (None, case.split)]


def _read(family: Family) -> Iterator[DialogueCase]:
    for line in (FOLDER / f"{family}.jsonl").read_text(encoding="utf-8").splitlines():
        yield DialogueCase.model_validate_json(line)
