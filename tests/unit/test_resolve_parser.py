from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.prompts.resolve import number, parse_resolution
from tests.conversations import decided, decisions_reply, fact, known, labels

BERLIN = known(1, "Alice lives in Berlin since 2019.")
CAT = known(2, "Alice has a cat.")
SUBJECT = number([(fact("Alice lives in Bonn."), (BERLIN, CAT)), (fact("Alice has 2 cats."), (CAT,))])
KEEP_CAT = decided(2, "KEEP", 2)


def test_known_facts_are_numbered_once_across_the_call() -> None:
    assert labels(SUBJECT) == [[1, 2], [2]]
    assert [conflict.number for conflict in SUBJECT.conflicts] == [1, 2]


def test_verdicts_come_in_the_order_of_the_new_facts() -> None:
    parsed = parse_resolution(decisions_reply(KEEP_CAT, decided(1, "REPLACE", 1, reason=" moved ")), SUBJECT)
    assert parsed.value is not None
    assert [(verdict.number, verdict.action, verdict.targets) for verdict in parsed.value] == [
        (1, "REPLACE", (1,)),
        (2, "KEEP", (2,)),
    ]
    assert parsed.value[0].reason == "moved"


def test_a_merge_brings_its_text_and_others_bring_none() -> None:
    text = "Alice has lived in Berlin since 2019, now in Bonn."
    merge = decided(1, "MERGE", 1, text=text, search_text="")
    parsed = parse_resolution(decisions_reply(merge, decided(2, "ADD", text="x")), SUBJECT)
    assert parsed.value is not None
    assert [(verdict.text, verdict.search_text) for verdict in parsed.value] == [(text, text), (None, None)]


@pytest.mark.parametrize(
    ("decisions", "complaint"),
    [
        ([KEEP_CAT], "N1 has 0 decisions"),
        ([decided(1, "ADD"), decided(1, "ADD"), KEEP_CAT], "N1 has 2 decisions"),
        ([decided(1, "ADD"), KEEP_CAT, decided(3, "ADD")], "there is no new fact N3"),
        ([decided(1, "ADD"), decided(2, "REPLACE", 1)], "N2: K1 is not among its known facts (K2)"),
        ([decided(1, "REPLACE", 9), KEEP_CAT], "N1: K9 is not among its known facts (K1, K2)"),
        ([decided(1, "ADD", 1), KEEP_CAT], "N1: ADD concerns no known fact"),
        ([decided(1, "CONTRADICT"), KEEP_CAT], "N1: CONTRADICT needs the known facts"),
        ([decided(1, "MERGE", 1), KEEP_CAT], "N1: MERGE needs the merged sentence"),
        ([decided(1, "MERGE", 1, text="Alice lives in Bonn."), KEEP_CAT], "the merged text loses 2019"),
        ([decided(1, "REPLACE", 2), KEEP_CAT], "K2 serves N1 REPLACE, N2 KEEP"),
        ([decided(1, "REPLACE", 2), decided(2, "REPLACE", 2)], "K2 serves N1 REPLACE, N2 REPLACE"),
        ([decided(1, "ADD", reason=" "), KEEP_CAT], "decisions.0.reason"),
        ([decided(1, "DELETE", 1), KEEP_CAT], "decisions.0.action"),
        ([decided(1, "ADD", text=1), KEEP_CAT], "decisions.0.text"),
        ([decided(1, "ADD", note="x"), KEEP_CAT], "decisions.0.note"),
    ],
)
def test_a_faulty_decision_is_a_complaint(decisions: list[dict[str, Any]], complaint: str) -> None:
    parsed = parse_resolution(decisions_reply(*decisions), SUBJECT)
    assert parsed.value is None
    assert any(complaint in said for said in parsed.complaints), parsed.complaints


def test_two_new_facts_may_confirm_the_same_known_fact() -> None:
    assert parse_resolution(decisions_reply(decided(1, "KEEP", 2, 2), KEEP_CAT), SUBJECT).value is not None


def test_a_merge_keeps_the_numbers_of_its_own_parents_only() -> None:
    merge = decided(2, "MERGE", 2, text="Alice has 2 cats.")
    assert parse_resolution(decisions_reply(decided(1, "ADD"), merge), SUBJECT).value is not None


_ACTIONS = st.sampled_from(["ADD", "KEEP", "MERGE", "REPLACE", "CONTRADICT"])
_DECISIONS = st.builds(
    lambda new, action, targets: decided(new, action, *targets, text="Bonn 2019, 2 cats"),
    st.integers(0, 3),
    _ACTIONS,
    st.lists(st.integers(0, 4), max_size=3),
)


@given(st.lists(_DECISIONS, max_size=3))
def test_a_reply_touches_candidates_only_and_ends_none_twice(decisions: list[dict[str, Any]]) -> None:
    parsed = parse_resolution(decisions_reply(*decisions), SUBJECT)
    if parsed.value is None:
        assert parsed.complaints
        return
    assert [verdict.number for verdict in parsed.value] == [1, 2]
    for verdict, allowed in zip(parsed.value, labels(SUBJECT), strict=True):
        assert set(verdict.targets) <= set(allowed)
        assert bool(verdict.targets) == (verdict.action != "ADD")
    ended = [target for verdict in parsed.value if verdict.action not in ("ADD", "KEEP") for target in verdict.targets]
    assert len(ended) == len(set(ended))
