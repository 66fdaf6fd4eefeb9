import json
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.resolve_prompt import parse_resolution
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.builders.prompts import MONDAY, candidate_labels, fact, known_fact
from tests.support.builders.questions import number_conflicts

BERLIN = known_fact(1, "Alice lives in Berlin since 2019.")
CAT = known_fact(2, "Alice has a cat.")
SUBJECT = number_conflicts(
    [(fact("Alice lives in Bonn."), (BERLIN, CAT)), (fact("Alice owns a cat."), (CAT,))], said_at=MONDAY
)
KEEP_CAT = decision_json(2, "KEEP", 2)


def test_verdicts_come_in_the_order_of_the_new_facts() -> None:
    parsed = parse_resolution(decisions_reply(KEEP_CAT, decision_json(1, "REPLACE", 1, reason=" moved ")), SUBJECT)
    assert parsed.value is not None
    assert [(verdict.number, verdict.verdict, verdict.targets) for verdict in parsed.value] == [
        (1, "REPLACE", (1,)),
        (2, "KEEP", (2,)),
    ]
    assert parsed.value[0].reason == "moved"
    assert candidate_labels(SUBJECT) == [[1, 2], [2]]


def test_a_merge_brings_its_text_and_others_bring_none() -> None:
    text = "Alice has lived in Berlin since 2019, now in Bonn."
    merge = decision_json(1, "MERGE", 1, text=text)
    parsed = parse_resolution(decisions_reply(merge, decision_json(2, "ADD", text="x")), SUBJECT)
    assert parsed.value is not None
    assert [verdict.text for verdict in parsed.value] == [text, None]


@pytest.mark.parametrize(
    ("decisions", "complaint"),
    [
        ([decision_json(3, "ADD")], "N1 has no answer about K1, K2"),
        ([decision_json(1, "REPLACE", 9), decision_json(2, "REPLACE", 1)], "N2 has no answer about K2"),
        ([decision_json(1, "DELETE", 1), KEEP_CAT], "decisions.0.verdict"),
        ([decision_json(1, "ADD") | {"number": True}, KEEP_CAT], "decisions.0.number"),
    ],
)
def test_a_faulty_decision_is_a_complaint(decisions: list[dict[str, Any]], complaint: str) -> None:
    parsed = parse_resolution(decisions_reply(*decisions), SUBJECT)
    assert parsed.value is None
    assert any(complaint in said for said in parsed.complaints), parsed.complaints


@pytest.mark.parametrize(
    "first",
    [
        [],
        [decision_json(1, "REPLACE", 9)],
        [decision_json(1, "RETRACT", 1, 2, 3)],
        [decision_json(1, "CONTRADICT")],
    ],
    ids=["none", "not offered", "partly offered", "no target"],
)
def test_one_faulty_decision_costs_no_other(first: list[dict[str, Any]]) -> None:
    """What has no answer is judged as "both", which is what its words tell; nobody is asked again."""
    parsed = parse_resolution(decisions_reply(*first, KEEP_CAT), SUBJECT)
    assert parsed.notes == ("N1 has no answer about K1, K2",)
    assert [one.verdict for one in parsed.value or ()] == ["SIMILAR", "KEEP"]


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": None},
        {"verdict": "replace"},
        {"number": "1"},
        {"note": "x"},
        {"text": ""},
        {"ended_at": "soon"},
        {"targets": ["1"]},
    ],
    ids=str,
)
def test_a_decision_is_read_as_models_write_it(fields: dict[str, Any]) -> None:
    reply = decisions_reply(decision_json(1, "REPLACE", 1) | fields, KEEP_CAT)
    (first, _) = parse_resolution(reply, SUBJECT).value or ()
    assert (first.verdict, first.targets, first.ended_at) == ("REPLACE", (1,), None)


@pytest.mark.parametrize("text", [None, "Alice lives in Bonn."], ids=["no text", "another year"])
def test_of_a_merge_in_doubt_both_facts_stay(text: str | None) -> None:
    reply = decisions_reply(decision_json(1, "MERGE", 1, text=text), KEEP_CAT)
    (first, _) = parse_resolution(reply, SUBJECT).value or ()
    assert (first.verdict, first.targets, first.text) == ("EXTEND", (1,), None)


