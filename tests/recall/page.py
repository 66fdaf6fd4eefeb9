"""docs/recall.md: the figures of a run, set into a text written by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Final

from tests.bench.markdown import wrapped
from tests.recall.ablation import Figures
from tests.recall.dialogues import CHOOSING, REPORTING, Dialogues
from tests.recall.report import category_table, count, main_table, recall_at_10
from tests.recall.variations import BASELINE, DEFAULT
from tests.support.paths import ROOT

TEMPLATE: Final = Path(__file__).with_name("recall.md.in")
PAGE: Final = ROOT / "docs" / "recall.md"
SHOWN: Final = frozenset(
    {
        BASELINE.name,
        "vector",
        "hybrid, RRF, k = 10",
        "hybrid, weighted",
        DEFAULT.name,
        "as by default, without neighbours",
        "facts as by default, and turns",
        "turns themselves, as by default",
    }
)
"""Variations of the page; a run prints all of them."""


def page(dialogues: Dialogues, measured: Sequence[Figures], model: str) -> str:
    """The page; it tells no times, so it is reproducible."""
    fields = {
        "model": model,
        "messages": str(len(dialogues.turns)),
        "facts": str(len(dialogues.facts)),
        "choosing": ", ".join(CHOOSING),
        "reporting": ", ".join(REPORTING),
        "default": DEFAULT.name,
    }
    for figures in measured:
        for split in ("reported", "choosing"):
            place = f"{figures.kind}_{split}"
            fields[f"{place}_table"] = main_table(shown(figures), split)
            fields[f"{place}_count"] = str(count(figures, split))
            fields[f"{place}_default"] = f"{recall_at_10(figures, DEFAULT.name, split).value:.3f}"
        fields[f"{figures.kind}_category_table"] = category_table(shown(figures), "reported")
    return wrapped(Template(TEMPLATE.read_text()).substitute(fields))


def shown(figures: Figures) -> Figures:
    """The figures of the variations that the page shows."""
    return replace(figures, measures={name: some for name, some in figures.measures.items() if name in SHOWN})
