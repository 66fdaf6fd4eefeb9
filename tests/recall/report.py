"""The figures as Markdown tables, and docs/recall.md, which sets them into a text written by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.bench.markdown import filled, table
from tests.recall.ablation import Figures
from tests.recall.dialogues import CATEGORIES, CHOOSING, REPORTING, Dialogues
from tests.recall.measures import DEPTHS, Mean, Measures
from tests.recall.variations import BASELINE, DEFAULT
from tests.support.paths import ROOT

TEMPLATE: Final = Path(__file__).with_name("recall.md.in")
PAGE: Final = ROOT / "docs" / "recall.md"
SPLITS: Final = {"reported": REPORTING, "choosing": CHOOSING}
SHOWN: Final = (
    BASELINE.name,
    "vector",
    "hybrid, RRF, k = 10",
    "hybrid, weighted",
    DEFAULT.name,
    "as by default, without neighbours",
    "facts as by default, and turns",
    "turns themselves, as by default",
)
"""Variations of the page; a run prints all of them."""
TARGET: Final = DEPTHS.index(10)
"""The place of recall@10, by which searches are compared."""


def main_table(figures: Figures, split: str, shown: Sequence[str] | None = None) -> str:
    """Every variation over the questions of a split, recall@10 with its interval, and against the first one."""
    baseline = _values(figures, BASELINE.name, split)
    rows = []
    for name in _names(figures, shown):
        cells = [name]
        for place in range(len(DEPTHS)):
            mean = Mean.of(_values(figures, name, split, _recall(place)))
            cells.append(_interval(mean) if place == TARGET else _short(mean.value))
        ranks, gains = (lambda one: one.reciprocal_rank), (lambda one: one.ndcg)
        cells += [_short(Mean.of(_values(figures, name, split, value)).value) for value in (ranks, gains)]
        cells.append(_interval(Mean.of_difference(_values(figures, name, split), baseline), "+"))
        rows.append(cells)
    recall = (f"recall@{depth}" for depth in DEPTHS)
    return table(("search", *recall, "MRR", "nDCG@10", f"recall@10 less {BASELINE.name}"), rows)


def category_table(figures: Figures, split: str, shown: Sequence[str] | None = None) -> str:
    """recall@10 of every variation by the category of the question."""
    counts = {one: len(_values(figures, BASELINE.name, split, category=one)) for one in CATEGORIES}
    groups = [one for one, count in counts.items() if count]
    rows = [
        (name, *(_short(Mean.of(_values(figures, name, split, category=one)).value) for one in groups))
        for name in _names(figures, shown)
    ]
    return table(("search", *(f"{CATEGORIES[one]} ({counts[one]})" for one in groups)), rows)


def count(figures: Figures, split: str) -> int:
    """The questions of a split."""
    return sum(question.conversation in SPLITS[split] for question in figures.questions)


def page(dialogues: Dialogues, measured: Sequence[Figures], model: str) -> str:
    """The page; it has no times, so it is reproducible."""
    fields: dict[str, object] = {
        "model": model,
        "messages": len(dialogues.turns),
        "facts": len(dialogues.facts),
        "choosing": ", ".join(CHOOSING),
        "reporting": ", ".join(REPORTING),
    }
    for figures in measured:
        for split in SPLITS:
            place = f"{figures.kind}_{split}"
            fields[f"{place}_table"] = main_table(figures, split, SHOWN)
            fields[f"{place}_count"] = count(figures, split)
            fields[f"{place}_default"] = f"{Mean.of(_values(figures, DEFAULT.name, split)).value:.3f}"
        fields[f"{figures.kind}_category_table"] = category_table(figures, "reported", SHOWN)
    return filled(TEMPLATE, fields)


def _recall(place: int) -> Callable[[Measures], float]:
    return lambda one: one.recall[place]


def _names(figures: Figures, shown: Sequence[str] | None) -> list[str]:
    return [name for name in figures.measures if shown is None or name in shown]


def _values(
    figures: Figures,
    name: str,
    split: str,
    value: Callable[[Measures], float] | None = None,
    category: int | None = None,
) -> list[float]:
    """A figure of each question of a split, recall@10 unless it is another one."""
    value = value or _recall(TARGET)
    return [
        value(one)
        for question, one in zip(figures.questions, figures.measures[name], strict=True)
        if question.conversation in SPLITS[split] and category in (None, question.category)
    ]


def _interval(mean: Mean, sign: str = "") -> str:
    return f"{_short(mean.value, sign)} ({_short(mean.low, sign)} to {_short(mean.high, sign)})"


def _short(value: float, sign: str = "") -> str:
    """Three digits: .816, or +.095 with a sign."""
    return f"{value:{sign}.3f}".replace("0.", ".", 1)
