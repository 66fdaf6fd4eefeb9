"""Messages in the forms in which applications have them become those of a turn; what is no text is named."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from mnemolog.client.records import as_messages, read_turn
from mnemolog.errors import InvalidTurnError
from mnemolog.schemas.turn import Message

TEXT = {"type": "text", "text": "I live in Bern."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}
SAID = {"role": "user", "content": "I live in Bern."}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("I live in Bern.", [SAID]),
        (SAID, [SAID]),
        ([SAID], [SAID]),
        ((SAID,), [SAID]),
        (iter([SAID]), [SAID]),
        (Message(role="user", content="I live in Bern."), [SAID]),
        ([{"role": "user", "content": [TEXT]}], [SAID]),
        ([{"role": "user", "content": [TEXT, {"type": "input_text", "text": "You?"}]}], [
            {"role": "user", "content": "I live in Bern.\nYou?"}]),
        ([{"role": "user", "content": ["I live in Bern."]}], [SAID]),
        ([{**SAID, "name": "Ada"}], [{**SAID, "name": "Ada"}]),
        ([{**SAID, "name": None, "refusal": None, "audio": None, "x": None}], [SAID]),
        ([{"role": "developer", "content": "Be brief."}], [{"role": "system", "content": "Be brief."}]),
        ([{"role": "function", "name": "f", "content": "5"}], [{"role": "tool", "content": "5", "name": "f"}]),
        ([{"role": "tool", "tool_call_id": "c1", "content": "5"}], [{"role": "tool", "content": "5"}]),
        ([{"role": "assistant", "content": None, "refusal": "No."}], [{"role": "assistant", "content": "No."}]),
        ([ChatCompletionMessage(role="assistant", content="Hi.")], [{"role": "assistant", "content": "Hi."}]),
        ([{"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [
            {"type": "output_text", "text": "Hi.", "annotations": []}]}], [{"role": "assistant", "content": "Hi."}]),
        ([SAID, {"role": "assistant", "content": ""}], [SAID, {"role": "assistant", "content": ""}]),
    ],
)  # fmt: skip
def test_a_message_is_read_in_every_usual_form(given: Any, expected: list[dict[str, str]]) -> None:
    assert as_messages(given) == (expected, ())


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        ([SAID, {"role": "user", "content": [IMAGE]}], "image_url (messages.1)"),
        ([{"role": "user", "content": [TEXT, IMAGE, IMAGE]}], "image_url (messages.0)"),
        ([SAID, {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}], "tool_calls (messages.1)"),
        ([SAID, {"role": "assistant", "content": "", "function_call": {"name": "f"}}], "function_call (messages.1)"),
        ([SAID, {"role": "user", "content": [{"type": "input_audio"}, {"type": "file"}]}],
         "input_audio (messages.1), file (messages.1)"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_left_out_and_named(given: Any, left_out: str) -> None:
    assert as_messages(given) == ([SAID], (f"left out, because it is not text: {left_out}",))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            [{"role": "user", "content": [IMAGE]}],
            "no message has any text besides image_url (messages.0), and only text",
        ),
        ([{"role": "user", "content": [5]}], "messages.0.content.0 must be a part such as"),
        ([{"role": "user", "content": [{"text": "x"}]}], "messages.0.content.0 must be a part such as"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages.0.content.0.text must be text, not None"),
        ([{**SAID, "colour": "red"}], "messages.0 has an unknown field 'colour': a message has role, content and name"),
        ([{**SAID, "name": 5}], "messages.0.name must be text, not int"),
        ([SimpleNamespace(role="user", content="x")], "messages.0 must be a message such as"),
        ([SAID, {"role": "assistant", "content": None}], "messages.1.content is missing"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(given: Any, words: str) -> None:
    with pytest.raises(InvalidTurnError, match=re.escape(words)):
        as_messages(given)


def test_a_line_of_json_may_have_that_form_too() -> None:
    document = {
        "turn_id": "t1",
        "scope": {"user_id": "ada"},
        "occurred_at": "2026-03-01T09:00:00Z",
        "messages": [{"role": "user", "content": [TEXT, IMAGE]}],
    }
    turn = read_turn(json.dumps(document).encode(), max_bytes=4096)
    assert turn.messages == (Message(role="user", content="I live in Bern."),)
    document["messages"] = [{"role": "boss", "content": "x"}]
    with pytest.raises(InvalidTurnError, match=r"messages\.0\.role must be .*, not 'boss'"):
        read_turn(json.dumps(document).encode(), max_bytes=4096)
