"""The labelled set: what a user said before, what comes now, and what may and may not be made of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from mnemolog.schemas.base import Count, Record, Text, Timestamp
from mnemolog.schemas.provenance import Verdict

FOLDER: Final = Path(__file__).with_name("conflicts")

Family = Literal[
    "move",
    "job_change",
    "preference_flip",
    "refinement",
    "contradiction",
    "temporary_change",
    "negation",
    "numbers_and_dates",
    "two_people_of_one_name",
    "sarcasm_or_hypotheticals",
    "repetition_in_other_words",
    "end_without_replacement",
]
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)
Language = Literal["en", "de", "es", "ja"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
Split = Literal["dev", "test"]
SPLITS: Final[tuple[Split, ...]] = get_args(Split)

Word = Verdict | Literal["SKIP", "PENDING", "NONE"]
"""What a turn can come to: a verdict, a repetition that was only counted, an overwrite held back, or nothing."""


class Utterance(Record):
    text: Text
    at: Timestamp


class Case(Record):
    """One conflict.

    `concerns` are the places in `known` of what `turn` meets: what it changes, repeats or could be mistaken to change;
    nothing else may be touched. `right` are acceptable outcomes, the best one first, `harmful` those that do damage.
    `old` says what becomes of the facts that are concerned, `new` whether the turn leaves a fact of its own; its text
    then has to hold one of `says`.
    """

    id: Text
    family: Family
    language: Language
    split: Split
    speaker: Text
    known: Annotated[tuple[Utterance, ...], Field(min_length=1)]
    concerns: Annotated[tuple[Count, ...], Field(min_length=1)]
    turn: Utterance
    right: Annotated[tuple[Word, ...], Field(min_length=1)]
    harmful: tuple[Word, ...]
    old: Literal["kept", "ended", "either"]
    new: Literal["kept", "absent", "either"]
    says: tuple[Text, ...]
    why: Text

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if set(self.right) & set(self.harmful):
            raise ValueError("an outcome is right or harmful, not both")
        if not set(self.concerns) <= set(range(len(self.known))):
            raise ValueError("`concerns` names a known statement that there is none of")
        if self.new == "absent" and self.says:
            raise ValueError("a turn that leaves no fact has no words to look for")
        if self.old == "ended" and self.turn.at <= max(said.at for said in self.known):
            raise ValueError("what is ended was said before")
        return self

    @property
    def is_repetition(self) -> bool:
        """Whether the turn only says again what is known."""
        return self.new == "absent" and self.right[0] in ("KEEP", "SKIP")

    @property
    def is_no_news(self) -> bool:
        """Whether the turn says nothing that is so."""
        return self.new == "absent" and not self.is_repetition


def load(split: Split | None = None) -> list[Case]:
    """All cases, or those of one split, in the order of their files."""
    return [case for path in files() for case in read(path) if split in (None, case.split)]


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.jsonl"))


def read(path: Path) -> Iterator[Case]:
    """Raises pydantic's ValidationError for a line that is not a valid case."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield Case.model_validate_json(line)
