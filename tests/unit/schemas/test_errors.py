"""Faults of records are said in plain words, each once, and without the words of a user."""

import json
import re

import pytest
from pydantic import ValidationError

from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.turn import Turn

TURN = {
    "turn_id": "t1",
    "scope": {"user_id": "alice"},
    "messages": [{"role": "user", "content": "Hi."}],
    "occurred_at": "2026-03-01T09:00:00Z",
}


def detail(**changes: object) -> str:
    judged = parse_turn(json.dumps(TURN | changes).encode(), position="")
    assert isinstance(judged, Refusal)
    return judged.detail


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "boss", "content": "x"}], "must be 'system', 'user', 'assistant' or 'tool', not 'boss'"),
        ([{"role": "user"}], "messages.0.content is missing"),
        ([{"content": "x"}], "messages.0.role is missing"),
        (["secret"], "messages.0 must be an object of names and values, not text"),
        ([{"role": "user", "content": ["secret"]}], "messages.0.content must be text, not a list"),
        ([{"role": "user", "content": None}], "messages.0.content must be text, not nothing"),
        ([{"role": "user", "content": "x", "colour": "secret"}], "messages.0.colour is not a known field"),
        ({"role": "user", "content": "secret"}, "messages must be a list, not an object"),
        ("secret", "messages must be a list, not text"),
    ],
)
def test_one_fault_is_said_once_in_plain_words(messages: object, words: str) -> None:
    said = detail(messages=messages)
    assert words in said
    assert not re.search(r"[Ii]nput|Tuple|validation|secret|;", said)


def test_several_faults_are_all_said() -> None:
    said = detail(messages=[{"role": "boss"}, "x"], turn_id=7)
    assert [one.partition(" ")[0] for one in said.split("; ")] == [
        "turn_id",
        "messages.0.role",
        "messages.0.content",
        "messages.1",
    ]


def test_an_empty_list_is_told_so() -> None:
    with pytest.raises(ValidationError) as caught:
        Turn.model_validate(TURN | {"messages": []})
    assert describe_faults(caught.value) == "messages must have at least 1 item, not 0"
