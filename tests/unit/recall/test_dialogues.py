"""What is read of recorded dialogues."""

from pathlib import Path

import orjson
import pytest

from tests.recall.ablation import answerable
from tests.recall.dialogues import Dialogues, load_dialogues


@pytest.fixture
def dialogues(tmp_path: Path) -> Dialogues:
    said = "2023-05-08T13:56:00+00:00"
    turns = [
        {
            "conversation": "c",
            "session": 1,
            "turn_id": f"c:{number}",
            "speaker": "Ann",
            "text": "Hello.",
            "occurred_at": said,
        }
        for number in range(3)
    ]
    facts = [
        {"conversation": "c", "subject": "Ann", "fact": "Ann greets.", "evidence": ["c:0", "c:9"]},
        {"conversation": "c", "subject": "Ann", "fact": "Ann is lost.", "evidence": ["c:9"]},
    ]
    asked = [(1, ["c:0", "c:1"]), (4, ["c:1"]), (2, []), (5, ["c:0"]), (3, ["c:9"])]
    questions = [
        {"conversation": "c", "question": f"{category}?", "category": category, "evidence": evidence}
        for category, evidence in asked
    ]
    for name, lines in (("turns", turns), ("observations", facts), ("questions", questions)):
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    return load_dialogues(tmp_path)


def test_what_rests_on_no_message_is_left_out(dialogues: Dialogues) -> None:
    assert [fact.text for fact in dialogues.facts] == ["Ann greets."]
    assert [question.text for question in dialogues.questions] == ["1?", "4?"]


def test_facts_are_asked_only_for_what_a_fact_rests_on(dialogues: Dialogues) -> None:
    assert [(one.text, set(one.evidence)) for one in answerable(dialogues, "facts")] == [("1?", {"c:0"})]
    assert [(one.text, set(one.evidence)) for one in answerable(dialogues, "turns")] == [
        ("1?", {"c:0", "c:1"}),
        ("4?", {"c:1"}),
    ]
