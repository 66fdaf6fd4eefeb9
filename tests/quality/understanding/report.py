"""The figures of a run as tables: for the terminal, and for the page."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Final

from tests.quality.report import table
from tests.quality.scores import Cost
from tests.quality.understanding.cases import FAMILIES, SPLITS, DialogueCase
from tests.quality.understanding.scores import FIGURES, CaseScore

_SHARES: Final = {"unresolved": "resolved", "missed_relations": "relations", "not_ended": "ended"}
"""Figures that are shown as what is right of how many there are."""
_FAULTS: Final = {
    "false_facts": "false",
    "missed_links": "no link",
    "missed_facts": "no fact",
    "still_held": "held",
    "wrong_relations": "false ties",
}
COLUMNS: Final = (
    *("cases", "all", "right"),
    *((_SHARES | _FAULTS).get(name, name.replace("_", " ")) for name in FIGURES),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCase:
    """A case, its figures, and what it cost."""

    case: DialogueCase
    score: CaseScore
    cost: Cost


def report(scored: Sequence[ScoredCase]) -> str:
    """A line a family and half, and one for each half: how many cases are right, and each figure's sum over them."""
    return table(COLUMNS, [(name, *_figures(some)) for name, some in slices(scored)])


def cost_report(scored: Sequence[ScoredCase]) -> str:
    """The same lines with what a case cost, all its turns together."""
    columns = ("cases of", "turns", "calls", "tokens in", "tokens out")
    return table(columns, [(name, *_costs(some)) for name, some in slices(scored)])


def slices(scored: Sequence[ScoredCase]) -> Iterator[tuple[str, list[ScoredCase]]]:
    """The cases of each family and half, then of each half; empty ones are left out."""
    for family in (*FAMILIES, None):
        for split in SPLITS:
            own = [one for one in scored if one.case.split == split and family in (None, one.case.family)]
            if own:
                yield f"{(family or 'all').replace('_', ' ')}, {split}", own


def misses(scored: Iterable[ScoredCase]) -> str:
    """Every case that is not right, a line each."""
    return "\n".join(f"{one.case.id}: {_told(one)}" for one in scored if not one.score.right)


def _told(one: ScoredCase) -> str:
    flags = (f"{name} {count}" for name in FIGURES if (count := getattr(one.score, name)))
    said = " / ".join(message.content for turn in one.case.turns for message in turn.messages)
    return f"{', '.join(flags)}. {said}"


def _figures(scored: Sequence[ScoredCase]) -> list[str]:
    right = sum(one.score.right for one in scored)
    return [str(len(scored)), str(right), *(_figure(name, scored) for name in FIGURES)]


def _figure(name: str, scored: Sequence[ScoredCase]) -> str:
    count = sum(getattr(one.score, name) for one in scored)
    if name not in _SHARES:
        return str(count)
    whole = sum(_whole(name, one.case) for one in scored)
    return f"{whole - count} of {whole}" if whole else "-"


def _whole(name: str, case: DialogueCase) -> int:
    """How many there are of what a figure counts the faults of."""
    if name == "unresolved":
        return sum(len(entity.mentions) for entity in case.entities if not entity.unclear)
    return sum(one.sure and one.holds == (name == "missed_relations") for one in case.relations)


def _costs(scored: Sequence[ScoredCase]) -> list[str]:
    calls, asked, replied = (
        mean(getattr(one.cost, name) for one in scored) for name in ("llm_calls", "input_tokens", "output_tokens")
    )
    turns = mean(len(one.case.turns) for one in scored)
    return [f"{turns:.1f}", f"{calls:.2f}", f"{asked:.0f}", f"{replied:.0f}"]
