"""Judges the decisions on turns by the log: each is the one that its turn would get if it were asked about alone.

Shares no code with the product, or with the simulated model: it reads the texts of facts, and what the model said that
it was asked about.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.table_checker import Logged

PLACES: Final = 12
BESIDE: Final = 4
"""Of the sums of the numbers of all facts that are asked about, one in so many ends none, where these are few."""
MANY: Final = 3
"""Of so many all are ended, of fewer the oldest."""
_TEXT: Final = re.compile(r"\w+ number (\d+) at place (\d+)")


@dataclass(frozen=True)
class _Told:
    """A fact that a turn told."""

    fact_id: str
    number: int
    place: int

    @classmethod
    def of(cls, event: dict[str, Any]) -> "_Told":
        found = _TEXT.fullmatch(event["fact"]["text"])
        assert found is not None
        return cls(event["fact"]["fact_id"], int(found[1]), int(found[2]))


def wrong_decisions(log: Sequence[Logged]) -> Iterator[str]:
    """What is wrong with the decisions in the log of all owners; of each turn its first commit counts."""
    by_source = {(one.owner, one.source_id): one for one in sorted(log, key=_place, reverse=True)}
    turns = [one.told for one in sorted(by_source.values(), key=_place) if one.told["source_kind"] == "turn"]
    active: dict[str, list[_Told]] = {}
    for told in turns:
        scope = str(told["scope"])
        known = active.setdefault(scope, [])
        if told["events"]:
            yield from _wrong_decision(told, known)
            event = told["events"][0]
            ended = event.get("targets") or ()
            active[scope] = [*(one for one in known if one.fact_id not in ended), _Told.of(event)]


def _wrong_decision(told: dict[str, Any], known: Sequence[_Told]) -> Iterator[str]:
    """Where the decision is not about the facts that are known by then, or is another one than the model's on these."""
    event, *others = told["events"]
    own, decision, ended = _Told.of(event), event["decision"], set(event.get("targets") or ())
    near = {one.fact_id: one.number for one in known if _are_near(one.place, own.place)}
    asked, answered = _asked(own.number, near.values()), _asked(own.number, ())
    if decision["by"] == "model":
        answered = decision["reason"]
    if answered != asked:
        yield f"{told['source_id']} was decided as {answered!r}, and alone it would be {asked!r}"
    ends = len(near) if len(near) >= MANY else int((own.number + sum(near.values())) % BESIDE > 0)
    expected = set(sorted(near, key=lambda one: near[one])[:ends])
    if ended != expected or others:
        yield f"{told['source_id']} ended {len(ended)} facts, and alone it would end {len(expected)}"


def _asked(number: int, near: Iterable[int]) -> str:
    return f"{number} beside {', '.join(map(str, sorted(near)))}"


def _are_near(one: int, other: int) -> bool:
    return (one - other + 1) % PLACES in (0, 1, 2)


def _place(one: Logged) -> tuple[int, int]:
    return one.partition, one.offset
