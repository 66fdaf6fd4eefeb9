"""Parsing of turns and commands: each refusal has a reason, words that help, and its publisher's identity."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemolog.schemas.admission import (
    MAX_AHEAD,
    MAX_COMMAND_BYTES,
    MAX_IMPORT_BYTES,
    Refusal,
    RefusalReason,
    parse_command,
    parse_record,
    parse_turn,
    source_kind,
)
from mnemolog.schemas.command import Command, Update, embedded_texts
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import End
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn

POSITION = "conversation_turns/3/1208"
SCOPE = Scope(user_id="nadia", app_id="diary")
FACT = "00000000-0000-4000-8000-000000000001"
TURN: dict[str, Any] = {
    "turn_id": "t1",
    "scope": {"user_id": "nadia", "app_id": "diary"},
    "messages": [{"role": "user", "content": "I moved to Lisbon."}],
    "occurred_at": "2026-04-11T18:02:00+01:00",
}
COMMAND: dict[str, Any] = {
    "kind": "command",
    "command_id": "c1",
    "scope": {"user_id": "nadia", "app_id": "diary"},
    "issued_at": "2026-04-11T18:02:00+01:00",
    "order": {"kind": "delete", "fact_ids": [FACT]},
}
ZONELESS = "2026-04-11T18:02:00"
HUGE = b"9" * 5000  # more digits than Python reads into an int
REJECTED = {"empty", "unknown_role", "missing_zone", "invalid_command", "oversize", "in_the_future"}
"""What is understood and not wanted; what is not understood has failed."""
Parse = Callable[..., Turn | Command | Refusal]


def _turn(**fields: Any) -> bytes:
    return json.dumps(TURN | fields).encode()


def _with(raw: bytes) -> bytes:
    """The turn with one more field, written by hand."""
    return _turn()[:-1] + b"," + raw + b"}"


def _command(**fields: Any) -> bytes:
    return json.dumps(COMMAND | fields).encode()


def _order(**fields: Any) -> bytes:
    return _command(order=fields)


def _refused(parse: Parse, value: bytes | None, **limits: Any) -> Refusal:
    result = parse(value, position=POSITION, **limits)
    assert isinstance(result, Refusal), result
    assert result.outcome == ("rejected" if result.reason in REJECTED else "failed")
    assert result.detail
    return result


NO_KIND = '^kind is not valid: write "turn" or "command"$'
NO_TIME = "^occurred_at must be a date and time with a zone, such as 2026-01-31T09:30:00[+]01:00$"
TURNS: list[tuple[bytes, RefusalReason, str]] = [
    (_turn(messages=[]), "empty", "at least one message"),
    (_turn(messages=[{"role": "user", "content": " \n\u3000"}]), "empty", "no message has any text"),
    (_turn(messages=[{"role": "wizard", "content": "x"}]), "unknown_role", "messages.0.role must be .*'user'"),
    (_turn(occurred_at=ZONELESS), "missing_zone", "occurred_at needs a zone, for example 2026"),
    (_turn(valid_until=ZONELESS), "missing_zone", "valid_until needs a zone"),
    (_turn(schema_version=2), "unsupported_version", "schema_version 2, this program reads up to 1: upgrade it"),
    (_turn(schema_version=2, new_field=1), "unsupported_version", "upgrade it"),
    (_turn(schema_version="2"), "invalid_record", "schema_version"),
    (_turn(kind="banana"), "invalid_record", NO_KIND),
    (_turn(kind="Command"), "invalid_record", NO_KIND),
    (_turn(kind=None), "invalid_record", NO_KIND),
    (_turn(kind="command"), "invalid_record", "kind must be 'turn'"),
    (_turn(colour="blue"), "invalid_record", "colour is not a known field"),
    (_turn(occurred_at="tomorrow"), "invalid_record", NO_TIME),
    (_turn(occurred_at="0001-01-01T00:00:00+14:00"), "invalid_record", "years 2 to 9998"),
    (_turn(occurred_at=1_776_000_000), "invalid_record", "occurred_at"),
    (_turn(messages=None), "invalid_record", "messages"),
    (_turn(messages=[{"role": "user", "content": "a\x00b"}]), "invalid_record", r"U\+0000"),
    (_turn(metadata={"a": [{"b\x00": 1}]}), "invalid_record", r"U\+0000"),
    (_turn(metadata={"a": 2**64}), "invalid_record", "beyond 64 bits"),
    (_with(b'"metadata": {"a": NaN}'), "invalid_record", "not finite"),
    (_with(b'"metadata": {"a": 1e999}'), "invalid_record", "not finite"),
    (_with(b'"metadata": {"a": ' + b"[" * 100 + b"]" * 100 + b"}"), "invalid_record", "nested deeper"),
    (_with(b'"metadata": {"a": ' + HUGE + b"}"), "not_a_record", "Invalid JSON"),
    (_with(b'"schema_version": ' + HUGE), "not_a_record", "Invalid JSON"),
    (_turn(speaker="half an emoji: \ud83d"), "not_a_record", "hex escape"),
    (_turn(colour="blue").replace(b"colour", b"\\u0000colour"), "invalid_record", r"\\x00colour is not a known"),
    (_turn(**{"x" * 10_000: 1}), "invalid_record", "^x{300}$"),
    (_turn(**{f"field_{n}": 1 for n in range(1000)}), "invalid_record", "^(field_[0-4] [^;]*(; )?){5}$"),
]
NO_FILTER = r"delete_all.filters: the filter is not valid: OR\.0\.nope is not a known field"
NO_ORDER = "order has the unknown 'kind' 'explode': choose one of 'update', 'delete'"
COMMANDS: list[tuple[bytes, RefusalReason, str]] = [
    (_order(kind="explode"), "invalid_command", NO_ORDER),
    (_order(fact_ids=[FACT]), "invalid_command", "order has no 'kind'"),
    (_order(kind="delete", fact_ids=[]), "invalid_command", "order.delete.fact_ids must have at least 1 item"),
    (_order(kind="delete", fact_ids=[FACT] * 101), "invalid_command", "at most 100"),
    (_order(kind="delete", fact_ids=["x"]), "invalid_command", "fact_ids.0 must be an id such as"),
    (_order(kind="undo"), "invalid_command", "undo one of: an event, a turn"),
    (_order(kind="undo", model="m"), "invalid_command", "give both, in order"),
    (_order(kind="delete_all", user="x"), "invalid_command", "user is not a known field"),
    (_order(kind="delete_all", filters={"OR": [{"nope": 1}]}), "invalid_command", NO_FILTER),
    (_order(kind="delete_all", filters={"OR": [{"key": "x"}] * 201}), "invalid_command", "more than 200 conditions"),
    (_order(kind="delete_all", filters="all"), "invalid_command", "filters"),
    (_command(colour="blue"), "invalid_command", "colour is not a known field"),
    (_command(issued_at=ZONELESS), "missing_zone", "issued_at needs a zone, for example 2026"),
    (_order(kind="undo", model="m", since=ZONELESS, until=ZONELESS), "missing_zone", "since needs a zone"),
    (_command(schema_version=99, colour="blue"), "unsupported_version", "upgrade it"),
]


@pytest.mark.parametrize(
    ("parse", "source_id", "value", "reason", "detail"),
    [*((parse_turn, "t1", *row) for row in TURNS), *((parse_command, "c1", *row) for row in COMMANDS)],
)
def test_what_is_refused_keeps_its_identity(
    parse: Parse, source_id: str, value: bytes, reason: RefusalReason, detail: str
) -> None:
    refusal = _refused(parse, value)
    assert (refusal.reason, refusal.source_id, refusal.scope) == (reason, source_id, SCOPE)
    assert re.search(detail, refusal.detail)


NO_RECORDS = (None, b"", b"Hello!", b"true", b"null", b"4711", b"[]", b'"a turn"', b"\xff\xfe\x00", b"[" * 100_000)
NO_TURNS: list[dict[str, Any]] = [
    *({"turn_id": value} for value in (7, " t1", None)),
    *({"scope": value} for value in ({"app_id": "diary"}, None, "nadia")),
]
NO_COMMANDS: list[dict[str, Any]] = [{"command_id": 7}, {"scope": {"app_id": "diary"}}, {"scope": {"user_id": "*"}}]


@pytest.mark.parametrize(
    ("parse", "value", "reason"),
    [
        *((parse, value, "not_a_record") for parse in (parse_turn, parse_command) for value in NO_RECORDS),
        (parse_turn, b"[" + _turn() + b"]", "not_a_record"),
        (parse_turn, _turn()[:-1], "not_a_record"),
        (parse_turn, b"{}", "invalid_record"),
        (parse_command, b"{}", "invalid_command"),
        *((parse_turn, _turn(**fields), "invalid_record") for fields in NO_TURNS),
        *((parse_command, _command(**fields), "invalid_command") for fields in NO_COMMANDS),
        # The end of what is refused has no reserved id either: the promotion of that id would count as committed.
        (parse_turn, _turn(turn_id="promote/t7"), "invalid_record"),
        (parse_turn, _turn(turn_id="promote/t7", messages=[]), "empty"),
        (parse_command, _command(command_id="promote/t7"), "invalid_command"),
    ],
)
def test_what_names_no_source_and_owner_is_known_by_its_position(
    parse: Parse, value: bytes | None, reason: RefusalReason
) -> None:
    refusal = _refused(parse, value)
    assert (refusal.reason, refusal.source_id, refusal.scope) == (reason, POSITION, None)


def test_only_a_promotion_has_the_id_of_one() -> None:
    for words in ("turn_id is 'promote/t7'", "choose another"):
        assert words in _refused(parse_turn, _turn(turn_id="promote/t7")).detail
    assert isinstance(parse_turn(_turn(turn_id="promoted/t7"), position=POSITION), Turn)
    refusal = _refused(parse_command, _command(command_id="promote/t7"))
    assert refusal.detail.startswith("command_id is 'promote/t7': ids that begin with 'promote/'")
    order = {"kind": "promote", "source": {"user_id": "nadia", "app_id": "diary", "run_id": "r1"}}
    assert isinstance(parse_command(_command(command_id="promote/t7", order=order), position=POSITION), Command)


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
def test_a_fault_is_said_once_in_plain_words_without_the_words_of_a_user(messages: object, words: str) -> None:
    said = _refused(parse_turn, _turn(messages=messages)).detail
    assert words in said
    assert not re.search(r"[Ii]nput|Tuple|validation|secret|;", said)


def test_a_turn_is_a_day_ahead_of_the_broker_at_the_most() -> None:
    said_at = datetime.fromisoformat(TURN["occurred_at"])
    assert isinstance(parse_turn(_turn(), position=POSITION, published_at=said_at - MAX_AHEAD), Turn)
    refusal = _refused(parse_turn, _turn(), published_at=said_at - MAX_AHEAD - timedelta(seconds=1))
    assert (refusal.source_id, refusal.reason) == ("t1", "in_the_future")
    for words in ("occurred_at is 2026-04-11", "more than 24 hours in the future", "give the time when it was said"):
        assert words in refusal.detail


def test_a_turn_may_have_as_many_bytes_as_the_limit_and_none_more() -> None:
    value = _turn()
    assert isinstance(parse_turn(value, position=POSITION, max_bytes=len(value)), Turn)
    refusal = _refused(parse_turn, value, max_bytes=len(value) - 1)
    assert (refusal.reason, refusal.source_id, refusal.scope) == ("oversize", "t1", SCOPE)
    assert f"{len(value)} bytes, the limit is {len(value) - 1}: split the turn" in refusal.detail


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, MAX_COMMAND_BYTES),
        ({"order": {"kind": "import", "fact": {"text": "x" * 300_000}}}, MAX_IMPORT_BYTES),
    ],
)
def test_a_command_may_have_as_many_bytes_as_the_limit_and_none_more(fields: dict[str, Any], limit: int) -> None:
    value = _command(**fields).ljust(limit)
    assert isinstance(parse_command(value, position=POSITION), Command)
    refusal = _refused(parse_command, value + b" ")
    assert (refusal.reason, refusal.source_id) == ("oversize", "c1")
    assert "give it fewer items" in refusal.detail


def test_the_largest_command_fits_with_its_embedded_texts() -> None:
    edits = [{"fact_id": FACT, "text": "x" * 1200}] * 100
    command = parse_command(_order(kind="update", edits=edits), position=POSITION)
    assert isinstance(command, Command)
    assert isinstance(command.order, Update)
    # The order, and each wording as text, as search text and as excerpt.
    assert 4 * sum(map(len, embedded_texts(command.order))) < 4 * MAX_COMMAND_BYTES < 1_000_000


def test_the_last_of_two_equal_keys_counts_for_the_turn_and_for_its_refusal() -> None:
    turn = parse_turn(_with(b'"turn_id": "t2"'), position=POSITION)
    assert isinstance(turn, Turn)
    assert turn.turn_id == "t2"
    assert _refused(parse_turn, _with(b'"turn_id": "t2", "colour": "blue"')).source_id == "t2"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (_command(), "command"),
        (json.dumps(COMMAND, indent=2).encode(), "command"),
        (b'{"kind": "command"}', "command"),
        (b'{"kind": "command", "number": ' + HUGE + b"}", "command"),
        (_turn(messages=[{"role": "user", "content": 'Send {"kind": "command"}.'}]), "turn"),
        (_turn(kind="turn"), "turn"),
        (_turn(metadata={"kind": "command"}), "turn"),
        (json.dumps({"kind": ["command"]}).encode(), "turn"),
        (b'["kind", "command"]', "turn"),
        (b'"command"', "turn"),
        (b'{"kind": "command"', "turn"),
        (b'{"kind": "c\\u006fmmand"}', "turn"),
        (b'{"kind": "command", "deep": ' + b"[" * 100_000, "turn"),
        (b"", "turn"),
        (None, "turn"),
    ],
)
def test_a_record_is_a_command_only_where_its_own_field_says_so(value: bytes | None, kind: str) -> None:
    assert source_kind(value) == kind
    assert parse_record(value, position=POSITION).kind == kind


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _changes(model: type[Turn | Command]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(sorted(model.model_fields)) | st.text(), ANY_JSON, max_size=4)


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


@given(st.binary() | ANY_JSON.map(lambda value: json.dumps(value).encode()))
@example(b"\xef\xbb\xbf{}")
def test_whatever_is_no_record_gets_a_refusal_that_can_be_carried_on(value: bytes) -> None:
    for parse in (parse_turn, parse_command):
        _can_reach_its_end(_refused(parse, value))


@given(_changes(Turn))
@example({"\x00": 1})
@example({"schema_version": 10**4000})
@example({"turn_id": "\ud83d"})
@example({"scope": {"user_id": "a\x00"}})
def test_any_change_of_a_turn_leaves_a_turn_or_a_refusal_that_can_be_carried_on(changes: dict[str, Any]) -> None:
    result = parse_turn(_turn(**changes), position=POSITION)
    if isinstance(result, Refusal):
        _can_reach_its_end(result)
    else:
        assert Turn.from_bytes(result.to_bytes()) == result


@given(_changes(Command))
@example({"command_id": "\ud83d"})
@example({"order": {"kind": "undo", "event_id": None, "source_id": "t1", "cascade": True}})
def test_any_change_of_a_command_leaves_a_command_or_a_refusal(changes: dict[str, Any]) -> None:
    result = parse_command(_command(**changes), position=POSITION)
    if isinstance(result, Refusal):
        _can_reach_its_end(result)
    else:
        assert Command.from_bytes(result.to_bytes()) == result


@given(st.binary() | st.builds(_command) | ANY_JSON.map(lambda value: json.dumps({"kind": value}).encode()))
def test_the_kind_is_the_same_for_whoever_asks(value: bytes) -> None:
    assert parse_record(value, position=POSITION).kind == source_kind(value)
