"""The offline provider over the labelled dialogues: no case may be worse than it was, and the page tells the same."""

import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.quality.scores import Cost
from tests.quality.understanding import baseline
from tests.quality.understanding.case_runner import run_cases
from tests.quality.understanding.cases import load
from tests.quality.understanding.page import PAGE, page
from tests.quality.understanding.report import ScoredCase
from tests.quality.understanding.scores import score
from tests.support.harnesses.in_process_pipeline import in_process_pipeline


@pytest.mark.postgres
async def test_no_case_is_worse_than_the_baseline(database: str) -> None:
    cases = load()
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as running:
        seen = await run_cases(running, cases, at_once=4)
    worse = baseline.regressions([score(case, one) for case, one in zip(cases, seen, strict=True)], baseline.load())
    assert not worse, "worse than the baseline:\n" + "\n".join(worse)


def test_the_page_has_the_figures_of_the_baseline() -> None:
    known = baseline.load()
    scored = [ScoredCase(case=case, score=known[case.id], cost=Cost()) for case in load()]
    assert PAGE.read_text() == page(scored)
