"""docs/understanding.md: the figures of a run with the offline provider, set into a text written by hand."""

from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Final

from tests.bench.markdown import wrapped
from tests.quality.understanding.report import ScoredCase, report
from tests.support.paths import ROOT

TEMPLATE: Final = Path(__file__).with_name("understanding.md.in")
PAGE: Final = ROOT / "docs" / "understanding.md"


def page(scored: Sequence[ScoredCase]) -> str:
    """The page; it tells no times, so it is reproducible."""
    cases = [one.case for one in scored]
    text = Template(TEMPLATE.read_text()).substitute(
        cases=len(cases),
        others=sum(case.language != "en" for case in cases),
        turns=sum(len(case.turns) for case in cases),
        table=report(scored),
    )
    return wrapped(text)
