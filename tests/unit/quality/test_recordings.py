"""What is said of recordings that do not fit any more."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.quality.recordings import (
    FOLDER,
    ROUNDS,
    Outcome,
    Run,
    differences,
    read_outcomes,
    sample,
    split_cases,
    write_outcomes,
)

MOVE = Outcome(
    id="move-01",
    kind="conflict",
    score={"id": "move-01", "actual": "REPLACE", "right": True},
    facts=("active: Inês lives in Lyon.",),
    turns=2,
    calls=3,
    input_tokens=1200,
    output_tokens=130,
)
EXPECTED = {"move-01": MOVE}
SAME = Run(
    outcomes=[MOVE],
    without=(),
    unused=0,
    asked_versions=frozenset({"extract-8"}),
    recorded_versions=frozenset({"extract-8"}),
)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (SAME, []),
        (
            replace(SAME, outcomes=[], without=["move-01"], unused=1, asked_versions=frozenset({"extract-9"})),
            ["1 cases", "move-01", "1 replies", "extract-9", "make recordings"],
        ),
        (replace(SAME, unused=3), ["0 cases", "3 replies", "make recordings"]),
        (
            replace(SAME, outcomes=[MOVE.model_copy(update={"score": {"id": "move-01", "actual": "ADD"}})]),
            ["move-01", "REPLACE", "ADD"],
        ),
        (replace(SAME, outcomes=[MOVE.model_copy(update={"facts": ()})]), ["move-01", "lives in Lyon", "facts: none"]),
        (replace(SAME, outcomes=[MOVE.model_copy(update={"calls": 4})]), ["move-01", "3 calls", "4 calls"]),
    ],
    ids=["same", "changed prompt", "left over", "outcome", "facts", "calls"],
)
def test_whatever_does_not_fit_is_said(run: Run, words: list[str]) -> None:
    said = [*differences(EXPECTED, run)]
    assert len(said) == bool(words)
    assert all(word in said[0] for word in words)


def test_outcomes_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_outcomes(tmp_path, [MOVE])
    assert read_outcomes(tmp_path) == EXPECTED


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_sample_is_of_one_split_and_has_each_family(split: str) -> None:
    some = sample(split, ROUNDS)
    assert {one.split for one in some} == {split}
    assert len({one.id for one in some}) == len(some)
    families = {one.family for one in some}
    assert len(families) == 22
    assert {one.family for one in some[:22]} == families


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_recordings_are_of_their_split(split: str) -> None:
    cases = split_cases(read_outcomes(FOLDER / split))
    assert cases
    assert {one.split for one in cases} == {split}
