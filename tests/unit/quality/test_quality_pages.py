"""The pages of the quality have the figures of the baselines, and the floor of a search is the measured one."""

from mnemolog.streams.llm.minilm_embedder import MODEL_NAME, MiniLmEmbedder
from mnemolog.streams.stages.effective_settings import search_floor
from tests.quality import cases, report
from tests.quality.runs import Cost, load_scores
from tests.quality.scores import Score, ScoredCase
from tests.quality.search_floor import highest_floor, measure_pairs, tables
from tests.quality.understanding import cases as dialogues
from tests.quality.understanding import report as understanding
from tests.quality.understanding.scores import CaseScore


def test_the_page_of_conflicts_has_the_figures_of_the_baseline() -> None:
    """`make quality ARGS="--update-baseline --write-docs"` writes both."""
    recorded = load_scores(Score, report.BASELINE)
    page = report.page([ScoredCase(case=case, score=recorded[case.id]) for case in cases.load()])
    assert report.PAGE.read_text() == page


def test_the_page_of_dialogues_has_the_figures_of_the_baseline() -> None:
    known = load_scores(CaseScore, understanding.BASELINE)
    scored = [understanding.ScoredCase(case=one, score=known[one.id], cost=Cost()) for one in dialogues.load()]
    assert understanding.PAGE.read_text() == understanding.page(scored)


async def test_the_floor_of_the_offline_model_is_the_highest_that_loses_at_most_2_percent_of_the_answers() -> None:
    embedder = MiniLmEmbedder()
    try:
        measured = await measure_pairs(embedder)
    finally:
        await embedder.close()
    assert highest_floor(measured) == search_floor(MODEL_NAME)
    assert "| 0.17 | 1.2 % |" in tables(measured)
