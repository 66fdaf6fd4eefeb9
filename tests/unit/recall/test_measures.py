"""The measures of a ranking, by hand, and what is read of recorded dialogues."""

import math
from pathlib import Path

import orjson
import pytest

from tests.recall.ablation import answerable
from tests.recall.dialogues import load_dialogues
from tests.recall.measures import Mean, measure

SECOND, THIRD, FOURTH = (1 / math.log2(place + 1) for place in (2, 3, 4))
LATE = ["x", "a", "y", "z", "b", *"uvwst", "c"]
# Hits, the evidence, recall by depth, reciprocal rank, nDCG.
RANKINGS: dict[str, tuple[list[str], str, tuple[float, ...], float, float]] = {
    "gains end at the tenth": (
        *(LATE, "abcd", (0, 0.5, 0.5, 0.75), 1 / 2),
        (SECOND + 1 / math.log2(6)) / (1 + SECOND + THIRD + FOURTH),
    ),
    "the first hit with evidence": (["x", "y", "b", "a"], "ab", (0, 1, 1, 1), 1 / 3, (THIRD + FOURTH) / (1 + SECOND)),
    "beyond the twentieth": ([*["x"] * 20, "a"], "a", (0, 0, 0, 0), 0, 0),
    "a later place": (["x", "a", "b"], "ab", (0, 1, 1, 1), 1 / 2, (SECOND + THIRD) / (1 + SECOND)),
    "the best order": (["a", "b"], "ab", (0.5, 1, 1, 1), 1, 1),
    "evidence that was shown before": (["a", "a"], "ab", (0.5, 0.5, 0.5, 0.5), 1, 1 / (1 + SECOND)),
    "one hit with the whole evidence": (["abc"], "abc", (1, 1, 1, 1), 1, 1),
    "nothing found": ([], "a", (0, 0, 0, 0), 0, 0),
}


@pytest.mark.parametrize(("hits", "evidence", "recall", "reciprocal_rank", "ndcg"), RANKINGS.values(), ids=RANKINGS)
def test_a_ranking_is_measured(
    hits: list[str], evidence: str, recall: tuple[float, ...], reciprocal_rank: float, ndcg: float
) -> None:
    """Turns have one letter each; "x" is none that is looked for."""
    made = measure([frozenset(hit) for hit in hits], frozenset(evidence))
    assert made.recall == recall
    assert (made.reciprocal_rank, made.ndcg) == pytest.approx((reciprocal_rank, ndcg))


def test_an_interval_holds_its_mean_and_is_as_wide_as_the_normal_one() -> None:
    for count in (20, 400, 2000):
        mean = Mean.of([0, 1] * (count // 2))
        assert mean.low < mean.value == 0.5 < mean.high
        assert mean.high - mean.low == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(count), rel=0.2)


def test_a_difference_is_of_the_same_questions() -> None:
    one = [1.0, 0.0] * 50
    same = Mean.of_difference([value + 0.1 for value in one], one)
    assert same.low == pytest.approx(0.1) == same.high


def test_what_rests_on_no_message_is_left_out_and_facts_are_asked_only_for_what_a_fact_rests_on(
    tmp_path: Path,
) -> None:
    said = {"conversation": "c", "session": 1, "speaker": "Ann", "text": "Hello."}
    fact = {"conversation": "c", "subject": "Ann"}
    asked = [(1, ["c:0", "c:1"]), (4, ["c:1"]), (2, []), (5, ["c:0"]), (3, ["c:9"])]
    files: dict[str, list[dict[str, object]]] = {
        "turns": [said | {"turn_id": f"c:{place}", "occurred_at": "2023-05-08T13:56:00+00:00"} for place in range(3)],
        "observations": [
            fact | {"fact": "Ann greets.", "evidence": ["c:0", "c:9"]},
            fact | {"fact": "Ann is lost.", "evidence": ["c:9"]},
        ],
        "questions": [
            {"conversation": "c", "question": f"{category}?", "category": category, "evidence": evidence}
            for category, evidence in asked
        ],
    }
    for name, lines in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    dialogues = load_dialogues(tmp_path)
    assert [(fact.text, set(fact.evidence)) for fact in dialogues.facts] == [("Ann greets.", {"c:0"})]
    assert [(one.text, set(one.evidence)) for one in answerable(dialogues, "facts")] == [("1?", {"c:0"})]
    assert [(one.text, set(one.evidence)) for one in answerable(dialogues, "turns")] == [
        ("1?", {"c:0", "c:1"}),
        ("4?", {"c:1"}),
    ]
