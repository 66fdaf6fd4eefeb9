"""docs/quality.md: the figures of the recorded baseline, set into a text written by hand."""

from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Final

from tests.bench.markdown import wrapped
from tests.quality.rates import ScoredCase, compute_rates
from tests.quality.report import guards_line, rates_table
from tests.support.paths import ROOT

TEMPLATE: Final = Path(__file__).with_name("quality.md.in")
PAGE: Final = ROOT / "docs" / "quality.md"


def page(scored: Sequence[ScoredCase]) -> str:
    """The page for the scores of all cases with the offline provider; it tells no times, so it is reproducible."""
    english = [one for one in scored if one.case.language == "en"]
    text = Template(TEMPLATE.read_text()).substitute(
        english=len(english),
        others=len(scored) - len(english),
        right=compute_rates(english).right,
        unmet=compute_rates(english).unmet,
        dev=compute_rates([one for one in english if one.case.split == "dev"]).right,
        test=compute_rates([one for one in english if one.case.split == "test"]).right,
        rates=rates_table(scored),
        guards=guards_line(english),
    )
    return wrapped(text)
