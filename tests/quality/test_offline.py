"""The offline provider over the whole set: no rate may be worse than it was."""

import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.quality import baseline
from tests.quality.cases import load
from tests.quality.figures import Scored
from tests.quality.models import models
from tests.quality.pipeline import pipeline
from tests.quality.running import observe_all
from tests.quality.scoring import score


@pytest.mark.postgres
async def test_no_rate_is_worse_than_the_baseline(database: str) -> None:
    cases = load()
    settings = StreamsSettings(provider="offline", postgres=database)
    async with pipeline(settings, *models(settings)) as running:
        observed = await observe_all(running, cases, at_once=4)
    scored = [Scored(case=case, score=score(case, one)) for case, one in zip(cases, observed, strict=True)]
    complaints = baseline.worse(scored, baseline.recall())
    assert not complaints, "worse than the baseline:\n" + "\n".join(complaints)