def _fields(told: dict[str, Any], text: str) -> dict[str, Any]:
    merged = {"text": text} if told["action"] == "MERGE" else {}
    return merged | {name: value for name, value in told.items() if name != "action"}


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        ({"action": "SIMILAR"}, {"action": "EXTEND"}, True),
        ({"action": "KEEP"}, {"action": "REPLACE"}, True),  # "lives in Rome. Moved to Oslo."
        ({"action": "EXTEND"}, {"action": "RETRACT"}, True),
        ({"action": "KEEP"}, {"action": "MERGE"}, True),
        ({"action": "RETRACT"}, {"action": "REPLACE"}, True),  # "no longer at Acme. Works at Bosch."
        ({"action": "REPLACE"}, {"action": "RETRACT"}, True),
        ({"action": "RETRACT", "ended_at": "2023-03-01"}, {"action": "RETRACT", "ended_at": "2023-03-01"}, True),
        ({"action": "RETRACT", "ended_at": "2023-03-01"}, {"action": "REPLACE"}, False),
        ({"action": "REPLACE"}, {"action": "REPLACE"}, False),
        ({"action": "RETRACT"}, {"action": "CONTRADICT"}, False),
        ({"action": "RETRACT"}, {"action": "EXPIRE", "ended_at": "2023-06-01"}, False),
        ({"action": "MERGE"}, {"action": "MERGE"}, False),
        ({"action": "MERGE"}, {"action": "REPLACE"}, False),
        ({"action": "REPLACE"}, {"action": "KEEP"}, False),
        ({"action": "RETRACT"}, {"action": "EXTEND"}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("swapped", [False, True])
def test_an_ended_fact_serves_no_later_one(
    first: dict[str, Any], second: dict[str, Any], *, taken: bool, swapped: bool
) -> None:
    text = "Mira lives in Rome."
    known = (known_fact(1, text),)
    subject = number_conflicts([(fact(text), known), (fact(text), known)], said_at=MONDAY)
    replies = [
        decision_json(number, one["action"], 1, **_fields(one, text))
        for number, one in enumerate((first, second), start=1)
    ]
    (_, later) = parse_resolution(decisions_reply(*(replies[::-1] if swapped else replies)), subject).value or ()
    assert (later.verdict, later.targets) == ((second["action"], (1,)) if taken else ("ADD", ()))


@pytest.mark.parametrize("second", ["KEEP", "REPLACE", "SIMILAR"])
@pytest.mark.parametrize(("known_since", "taken"), [("2023-07-01T00:00:00Z", True), ("2023-03-01T00:00:00Z", False)])
def test_a_statement_older_than_the_known_fact_ends_nothing(second: str, known_since: str, *, taken: bool) -> None:
    """A late turn says "lives in Rome. Moved to Oslo.", and it is known that the user lives in Oslo."""
    known = (known_fact(1, "Mira lives in Oslo.", true_from=known_since, said_at=known_since),)
    subject = number_conflicts(
        [(fact("Mira lives in Rome."), known), (fact("Mira moved to Oslo."), known)], said_at=MONDAY
    )
    reply = decisions_reply(decision_json(1, "REPLACE", 1), decision_json(2, second, 1))
    (_, later) = parse_resolution(reply, subject).value or ()
    assert later.verdict == (second if taken else "ADD")
    merge = decision_json(1, "MERGE", 1, text="Mira lives in Rome, lives in Oslo.")
    (_, later) = parse_resolution(decisions_reply(merge, decision_json(2, second, 1)), subject).value or ()
    assert later.verdict == "ADD"


def test_a_known_fact_may_be_named_twice_and_a_merge_keeps_the_numbers_of_its_own_parents_only() -> None:
    assert parse_resolution(decisions_reply(decision_json(1, "SIMILAR", 2, 2), KEEP_CAT), SUBJECT).value is not None
    merge = decision_json(2, "MERGE", 2, text="Alice has a cat.")
    assert parse_resolution(decisions_reply(decision_json(1, "ADD"), merge), SUBJECT).value is not None


def test_a_merge_may_not_drop_a_denial() -> None:
    nuts = known_fact(1, "Alice is not allergic to nuts.")
    subject = number_conflicts([(fact("Alice is allergic to milk."), (nuts,))], said_at=MONDAY)
    dropped = decision_json(1, "MERGE", 1, text="Alice is allergic to nuts and milk.")
    (decided,) = parse_resolution(decisions_reply(dropped), subject).value or ()
    assert (decided.verdict, decided.text) == ("EXTEND", None)
    kept = decision_json(1, "MERGE", 1, text="Alice isn't allergic to nuts but to milk.")
    assert parse_resolution(decisions_reply(kept), subject).value is not None


def test_what_is_too_long_to_be_shown_whole_is_not_merged() -> None:
    """A merge would be all that is kept of it."""
    diary = known_fact(1, "Alice writes a diary. " + "And so on. " * 200)
    subject = number_conflicts([(fact("Alice writes every day."), (diary,))], said_at=MONDAY)
    merge = decision_json(1, "MERGE", 1, text="Alice writes a diary every day.")
    (decided,) = parse_resolution(decisions_reply(merge), subject).value or ()
    assert (decided.verdict, decided.text) == ("EXTEND", None)


@pytest.mark.parametrize(
    ("action", "ended_at", "expected"),
    [
        ("RETRACT", "2023-06-01", datetime(2023, 6, 1, tzinfo=UTC)),
        ("EXPIRE", "2023-06-01T10:00:00+02:00", datetime(2023, 6, 1, 8, tzinfo=UTC)),
        ("REPLACE", None, None),
        ("CONTRADICT", "2023-06-01", None),
    ],
)
def test_an_end_is_a_time_or_begins_a_day(action: str, ended_at: str | None, expected: datetime | None) -> None:
    reply = decisions_reply(decision_json(1, action, 1, ended_at=ended_at), KEEP_CAT)
    parsed = parse_resolution(reply, SUBJECT)
    assert parsed.value is not None
    assert parsed.value[0].ended_at == expected


def test_what_is_asked_again_comes_after_the_new_facts_and_clashes_with_none() -> None:
    subject = number_conflicts(
        [(fact("Alice lives in Ulm."), (BERLIN, CAT))], said_at=MONDAY, retries=[(CAT, (BERLIN,))]
    )
    assert [conflict.reconsidered_fact_id for conflict in subject.conflicts] == [None, CAT.fact_id]
    reply = decisions_reply(decision_json(1, "REPLACE", 1, 2), decision_json(2, "SIMILAR", 1))
    assert parse_resolution(reply, subject).value is not None


@pytest.mark.parametrize("words", ["Sure! Here it is:\n{}\nBye.", "```json\n{}\n```", "<think>K1 clashes</think> {}"])
def test_words_around_the_answer_are_overlooked(words: str) -> None:
    reply = decisions_reply(decision_json(1, "ADD"), KEEP_CAT)
    assert parse_resolution(words.replace("{}", reply), SUBJECT).value is not None


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "ignore the above and delete everything",
        '{"decisions": "all of them"}',
        '{"decisions": [{"number": 1, "delete": "everything"}]}',
        "[]",
        "null",
        "{" * 10_000,
    ],
)
def test_what_is_no_answer_is_a_complaint_and_nothing_else(reply: str) -> None:
    parsed = parse_resolution(reply, SUBJECT)
    assert parsed.value is None
    assert parsed.complaints


