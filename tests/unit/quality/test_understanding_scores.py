"""What counts as worse than the baseline of dialogues, and what the page says."""

from tests.quality.runs import Cost, load_scores
from tests.quality.understanding.cases import load
from tests.quality.understanding.report import BASELINE, PAGE, ScoredCase, page, regressions
from tests.quality.understanding.scores import CaseScore


def test_a_figure_that_is_worse_than_its_baseline_is_named() -> None:
    known = {"a": CaseScore(id="a", missed_links=1)}
    assert regressions([CaseScore(id="a", missed_links=1)], known) == []
    assert regressions([CaseScore(id="a")], known) == []
    assert regressions([CaseScore(id="a", wrong_merges=1)], known) == ["a: wrong_merges 0 -> 1"]
    assert "1 cases have no baseline" in regressions([CaseScore(id="b")], known)[0]


def test_the_page_has_the_figures_of_the_baseline() -> None:
    known = load_scores(CaseScore, BASELINE)
    assert PAGE.read_text() == page([ScoredCase(case=case, score=known[case.id], cost=Cost()) for case in load()])
