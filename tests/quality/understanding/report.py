"""The figures of a run: tables, docs/understanding.md, and what is worse than the baseline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

from tests.bench.markdown import filled, table
from tests.quality.runs import Cost
from tests.quality.understanding.cases import FAMILIES, SPLITS, DialogueCase
from tests.quality.understanding.scores import FIGURES, CaseScore
from tests.support.paths import ROOT

BASELINE: Final = Path(__file__).with_name("baseline.json")
TEMPLATE: Final = Path(__file__).with_name("understanding.md.in")
PAGE: Final = ROOT / "docs" / "understanding.md"
SHARES: Final = {"unresolved": "resolved", "missed_relations": "relations", "not_ended": "ended"}
"""Figures that are shown as what is right of how many there are."""
FAULTS: Final = {
    "false_facts": "false",
    "missed_links": "no link",
    "missed_facts": "no fact",
    "still_held": "held",
    "wrong_relations": "false ties",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCase:
    """A case, its figures, and what it cost."""

    case: DialogueCase
    score: CaseScore
    cost: Cost


def slices(scored: Sequence[ScoredCase]) -> Iterator[tuple[str, list[ScoredCase]]]:
    """The cases of each family and half, then of each half; empty ones are left out."""
    for family in (*FAMILIES, None):
        for split in SPLITS:
            own = [one for one in scored if one.case.split == split and family in (None, one.case.family)]
            if own:
                yield f"{(family or 'all').replace('_', ' ')}, {split}", own


def report(scored: Sequence[ScoredCase]) -> str:
    """A line a family and half, and one for each half: how many cases are right, and each figure's sum over them."""
    names = [(SHARES | FAULTS).get(name, name.replace("_", " ")) for name in FIGURES]
    rows = []
    for slice_name, some in slices(scored):
        cells = [slice_name, str(len(some)), str(sum(one.score.right for one in some))]
        for name in FIGURES:
            count = sum(getattr(one.score, name) for one in some)
            whole = sum(_whole(name, one.case) for one in some) if name in SHARES else 0
            cells.append(str(count) if name not in SHARES else f"{whole - count} of {whole}" if whole else "-")
        rows.append(cells)
    return table(("cases", "all", "right", *names), rows)


def _whole(name: str, case: DialogueCase) -> int:
    """How many there are of what a figure counts the faults of."""
    if name == "unresolved":
        return sum(len(entity.mentions) for entity in case.entities if not entity.unclear)
    return sum(one.sure and one.holds == (name == "missed_relations") for one in case.relations)


def cost_report(scored: Sequence[ScoredCase]) -> str:
    """The same lines with what a case cost, all its turns together."""
    rows = []
    for name, some in slices(scored):
        costs = [one.cost for one in some]
        turns, calls = mean(len(one.case.turns) for one in some), mean(one.llm_calls for one in costs)
        asked, replied = mean(one.input_tokens for one in costs), mean(one.output_tokens for one in costs)
        rows.append((name, f"{turns:.1f}", f"{calls:.2f}", f"{asked:.0f}", f"{replied:.0f}"))
    return table(("cases of", "turns", "calls", "tokens in", "tokens out"), rows)


def misses(scored: Iterable[ScoredCase]) -> str:
    """Every case that is not right, a line each."""
    lines = []
    for one in scored:
        if not one.score.right:
            flags = ", ".join(f"{name} {count}" for name in FIGURES if (count := getattr(one.score, name)))
            said = " / ".join(message.content for turn in one.case.turns for message in turn.messages)
            lines.append(f"{one.case.id}: {flags}. {said}")
    return "\n".join(lines)


def page(scored: Sequence[ScoredCase]) -> str:
    """docs/understanding.md for a run with the offline provider; it has no times, so it is reproducible."""
    cases = [one.case for one in scored]
    fields = {
        "cases": len(cases),
        "others": sum(case.language != "en" for case in cases),
        "turns": sum(len(case.turns) for case in cases),
        "table": report(scored),
    }
    return filled(TEMPLATE, fields)


def regressions(scores: Sequence[CaseScore], known: Mapping[str, CaseScore]) -> list[str]:
    """What is worse than it was, a line each; for a set that has changed, only that."""
    unknown = [one.id for one in scores if one.id not in known]
    if unknown:
        return [f"{len(unknown)} cases have no baseline ({unknown[0]}, ...): record one with --update-baseline"]
    return [
        f"{one.id}: {name} {before} -> {found}"
        for one in scores
        for name in FIGURES
        if (found := getattr(one, name)) > (before := getattr(known[one.id], name))
    ]
