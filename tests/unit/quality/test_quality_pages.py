"""The pages of the quality have the figures of the baselines, and the floor of a search is the measured one."""

from mnemolog.streams.llm.minilm_embedder import MODEL_NAME, MiniLmEmbedder
from mnemolog.streams.stages.effective_settings import search_floor
from tests.quality import cases, model_page, report
from tests.quality.first_hits import judge
from tests.quality.recordings import FOLDER, read_outcomes
from tests.quality.rival import read_found
from tests.quality.runs import Cost, load_scores
from tests.quality.scores import Score, ScoredCase, compute_rates
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


def test_the_page_of_a_model_has_the_figures_of_the_recordings() -> None:
    """`make recordings ARGS=--outcomes` writes both."""
    assert model_page.PAGE.read_text() == model_page.model_page()


def test_a_real_model_ends_nothing_wrongly_and_loses_fewer_updates_than_mem0() -> None:
    known, mem0 = {case.id: case for case in cases.load()}, {one.id: one for one in read_found()}
    outcomes = [one for split in cases.SPLITS for one in read_outcomes(FOLDER / split).values()]
    scores = [Score.model_validate({"id": one.id, **one.score}) for one in outcomes if one.kind == "conflict"]
    assert len(scores) > 60
    assert compute_rates([ScoredCase(case=known[one.id], score=one) for one in scores]).wrong_overwrites.count == 0
    both = [(known[one.id], one.found, mem0[one.id]) for one in outcomes if one.found and one.id in mem0]
    assert len(both) > 60
    own, theirs = (sum(judge(case, found[at]).lost_update for case, *found in both) for at in (0, 1))
    assert own < theirs


async def test_the_floor_of_the_offline_model_is_the_highest_that_loses_at_most_2_percent_of_the_answers() -> None:
    embedder = MiniLmEmbedder()
    try:
        measured = await measure_pairs(embedder)
    finally:
        await embedder.close()
    assert highest_floor(measured) == search_floor(MODEL_NAME)
    assert "| 0.17 | 1.2 % |" in tables(measured)
