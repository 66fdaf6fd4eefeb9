"""The offline provider over the whole set: no rate may be worse than it was."""

import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.quality import baseline
from tests.quality.case_runner import run_cases
from tests.quality.cases import load
from tests.quality.model_sources import chosen_models
from tests.quality.rates import ScoredCase
from tests.quality.scores import score
from tests.support.harnesses.in_process_pipeline import in_process_pipeline


@pytest.mark.postgres
async def test_no_rate_is_worse_than_the_baseline(database: str) -> None:
    cases = load()
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as running:
        observed = await run_cases(running, cases, at_once=4)
    scored = [ScoredCase(case=case, score=score(case, one)) for case, one in zip(cases, observed, strict=True)]
    complaints = baseline.regressions(scored, baseline.load())
    assert not complaints, "worse than the baseline:\n" + "\n".join(complaints)
