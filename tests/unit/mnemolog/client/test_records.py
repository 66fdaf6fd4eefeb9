"""Messages in every usual form become a turn; a wrong one is refused with its place before anything is published."""

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from mnemolog.client.inputs import TurnArgs
from mnemolog.client.turns import as_messages, build_turn, read_turn, validated_turn
from mnemolog.errors import InvalidTurnError
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.schemas.turn import Message, Overrides, Turn

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
        ([SAID, {"role": "tool", "tool_call_id": "1", "content": None}],
         "a result of a tool without text (messages.1)"),
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
        ([{"role": "user", "content": [IMAGE]}], "no message has any text besides image_url (messages.0), and only"),
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


DOCUMENT = {"turn_id": "t1", "scope": {"user_id": "ada"}, "messages": [SAID], "occurred_at": "2026-03-01T09:00:00Z"}


def test_a_line_of_json_may_have_that_form_too() -> None:
    document = DOCUMENT | {"messages": [{"role": "user", "content": [TEXT, IMAGE]}]}
    turn = read_turn(json.dumps(document).encode(), max_bytes=4096)
    assert turn.messages == (Message(role="user", content="I live in Bern."),)
    document["messages"] = [{"role": "boss", "content": "x"}]
    with pytest.raises(InvalidTurnError, match=r"messages\.0\.role must be .*, not 'boss'"):
        read_turn(json.dumps(document).encode(), max_bytes=4096)


AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
LIMIT = 4096


def built(*, messages: Any = "I live in Bern.", **changes: Any) -> Turn:
    arguments: TurnArgs = {"turn_id": "t1", "occurred_at": AT, "tenant": "default", "user_id": "alice"}
    return build_turn(as_messages(messages)[0], {**arguments, **changes}, max_bytes=LIMIT)  # type: ignore[typeddict-item] # wrong ones too


def test_everything_given_is_in_the_turn() -> None:
    turn = built(
        messages=[{"role": "user", "content": "Hi", "name": "Mira"}, Message(role="assistant", content="Hello")],
        agent_id="helper",
        infer=False,
        metadata={"channel": "chat"},
        speaker="Mira",
        recalled=["Mira has a dog."],
        valid_until=AT,
        overrides={"conflict": 0.5},
    )
    assert [message.role for message in turn.messages] == ["user", "assistant"]
    assert (turn.scope.agent_id, turn.infer, turn.metadata) == ("helper", False, {"channel": "chat"})
    assert (turn.speaker, turn.recalled, turn.valid_until) == ("Mira", ("Mira has a dog.",), AT)
    assert turn.overrides == Overrides(conflict=0.5)


@pytest.mark.parametrize(("given", "name"), [(" Mira ", "Mira"), ("", None), ("  \t", None)])
def test_a_name_has_no_white_space_at_its_ends_and_a_blank_one_names_nobody(given: str, name: str | None) -> None:
    turn = built(messages=[{"role": "user", "content": "Hi", "name": given}], speaker=given)
    assert (turn.speaker, turn.messages[0].name) == (name, name)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"user_id": None}, "^give a user_id or an agent_id"),
        ({"user_id": "*"}, r"scope\.user_id: '\*' stands for"),
        ({"turn_id": ""}, "turn_id"),
        ({"messages": "x" * LIMIT}, "oversize"),
        ({"occurred_at": datetime(2026, 3, 1)}, "occurred_at needs a zone"),  # noqa: DTZ001 - that is the point
        ({"valid_until": datetime(2026, 3, 1)}, "valid_until needs a zone"),  # noqa: DTZ001 - that is the point
        ({"occurred_at": datetime.now(UTC) + timedelta(days=2)}, "in_the_future: occurred_at is .* more than 24 hours"),
        ({"metadata": {"thing": object()}}, "metadata"),
        ({"messages": "nul \x00"}, r"U\+0000"),
        ({"overrides": {"conflict": 2}}, "overrides.conflict"),
        ({"overrides": {"conflct": 0.2}}, "overrides.conflct"),
        ({"overrides": {"duplicate": "0.9"}}, "overrides.duplicate must be a number, not text"),
        ({"overrides": {"add_only": "yes"}}, "overrides.add_only must be true or false, not text"),
        ({"overrides": {"conflict": 0.9, "duplicate": 0.8}}, r"conflict \(0.9\) is above duplicate \(0.8\): lower it"),
        ({"overrides": {"ending": 0.7, "conflict": 0.6}}, r"ending \(0.7\) is above conflict"),
    ],
)
def test_what_is_no_turn_is_refused_with_its_field(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidTurnError, match=words):
        built(**changes)


def test_a_turn_is_read_back_from_its_bytes() -> None:
    turn = built()
    assert (turn.scope.owner, turn.infer) == ("default/alice", True)
    assert read_turn(turn.to_bytes(), max_bytes=LIMIT) == turn
    assert validated_turn(turn, max_bytes=LIMIT) == turn


def test_a_document_without_turn_id_is_refused() -> None:
    document = {name: value for name, value in DOCUMENT.items() if name != "turn_id"}
    with pytest.raises(InvalidTurnError, match="turn_id is missing"):
        read_turn(json.dumps(document).encode(), max_bytes=LIMIT)


ALL_OVERRIDES = (
    "overrides are conversation_messages (whole number from 0 to 100), conversation_tokens (whole number from 0 to "
    "20000), conversation_age (number from 0 to 3.16224e+07), known_entities (whole number from 0 to 100), "
    "known_facts (whole number from 0 to 100), known_tokens (whole number from 0 to 20000), known_timeout (number from "
    "0 to 60), duplicate (number from 0 to 1), raw_duplicate (number from 0 to 1), conflict (number from 0 to 1), "
    "near_duplicate (number from 0 to 1), ending (number from 0 to 1), chat_model (text of at most 200 characters), "
    "llm_timeout (number above 0 to 600), reprompts (whole number from 0 to 5), add_only (true or false), "
    "confidence (standard or cautious), confirm_below (number from 0 to 1), min_importance (number from 0 to 1)"
)


@pytest.mark.parametrize("overrides", [{"conflct": 0.2}, {"reprompts": 1.5}, {"conflict": 0.9, "duplicate": 0.8}])
def test_a_wrong_override_is_told_with_the_valid_ones_wherever_it_enters(overrides: dict[str, Any]) -> None:
    with pytest.raises(InvalidTurnError, match=re.escape(ALL_OVERRIDES)):
        built(overrides=overrides)
    document = json.loads(built().to_bytes()) | {"overrides": overrides}
    data = json.dumps(document).encode()
    with pytest.raises(InvalidTurnError, match=re.escape(ALL_OVERRIDES)):
        read_turn(data, max_bytes=LIMIT)
    parsed = parse_turn(data, position="conversation_turns/0/0")
    assert isinstance(parsed, Refusal)
    assert (parsed.reason, parsed.source_id) == ("invalid_record", "t1")
    assert parsed.detail.endswith(ALL_OVERRIDES)


def test_another_fault_is_told_without_the_overrides() -> None:
    with pytest.raises(InvalidTurnError) as raised:
        built(messages=[])
    assert "overrides" not in str(raised.value)
