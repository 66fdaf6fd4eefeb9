"""What a search returns first after a labelled conflict: the one measure that fits a memory which ends no fact too."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

from mnemolog.schemas.base import Record
from tests.quality.cases import Case, load

QUESTIONS: Final = Path(__file__).with_name("questions.json")
TOP_K: Final = 10
"""How many hits a search returns: the default of mem0's benchmark client and of ours."""


class FoundFact(Record):
    """A hit: its text, and the places of the messages that it is from, as in `Case.known`, then that of the turn."""

    text: str
    places: tuple[int, ...]


class Found(Record):
    """What a case left: how many memories each message stored (None: the call failed), the hits, and what it took."""

    id: str
    stored: tuple[int | None, ...]
    hits: tuple[FoundFact, ...]
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class SearchScore(Record):
    """`unmet`: the earlier statement left no memory. `lost_update`: the first hit is what has ended, or the news is no
    hit. `forgotten`: what still holds is no hit. `unfounded` and `duplicate` are of what the turn stored."""

    id: str
    unmet: bool = False
    lost_update: bool = False
    forgotten: bool = False
    unfounded: bool = False
    duplicate: bool = False

    @property
    def right(self) -> bool:
        return self == SearchScore(id=self.id)


def questions() -> dict[str, str]:
    """A neutral question for each case of the sample, by the case's id."""
    return orjson.loads(QUESTIONS.read_bytes())  # type: ignore[no-any-return]  # a file of ours


def sampled_cases() -> list[Case]:
    """The cases that have a question, in English: one of each family and split, then the second, then the third."""
    asked = questions()
    rounds: dict[tuple[str, str], int] = {}
    found = []
    for case in load():
        if case.id in asked:
            rounds[case.family, case.split] = number = rounds.get((case.family, case.split), 0) + 1
            found.append((number, case))
    return [case for _, case in sorted(found, key=lambda one: one[0])]


def judge(case: Case, found: Found) -> SearchScore:
    """The score of a case by its hits. Pure."""
    turn = len(case.known)
    of_known = [hit for hit in found.hits if not {*case.concerns}.isdisjoint(hit.places)]
    news = [hit for hit in found.hits if turn in hit.places and _says(hit.text, case.says)]
    stale = case.old == "ended" and bool(found.hits) and found.hits[0] in of_known and turn not in found.hits[0].places
    unmet = not all(found.stored[place] for place in case.concerns)
    return SearchScore(
        id=case.id,
        unmet=unmet,
        lost_update=stale or (case.new == "kept" and not news),
        forgotten=case.old == "kept" and not unmet and not of_known,
        unfounded=case.is_no_news and bool(found.stored[turn]),
        duplicate=case.is_repetition and not unmet and bool(found.stored[turn]),
    )


def _says(text: str, says: Sequence[str]) -> bool:
    return not says or any(word.casefold() in text.casefold() for word in says)
