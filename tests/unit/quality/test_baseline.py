"""What counts as worse than the baseline, and how that is reported."""

from typing import Any

import pytest

from tests.quality.cases import load
from tests.quality.report import BASELINE, PAGE, page, regressions
from tests.quality.runs import load_scores
from tests.quality.scores import Score, ScoredCase

CASES = load()
ENGLISH = [case for case in CASES if case.language == "en"]
MOVE = next(case for case in ENGLISH if case.family == "move" and case.old == "ended")
REPEATED = next(case for case in ENGLISH if case.is_repetition)
JOKE = next(case for case in ENGLISH if case.is_no_news)


def run(**changes: dict[str, Any]) -> list[ScoredCase]:
    """All cases right, but for `changes` by name."""
    return [
        ScoredCase(
            case=case,
            score=Score(
                id=case.id,
                **{"actual": case.right[0], "right": True, "overwrites": int(case is MOVE), **changes.get(name, {})},
            ),
        )
        for name, case in (("move", MOVE), ("repeated", REPEATED), ("joke", JOKE))
    ]


def scores(**changes: dict[str, Any]) -> dict[str, Score]:
    return {one.case.id: one.score for one in run(**changes)}


def test_what_is_equal_or_better_passes() -> None:
    assert regressions(run(), scores()) == []
    assert regressions(run(), scores(move={"right": False, "stale": True, "wrong": 1})) == []


@pytest.mark.parametrize(
    ("changes", "report"),
    [
        ({"move": {"right": False}}, "move: right was 100.0 % (1/1), is 0.0 % (0/1)"),
        ({"move": {"wrong": 1}}, "move: wrong overwrites was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"move": {"wrong": 1}}, "move: wrong overwrite cases was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"move": {"stale": True}}, "move: lost updates was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"move": {"news_lost": True}}, "English: lost updates was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"repeated": {"duplicate": True}}, f"{REPEATED.family}: duplicates was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"joke": {"unfounded": True}}, "English: unfounded was 0.0 % (0/1), is 100.0 % (1/1)"),
        ({"joke": {"harmful": True}}, "English: harmful was 0.0 % (0/3), is 33.3 % (1/3)"),
        ({"move": {"actual": "UNMET"}}, "English: unmet was 0.0 % (0/3), is 33.3 % (1/3)"),
        (
            {"move": {"right": False, "actual": "ADD"}},
            f"  {MOVE.id}: was REPLACE (right), is ADD (not right); right would be {' or '.join(MOVE.right)}",
        ),
    ],
)
def test_each_rate_that_gets_worse_is_reported_and_the_case_that_was_right(
    changes: dict[str, Any], report: str
) -> None:
    assert report in regressions(run(**changes), scores())


def test_a_new_case_asks_for_a_new_baseline() -> None:
    known = {name: score for name, score in scores().items() if name != MOVE.id}
    assert regressions(run(), known) == [f"1 cases have no baseline ({MOVE.id}): record one with --update-baseline"]


def test_the_page_has_the_figures_of_the_baseline() -> None:
    """`make quality ARGS="--update-baseline --write-docs"` writes both."""
    recorded = load_scores(Score, BASELINE)
    assert PAGE.read_text() == page([ScoredCase(case=case, score=recorded[case.id]) for case in CASES])
