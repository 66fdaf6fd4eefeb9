"""Parsing of turns: each refusal has a reason, words that help, and its publisher's identity wherever it shows."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemolog.schemas.admission import DEFAULT_MAX_TURN_BYTES, MAX_AHEAD, Refusal, RefusalReason, parse_turn
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import End
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn

POSITION = "conversation_turns/3/1208"
SCOPE = Scope(user_id="nadia", app_id="diary")
TURN: dict[str, Any] = {
    "turn_id": "t1",
    "scope": {"user_id": "nadia", "app_id": "diary"},
    "messages": [{"role": "user", "content": "I moved to Lisbon."}],
    "occurred_at": "2026-04-11T18:02:00+01:00",
}
HUGE = b"9" * 5000  # more digits than Python reads into an int


def _bytes(**fields: Any) -> bytes:
    return json.dumps(TURN | fields).encode()


def _with(raw: bytes) -> bytes:
    """The turn with one more field, written by hand."""
    return json.dumps(TURN).encode()[:-1] + b"," + raw + b"}"


def _refused(value: bytes | None, **limits: Any) -> Refusal:
    result = parse_turn(value, position=POSITION, **limits)
    assert isinstance(result, Refusal), result
    return result


def test_a_turn_is_admitted_as_it_is() -> None:
    turn = parse_turn(_bytes(), position=POSITION)
    assert isinstance(turn, Turn)
    assert (turn.turn_id, turn.scope, turn.messages[0].content) == ("t1", SCOPE, "I moved to Lisbon.")
    assert turn.occurred_at == datetime(2026, 4, 11, 17, 2, tzinfo=UTC)


def test_a_turn_is_a_day_ahead_of_the_broker_at_the_most() -> None:
    said_at = datetime.fromisoformat(TURN["occurred_at"])
    assert isinstance(parse_turn(_bytes(), position=POSITION, published_at=said_at - MAX_AHEAD), Turn)
    refusal = _refused(_bytes(), published_at=said_at - MAX_AHEAD - timedelta(seconds=1))
    assert (refusal.source_id, refusal.reason, refusal.outcome) == ("t1", "in_the_future", "rejected")
    for words in ("occurred_at is 2026-04-11", "more than 24 hours in the future", "give the time when it was said"):
        assert words in refusal.detail


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (_bytes(messages=[]), "empty", "at least one message"),
        (_bytes(messages=[{"role": "user", "content": " \n\u3000"}]), "empty", "no message has any text"),
        (_bytes(messages=[{"role": "wizard", "content": "x"}]), "unknown_role", "messages.0.role must be .*'user'"),
        (_bytes(occurred_at="2026-04-11T18:02:00"), "missing_zone", "occurred_at needs a zone, for example 2026"),
        (_bytes(valid_until="2026-04-11T18:02:00"), "missing_zone", "valid_until needs a zone"),
    ],
)
def test_what_is_understood_and_not_wanted_is_rejected(value: bytes, reason: RefusalReason, detail: str) -> None:
    refusal = _refused(value)
    assert (refusal.reason, refusal.outcome) == (reason, "rejected")
    assert (refusal.source_id, refusal.scope) == ("t1", SCOPE)
    assert re.search(detail, refusal.detail)


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (_bytes(schema_version=2), "unsupported_version", "schema_version 2, this program reads up to 1: upgrade it"),
        (_bytes(kind="banana"), "invalid_record", '^kind is not valid: write "turn" or "command"$'),
        (_bytes(kind="Command"), "invalid_record", '^kind is not valid: write "turn" or "command"$'),
        (_bytes(kind=None), "invalid_record", '^kind is not valid: write "turn" or "command"$'),
        (_bytes(kind="command"), "invalid_record", "kind must be 'turn'"),
        (_bytes(schema_version=2, new_field=1), "unsupported_version", "upgrade it"),
        (_bytes(schema_version="2"), "invalid_record", "schema_version"),
        (_bytes(colour="blue"), "invalid_record", "colour is not a known field"),
        (
            _bytes(occurred_at="tomorrow"),
            "invalid_record",
            "^occurred_at must be a date and time with a zone, such as 2026-01-31T09:30:00[+]01:00$",
        ),
        (_bytes(occurred_at="0001-01-01T00:00:00+14:00"), "invalid_record", "years 2 to 9998"),
        (_bytes(occurred_at=1_776_000_000), "invalid_record", "occurred_at"),
        (_bytes(messages=None), "invalid_record", "messages"),
        (_bytes(messages=[{"role": "user"}]), "invalid_record", r"messages\.0\.content is missing"),
        (_bytes(messages=[{"role": "user", "content": "a\x00b"}]), "invalid_record", r"U\+0000"),
        (_bytes(metadata={"a": [{"b\x00": 1}]}), "invalid_record", r"U\+0000"),
        (_bytes(metadata={"a": 2**64}), "invalid_record", "beyond 64 bits"),
        (_with(b'"metadata": {"a": NaN}'), "invalid_record", "not finite"),
        (_with(b'"metadata": {"a": 1e999}'), "invalid_record", "not finite"),
        (_with(b'"metadata": {"a": ' + b"[" * 100 + b"]" * 100 + b"}"), "invalid_record", "nested deeper"),
        (_with(b'"metadata": {"a": ' + HUGE + b"}"), "not_a_record", "Invalid JSON"),
        (_with(b'"schema_version": ' + HUGE), "not_a_record", "Invalid JSON"),
        (_bytes(speaker="half an emoji: \ud83d"), "not_a_record", "hex escape"),
        (_bytes(colour="blue").replace(b"colour", b"\\u0000colour"), "invalid_record", r"\\x00colour is not a known"),
        (_bytes(**{"x" * 10_000: 1}), "invalid_record", "^x{300}$"),
        (
            _bytes(**{f"field_{number}": 1 for number in range(1000)}),
            "invalid_record",
            "^(field_[0-4] [^;]*(; )?){5}$",
        ),
    ],
)
def test_what_is_not_understood_has_failed_under_its_own_identity(
    value: bytes, reason: RefusalReason, detail: str
) -> None:
    refusal = _refused(value)
    assert (refusal.reason, refusal.outcome) == (reason, "failed")
    assert (refusal.source_id, refusal.scope) == ("t1", SCOPE)
    assert re.search(detail, refusal.detail)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "not_a_record"),
        (b"", "not_a_record"),
        (b"Hello!", "not_a_record"),
        (b"true", "not_a_record"),
        (b"null", "not_a_record"),
        (b"4711", "not_a_record"),
        (b"[]", "not_a_record"),
        (b"[" + json.dumps(TURN).encode() + b"]", "not_a_record"),
        (b'"a turn"', "not_a_record"),
        (b"\xff\xfe\x00", "not_a_record"),
        (b"[" * 100_000, "not_a_record"),
        (json.dumps(TURN).encode()[:-1], "not_a_record"),
        (b"{}", "invalid_record"),
        (_bytes(turn_id=7), "invalid_record"),
        (_bytes(turn_id=" t1"), "invalid_record"),
        (_bytes(turn_id=None), "invalid_record"),
        (_bytes(scope={"app_id": "diary"}), "invalid_record"),
        (_bytes(scope=None), "invalid_record"),
        (_bytes(scope="nadia"), "invalid_record"),
    ],
)
def test_what_names_no_turn_and_owner_is_known_by_its_position(value: bytes | None, reason: RefusalReason) -> None:
    refusal = _refused(value)
    assert (refusal.reason, refusal.outcome) == (reason, "failed")
    assert (refusal.source_id, refusal.scope) == (POSITION, None)
    assert refusal.detail


def test_a_turn_may_have_as_many_bytes_as_the_limit_and_none_more() -> None:
    value = _bytes()
    assert isinstance(parse_turn(value, position=POSITION, max_bytes=len(value)), Turn)
    refusal = _refused(value, max_bytes=len(value) - 1)
    assert (refusal.reason, refusal.outcome, refusal.source_id, refusal.scope) == ("oversize", "rejected", "t1", SCOPE)
    assert f"{len(value)} bytes, the limit is {len(value) - 1}: split the turn" in refusal.detail


@pytest.mark.parametrize("size", [DEFAULT_MAX_TURN_BYTES, 1_000_000, 1_048_576])
def test_a_large_record_is_oversize_whatever_else_is_wrong_with_it(size: int) -> None:
    assert _refused(_bytes(messages=[{"role": "user", "content": "x" * size}])).source_id == "t1"
    for value in (b"[" * (size + 1), b"\x00" * (size + 1), _with(b'"x": "' + b"y" * size)):
        refusal = _refused(value)
        assert (refusal.reason, refusal.source_id) == ("oversize", POSITION)


def test_the_last_of_two_equal_keys_counts_for_the_turn_and_for_its_refusal() -> None:
    turn = parse_turn(_with(b'"turn_id": "t2"'), position=POSITION)
    assert isinstance(turn, Turn)
    assert turn.turn_id == "t2"
    assert _refused(_with(b'"turn_id": "t2", "colour": "blue"')).source_id == "t2"


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
CHANGED_TURNS = st.dictionaries(st.sampled_from(sorted(Turn.model_fields)) | st.text(), ANY_JSON, max_size=4)


def _can_reach_its_end(refusal: Refusal) -> None:
    """A refusal has to fit into the record that carries it on, or its turn would be lost."""
    moment = datetime(2026, 4, 11, tzinfo=UTC)
    end = End(outcome=refusal.outcome, reason=refusal.reason, detail=refusal.detail)
    commit = Commit(
        source_id=refusal.source_id,
        scope=refusal.scope,
        origin=Origin(topic="conversation_turns", partition=3, offset=1208),
        occurred_at=moment,
        published_at=moment,
        decided_at=moment,
        **end.model_dump(),
    )
    assert Commit.from_bytes(commit.to_bytes()) == commit
    assert len(commit.to_bytes()) < 20_000


@given(st.binary())
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_are_a_turn_or_a_refusal_that_can_be_carried_on(value: bytes) -> None:
    _can_reach_its_end(_refused(value))


@given(ANY_JSON)
def test_any_json_is_a_turn_or_a_refusal_that_can_be_carried_on(value: object) -> None:
    _can_reach_its_end(_refused(json.dumps(value).encode()))


@given(CHANGED_TURNS)
@example({"\x00": 1})
@example({"schema_version": 10**4000})
@example({"turn_id": "\ud83d"})
@example({"scope": {"user_id": "a\x00"}})
def test_any_change_of_a_turn_leaves_a_turn_or_a_refusal_that_can_be_carried_on(changes: dict[str, Any]) -> None:
    result = parse_turn(_bytes(**changes), position=POSITION)
    if isinstance(result, Refusal):
        _can_reach_its_end(result)
    else:
        assert Turn.from_bytes(result.to_bytes()) == result


@pytest.mark.parametrize(
    ("value", "reason"),
    [(_bytes(turn_id="promote/t7"), "invalid_record"), (_bytes(turn_id="promote/t7", messages=[]), "empty")],
)
def test_a_turn_cannot_take_the_id_of_a_promotion(value: bytes, reason: RefusalReason) -> None:
    """Nor does the end of what is refused: the promotion would then count as committed."""
    refusal = _refused(value)
    assert (refusal.reason, refusal.source_id, refusal.scope) == (reason, POSITION, None)
    assert isinstance(parse_turn(_bytes(turn_id="promoted/t7"), position=POSITION), Turn)


def test_a_reserved_id_is_refused_with_what_to_do() -> None:
    for words in ("turn_id is 'promote/t7'", "choose another"):
        assert words in _refused(_bytes(turn_id="promote/t7")).detail