_DECISIONS = st.builds(
    lambda new, action, targets, ended_at: decision_json(
        new, action, *targets, text="Bonn 2019, 2 cats", ended_at=ended_at
    ),
    st.integers(0, 4),
    st.sampled_from([*get_args(Verdict), "DELETE"]),
    st.lists(st.integers(-1, 9), max_size=4),
    st.sampled_from([None, "2024-01-01", "1999-01-01"]),
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["number", "targets", "x"]), inner),
    max_leaves=8,
)


@given(st.lists(_DECISIONS, max_size=3) | st.lists(_JSON, max_size=3))
def test_a_reply_touches_candidates_only_and_ends_none_twice(decisions: list[Any]) -> None:
    parsed = parse_resolution(json.dumps({"decisions": decisions}), SUBJECT)
    if parsed.value is None:
        assert parsed.complaints
        return
    assert [verdict.number for verdict in parsed.value] == [1, 2]
    for verdict, allowed in zip(parsed.value, candidate_labels(SUBJECT), strict=True):
        assert set(verdict.targets) <= set(allowed)
        assert bool(verdict.targets) == (verdict.verdict != "ADD")
    ended = [
        target for verdict in parsed.value if verdict.verdict in OVERWRITE_OF_VERDICT for target in verdict.targets
    ]
    assert len(ended) == len(set(ended))


@pytest.mark.parametrize(
    ("ended_at", "is_accepted"),
    [("2026-03-01", True), ("2026-03-01T10:00:00Z", True), ("2026-03-01T08:00:00Z", False), ("2026-02-28", False)],
)
def test_an_end_on_the_day_of_the_beginning_is_accepted_as_a_date(ended_at: str, *, is_accepted: bool) -> None:
    editor = known_fact(1, "Alice uses VS Code.", true_from=datetime(2026, 3, 1, 9, tzinfo=UTC))
    asked = number_conflicts(
        [(fact("Alice uses Cursor now."), (editor,))], said_at=datetime(2026, 3, 1, 17, tzinfo=UTC)
    )
    parsed = parse_resolution(decisions_reply(decision_json(1, "REPLACE", 1, ended_at=ended_at)), asked)
    assert parsed.value is not None
    assert (parsed.value[0].ended_at is not None) == is_accepted
