"""Parsing of commands: an invalid one is refused with its reason and the remedy, under the id it names."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemolog.schemas.admission import (
    MAX_COMMAND_BYTES,
    MAX_IMPORT_BYTES,
    Refusal,
    RefusalReason,
    parse_command,
    parse_record,
    source_kind,
)
from mnemolog.schemas.command import Command, Delete, Update, embedded_texts
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn

POSITION = "conversation_turns/1/7"
SCOPE = Scope(user_id="nadia", app_id="diary")
FACT = "00000000-0000-4000-8000-000000000001"
COMMAND: dict[str, Any] = {
    "kind": "command",
    "command_id": "c1",
    "scope": {"user_id": "nadia", "app_id": "diary"},
    "issued_at": "2026-04-11T18:02:00+01:00",
    "order": {"kind": "delete", "fact_ids": [FACT]},
}
ZONELESS = "2026-04-11T18:02:00"


def _bytes(**fields: Any) -> bytes:
    return json.dumps(COMMAND | fields).encode()


def _refused(value: bytes | None) -> Refusal:
    result = parse_command(value, position=POSITION)
    assert isinstance(result, Refusal), result
    return result


def test_a_command_is_admitted_as_it_is() -> None:
    command = parse_command(_bytes(actor="support"), position=POSITION)
    assert isinstance(command, Command)
    assert (command.command_id, command.scope, command.actor) == ("c1", SCOPE, "support")
    assert command.issued_at == datetime(2026, 4, 11, 17, 2, tzinfo=UTC)
    assert command.order == Delete(fact_ids=(UUID(FACT),))


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (
            _bytes(order={"kind": "explode"}),
            "invalid_command",
            "order has the unknown 'kind' 'explode': choose one of 'update', 'delete'",
        ),
        (_bytes(order={"fact_ids": [FACT]}), "invalid_command", "order has no 'kind'"),
        (
            _bytes(order={"kind": "delete", "fact_ids": []}),
            "invalid_command",
            "order.delete.fact_ids must have at least 1 item",
        ),
        (_bytes(order={"kind": "delete", "fact_ids": [FACT] * 101}), "invalid_command", "at most 100"),
        (_bytes(order={"kind": "delete", "fact_ids": ["x"]}), "invalid_command", "fact_ids.0 must be an id such as"),
        (_bytes(order={"kind": "undo"}), "invalid_command", "undo one of: an event, a turn"),
        (_bytes(order={"kind": "undo", "model": "m"}), "invalid_command", "give both, in order"),
        (_bytes(order={"kind": "delete_all", "user": "x"}), "invalid_command", "user is not a known field"),
        (
            _bytes(order={"kind": "delete_all", "filters": {"OR": [{"nope": 1}]}}),
            "invalid_command",
            r"delete_all.filters: the filter is not valid: OR\.0\.nope is not a known field",
        ),
        (
            _bytes(order={"kind": "delete_all", "filters": {"OR": [{"key": "x"}] * 201}}),
            "invalid_command",
            "more than 200 conditions",
        ),
        (_bytes(order={"kind": "delete_all", "filters": "all"}), "invalid_command", "filters"),
        (_bytes(colour="blue"), "invalid_command", "colour is not a known field"),
        (_bytes(issued_at=ZONELESS), "missing_zone", "issued_at needs a zone, for example 2026"),
        (
            _bytes(order={"kind": "undo", "model": "m", "since": ZONELESS, "until": ZONELESS}),
            "missing_zone",
            "since needs a zone",
        ),
    ],
)
def test_an_invalid_command_is_rejected_under_its_own_id(value: bytes, reason: RefusalReason, detail: str) -> None:
    refusal = _refused(value)
    assert (refusal.reason, refusal.outcome) == (reason, "rejected")
    assert (refusal.source_id, refusal.scope) == ("c1", SCOPE)
    assert re.search(detail, refusal.detail)


def test_a_command_of_a_newer_version_has_failed() -> None:
    refusal = _refused(_bytes(schema_version=99, colour="blue"))
    assert (refusal.reason, refusal.outcome, refusal.source_id) == ("unsupported_version", "failed", "c1")
    assert "upgrade it" in refusal.detail


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "not_a_record"),
        (b"delete everything", "not_a_record"),
        (b"[]", "not_a_record"),
        (b"[" * 100_000, "not_a_record"),
        (b"{}", "invalid_command"),
        (_bytes(command_id=7), "invalid_command"),
        (_bytes(scope={"app_id": "diary"}), "invalid_command"),
        (_bytes(scope={"user_id": "*"}), "invalid_command"),
    ],
)
def test_what_names_no_command_and_owner_is_known_by_its_position(value: bytes | None, reason: RefusalReason) -> None:
    refusal = _refused(value)
    assert (refusal.reason, refusal.source_id, refusal.scope) == (reason, POSITION, None)


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, MAX_COMMAND_BYTES),
        ({"order": {"kind": "import", "fact": {"text": "x" * 300_000}}}, MAX_IMPORT_BYTES),
    ],
)
def test_a_command_may_have_as_many_bytes_as_the_limit_and_none_more(fields: dict[str, Any], limit: int) -> None:
    value = _bytes(**fields).ljust(limit)
    assert isinstance(parse_command(value, position=POSITION), Command)
    refusal = _refused(value + b" ")
    assert (refusal.reason, refusal.outcome, refusal.source_id) == ("oversize", "rejected", "c1")
    assert "give it fewer items" in refusal.detail


def test_the_largest_command_fits_with_its_embedded_texts() -> None:
    edits = [{"fact_id": FACT, "text": "x" * 1200}] * 100
    command = parse_command(_bytes(order={"kind": "update", "edits": edits}), position=POSITION)
    assert isinstance(command, Command)
    assert isinstance(command.order, Update)
    # The order, and each wording as text, as search text and as excerpt.
    assert 4 * sum(map(len, embedded_texts(command.order))) < 4 * MAX_COMMAND_BYTES < 1_000_000


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
CHANGES = st.dictionaries(st.sampled_from(sorted(Command.model_fields)) | st.text(), ANY_JSON, max_size=4)


@given(st.binary())
def test_any_bytes_are_refused_without_a_fault(value: bytes) -> None:
    assert _refused(value).detail


@given(CHANGES)
@example({"command_id": "\ud83d"})
@example({"order": {"kind": "undo", "event_id": None, "source_id": "t1", "cascade": True}})
def test_any_change_of_a_command_leaves_a_command_or_a_refusal(changes: dict[str, Any]) -> None:
    result = parse_command(_bytes(**changes), position=POSITION)
    if isinstance(result, Refusal):
        assert result.source_id
    else:
        assert Command.from_bytes(result.to_bytes()) == result


TURN: dict[str, Any] = {
    "turn_id": "t1",
    "scope": {"user_id": "nadia"},
    "messages": [{"role": "user", "content": 'Send {"kind": "command"}.'}],
    "occurred_at": "2026-04-11T18:02:00+01:00",
}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (json.dumps(COMMAND).encode(), "command"),
        (json.dumps(COMMAND, indent=2).encode(), "command"),
        (b'{"kind": "command"}', "command"),
        (b'{"kind": "command", "number": ' + b"9" * 5000 + b"}", "command"),
        (json.dumps(TURN).encode(), "turn"),
        (json.dumps(TURN | {"kind": "turn"}).encode(), "turn"),
        (json.dumps(TURN | {"metadata": {"kind": "command"}}).encode(), "turn"),
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
    parsed = parse_record(value, position=POSITION)
    assert parsed.kind == kind


def test_a_record_without_a_kind_is_a_turn() -> None:
    assert isinstance(parse_record(json.dumps(TURN).encode(), position=POSITION), Turn)
    without = json.dumps({name: value for name, value in COMMAND.items() if name != "kind"}).encode()
    refusal = parse_record(without, position=POSITION)
    assert isinstance(refusal, Refusal)
    assert (refusal.kind, refusal.reason) == ("turn", "invalid_record")
    assert refusal.detail.endswith('; this looks like a command: add "kind": "command"')
    stray = parse_record(json.dumps(TURN | {"order": 66}).encode(), position=POSITION)
    assert isinstance(stray, Refusal)
    assert "looks like a command" not in stray.detail


def test_the_limit_of_turns_does_not_hold_for_commands() -> None:
    large = _bytes(actor="x" * 5000)
    assert isinstance(parse_record(large, position=POSITION, max_turn_bytes=1024), Command)
    turn = parse_record(json.dumps(TURN | {"speaker": "x" * 5000}).encode(), position=POSITION, max_turn_bytes=1024)
    assert isinstance(turn, Refusal)
    assert (turn.kind, turn.reason) == ("turn", "oversize")


@given(st.binary() | st.builds(_bytes) | ANY_JSON.map(lambda value: json.dumps({"kind": value}).encode()))
def test_the_kind_is_the_same_for_whoever_asks(value: bytes) -> None:
    assert parse_record(value, position=POSITION).kind == source_kind(value)


def test_only_a_promotion_has_the_id_of_one() -> None:
    refusal = _refused(_bytes(command_id="promote/t7"))
    assert (refusal.reason, refusal.source_id, refusal.scope) == ("invalid_command", POSITION, None)
    assert refusal.detail.startswith("command_id is 'promote/t7': ids that begin with 'promote/'")
    order = {"kind": "promote", "source": {"user_id": "nadia", "app_id": "diary", "run_id": "r1"}}
    assert isinstance(parse_command(_bytes(command_id="promote/t7", order=order), position=POSITION), Command)
