"""What counts as worse than the baseline, and how that is reported."""

from pathlib import Path
from typing import Any

import pytest

from tests.quality import baseline
from tests.quality.cases import Case, load
from tests.quality.page import PAGE, page
from tests.quality.rates import ScoredCase
from tests.quality.scores import Score

CASES = [case for case in load() if case.language == "en"]
MOVE = next(case for case in CASES if case.family == "move" and case.old == "ended")
REPEATED = next(case for case in CASES if case.is_repetition)
JOKE = next(case for case in CASES if case.is_no_news)


def good(case: Case) -> Score:
    return Score(id=case.id, actual=case.right[0], right=True, overwrites=1 if case is MOVE else 0)


def run(**changes: dict[str, Any]) -> list[ScoredCase]:
    """All cases right, but for `changes` by name."""
    named = {"move": MOVE, "repeated": REPEATED, "joke": JOKE}
    return [
        ScoredCase(case=case, score=good(case).model_copy(update=changes.get(name, {}))) for name, case in named.items()
    ]


BEFORE = {one.case.id: one.score for one in run()}


def test_the_same_figures_are_not_worse() -> None:
    assert baseline.regressions(run(), BEFORE) == []


@pytest.mark.parametrize(
    ("changes", "report"),
    [
        ({"move": {"right": False}}, "move: right was 100.0 % (1/1), is 0.0 % (0/1)"),
        ({"move": {"wrong": 1}}, "move: wrong overwrites was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"move": {"stale": True}}, "move: lost updates was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"move": {"news_lost": True}}, "English: lost updates was 0.0 % (0/1), is 100.0 % (1/1)"),
        (
            {"repeated": {"duplicate": True}},
            f"{REPEATED.family}: duplicates was 0.0 % (0/1), is 100.0 % (1/1)",
        ),
        ({"joke": {"unfounded": True}}, "English: unfounded was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"joke": {"harmful": True}}, "English: harmful was 0.0 % (0/3), is 33.3 % (1/3)"),
        ({"move": {"actual": "UNMET"}}, "English: unmet was 0.0 % (0/3), is 33.3 % (1/3)"),
    ],
)
def test_each_rate_that_gets_worse_is_reported(changes: dict[str, Any], report: str) -> None:
    assert report in baseline.regressions(run(**changes), BEFORE)


def test_the_cases_that_were_right_are_named() -> None:
    (line,) = [
        line
        for line in baseline.regressions(run(move={"right": False, "actual": "ADD"}), BEFORE)
        if line.startswith(f"  {MOVE.id}")
    ]
    assert line.startswith(f"  {MOVE.id}: was REPLACE (right), is ADD (not right); right would be REPLACE")


def test_one_family_s_gain_does_not_pay_for_another_s_loss() -> None:
    before = {one.case.id: one.score for one in run(joke={"right": False})}
    assert any(line.startswith("move: right") for line in baseline.regressions(run(move={"right": False}), before))


def test_what_is_better_passes() -> None:
    before = {one.case.id: one.score for one in run(move={"right": False, "stale": True, "wrong": 1})}
    assert baseline.regressions(run(), before) == []


def test_a_new_case_asks_for_a_new_baseline() -> None:
    known = {name: score for name, score in BEFORE.items() if name != MOVE.id}
    assert baseline.regressions(run(), known) == [
        f"1 cases have no baseline ({MOVE.id}): record one with --update-baseline"
    ]


def test_a_baseline_that_is_saved_is_recalled(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    baseline.save([one.score for one in run(move={"wrong": 1})], path)
    assert baseline.load(path) == {one.case.id: one.score for one in run(move={"wrong": 1})}


def test_the_page_tells_the_figures_of_the_baseline() -> None:
    """`make quality ARGS="--update-baseline --write-docs"` writes both."""
    scores = baseline.load()
    assert PAGE.read_text() == page([ScoredCase(case=case, score=scores[case.id]) for case in load()])
