"""Writes docs/reliability.md from its template and what a run of `make chaos` found."""

import os
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from tests.chaos.checker import Verdict
from tests.chaos.run import Tally
from tests.support.paths import ROOT

PAGE = ROOT / "docs/reliability.md"
TEMPLATE = Path(__file__).with_name("reliability.md.in")
FEWEST_FAULTS = 100


def write_page(tally: Tally, verdict: Verdict) -> bool:
    """Write the page after a run that is long enough; whether it was."""
    if not os.environ.get("MNEMOLOG_CHAOS_PAGE") or tally.faults.total() < FEWEST_FAULTS:
        return False
    rows = [f"| {kind} | {count} |" for kind, count in sorted(tally.faults.items(), key=lambda one: -one[1])]
    page = Template(TEMPLATE.read_text()).substitute(
        faults="\n".join([*rows, f"| **all** | **{tally.faults.total()}** |"]),
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        seed=tally.seed,
        minutes=round(tally.seconds / 60),
        turns=tally.turns,
        commands=tally.commands,
        sources=verdict.sources,
        commits=verdict.commits,
        repeats=verdict.repeats,
        lost=len(verdict.lost),
        doubled=len(verdict.doubled) + len(verdict.unknown),
        misordered=len(verdict.misordered),
        wrong=len(verdict.wrong_states) + len(verdict.wrong_ends),
        spoilt=tally.spoilt_model_calls,
        cut=tally.lost_commits,
        restored=tally.restored_commits,
        behind=tally.other_offsets,
    )
    PAGE.write_text(page)
    return True
