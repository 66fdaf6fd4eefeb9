"""The offline provider over the labelled sets: no figure may be worse than it was."""

import pytest

from tests.quality import cases, report, scores
from tests.quality.natural_sentences import FOLDER, SPLITS, load, run_people, score
from tests.quality.runs import load_scores, pipeline_over, run_all
from tests.quality.understanding import cases as dialogues
from tests.quality.understanding import report as dialogue_report
from tests.quality.understanding import scores as dialogue_scores

pytestmark = pytest.mark.postgres


async def test_no_rate_of_the_conflicts_is_worse_than_the_baseline(database: str) -> None:
    """The offline rules read English: of the other languages half of the cases is enough; `make quality` runs all."""
    every = [case for case in cases.load() if case.language == "en" or case.split == "dev"]
    async with pipeline_over(database) as running:
        observed = await run_all(running, every, scores.run_case)
    scored = [
        scores.ScoredCase(case=case, score=scores.score(case, one)) for case, one in zip(every, observed, strict=True)
    ]
    worse = report.regressions(scored, load_scores(scores.Score, report.BASELINE))
    assert not worse, "worse than the baseline:\n" + "\n".join(worse)


async def test_no_dialogue_is_understood_worse_than_the_baseline(database: str) -> None:
    every = dialogues.load()
    async with pipeline_over(database) as running:
        seen = await run_all(running, every, dialogue_scores.run_case)
    scored = [dialogue_scores.score(case, one) for case, one in zip(every, seen, strict=True)]
    worse = dialogue_report.regressions(scored, load_scores(dialogue_scores.CaseScore, dialogue_report.BASELINE))
    assert not worse, "worse than the baseline:\n" + "\n".join(worse)


@pytest.mark.parametrize("split", SPLITS)
async def test_nearly_all_natural_sentences_are_kept_and_nothing_is_overwritten(database: str, split: str) -> None:
    async with pipeline_over(database) as running:
        made = score(await run_people(running, load(FOLDER / split)))
    assert made.complaints() == [], "\n".join(made.failures)
