"""decode(encode(record)) == record, for every turn and commit that can be made."""

import json
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.base import MAX_DEPTH
from mnemolog.schemas.command import (
    Command,
    CommandPayload,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    EndSession,
    Expire,
    Feedback,
    Import,
    ImportedFact,
    Promote,
    Reject,
    Resolve,
    SetPolicy,
    Undo,
    Update,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import EVENT_CLASSES, Event, MemoryEvent
from mnemolog.schemas.facts import FactState, MovedEnd, NewFact, PromotedFrom, Reversal, Statement
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.policy import LimitHit, Limits, Policy
from mnemolog.schemas.provenance import Decision, Origin, Provenance, Step, WeighedCandidate
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Overrides, Turn
from mnemolog.schemas.vector import Vector
from tests.support.naive_filters import FILTERS
from tests.support.paths import ROOT

JSON_FOLDER = ROOT / "schemas" / "json"
VERSIONS = {"turn": Turn.VERSION, "command": Command.VERSION, "commit": Commit.VERSION}
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXTS = st.text(CHARACTERS, max_size=40)
IDENTIFIERS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="/*"), min_size=1, max_size=20
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)  # noqa: DTZ001 - the strategy adds zones
FRACTIONS = st.floats(0, 1)
OPTIONS = st.none() | st.booleans()
COUNTS = st.integers(0, 2**53)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
METADATA = st.dictionaries(TEXTS, JSON_VALUES, max_size=3)
SCOPES = st.builds(
    Scope,
    tenant=IDENTIFIERS,
    user_id=IDENTIFIERS,
    agent_id=st.none() | IDENTIFIERS,
    app_id=st.none() | IDENTIFIERS,
    run_id=st.none() | IDENTIFIERS,
)
MESSAGES = st.builds(
    Message, role=st.sampled_from(["system", "user", "assistant", "tool"]), content=TEXTS, name=st.none() | TEXTS
)
TURNS = st.builds(
    Turn,
    turn_id=IDENTIFIERS,
    scope=SCOPES,
    messages=st.lists(MESSAGES, min_size=1, max_size=3).map(tuple),
    occurred_at=TIMES,
    infer=st.booleans(),
    metadata=METADATA,
    valid_until=st.none() | TIMES,
    speaker=st.none() | TEXTS,
    recalled=st.lists(TEXTS, max_size=2).map(tuple),
    overrides=st.builds(
        Overrides, duplicate=st.none() | st.floats(0.9, 1), conflict=st.none() | st.floats(0.5, 0.9), add_only=OPTIONS
    ),
)
VECTORS = st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=8).map(
    lambda values: Vector.from_values("m", values)
)
DECISIONS = st.builds(
    Decision,
    by=st.sampled_from(["threshold", "hash", "model", "fallback"]),
    reason=TEXTS,
    candidates=st.lists(st.builds(WeighedCandidate, fact_id=st.uuids(), similarity=st.floats(-1, 1)), max_size=2).map(
        tuple
    ),
)
FACTS = st.builds(
    NewFact,
    text=TEXTS,
    excerpt=TEXTS,
    search_text=TEXTS,
    key=st.none() | st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True),
    value=st.none() | TEXTS,
    importance=FRACTIONS,
    certainty=st.sampled_from(["explicit", "strong", "weak", "speculation"]),
    event_time=st.none() | TIMES,
    fact_id=st.uuids(),
    confidence=FRACTIONS,
    true_from=TIMES,
    vector=VECTORS,
)
STATEMENTS = st.builds(Statement, text=TEXTS, excerpt=TEXTS)
# A blank text is refused. Hypothesis reports that as a HypothesisWarning about the long repr of the strategy.
EMBEDDED_TEXTS = st.text(CHARACTERS, min_size=1, max_size=40).filter(str.strip)
STATUSES = st.sampled_from(["active", "superseded", "pending_confirmation", "undone"])
FACT_STATES = st.builds(
    FactState,
    status=STATUSES,
    confidence=FRACTIONS,
    mention_count=COUNTS,
    **{
        name: st.none() | TIMES
        for name in ("last_confirmed_at", "true_to", "closed_at", "believed_from", "believed_to")
    },
    superseded_by=st.none() | st.uuids(),
    unresolved=st.booleans(),
    true_from=TIMES,
)
POLICIES = st.builds(
    Policy,
    add_only=OPTIONS,
    min_importance=st.none() | FRACTIONS,
    limits=st.builds(Limits, active_facts=st.none() | COUNTS, tokens_per_day=st.none() | COUNTS),
    note=st.none() | TEXTS,
)
LEVELS = st.sampled_from(["tenant", "scope"])
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "event_id": st.uuids(),
    "ordinal": COUNTS,
    "decision": DECISIONS,
    "fact": FACTS,
    "unresolved": st.booleans(),
    "of_ended": st.booleans(),
    "target": st.uuids(),
    "targets": st.lists(st.uuids(), min_size=1, max_size=3).map(tuple),
    "statement": STATEMENTS,
    "ended_at": TIMES,
    "ended_by": st.none() | st.uuids(),
    "guard": st.sampled_from(["high_risk", "high_confidence", "human_word"]),
    "needs_human": st.booleans(),
    "confirmed": st.none() | st.uuids(),
    "undone": st.uuids(),
    "undone_event": TEXTS,
    "reinstated": st.none() | st.uuids(),
    "reversals": st.lists(
        st.builds(Reversal, fact_id=st.uuids(), now=STATUSES, before=st.none() | FACT_STATES), max_size=2
    ).map(tuple),
    "moved_ends": st.lists(
        st.builds(
            MovedEnd,
            fact_id=st.uuids(),
            ender=st.uuids(),
            ended_at=st.none() | TIMES,
            ended_by=st.none() | st.uuids(),
            unresolved=st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    "promoted_from": st.none() | st.builds(PromotedFrom, fact_id=st.uuids(), source_id=IDENTIFIERS, said_at=TIMES),
    "true_from": st.none() | TIMES,
    "level": LEVELS,
    "policy": POLICIES,
}


def _parts(event: type[Event]) -> dict[str, st.SearchStrategy[Any]]:
    parts = dict(PARTS)
    if "action" in event.model_fields:
        parts["action"] = st.sampled_from(get_args(event.model_fields["action"].annotation))
    return {name: parts[name] for name in event.model_fields if name != "event"}


def _events() -> st.SearchStrategy[MemoryEvent]:
    return st.one_of(*(st.builds(event, **_parts(event)) for event in EVENT_CLASSES.values()))


def _command_payloads() -> st.SearchStrategy[CommandPayload]:
    fact_ids = st.lists(st.uuids(), min_size=1, max_size=3).map(tuple)
    unique_ids = st.lists(st.uuids(), min_size=1, max_size=3, unique=True).map(tuple)
    edits = st.builds(Edit, fact_id=st.uuids(), text=EMBEDDED_TEXTS, value=st.none() | TEXTS)
    imported = st.builds(ImportedFact, text=EMBEDDED_TEXTS, true_from=st.none() | TIMES, speaker=st.none() | TEXTS)
    return st.one_of(
        st.builds(Update, edits=st.lists(edits, min_size=1, max_size=2).map(tuple)),
        *(st.builds(kind, fact_ids=fact_ids) for kind in (Delete, Confirm, Reject, Expire)),
        st.builds(Correct, edit=edits, ended_at=st.none() | TIMES),
        st.builds(Resolve, fact_id=st.uuids(), action=st.just("merge"), text=EMBEDDED_TEXTS),
        st.builds(Undo, event_id=st.uuids(), cascade=st.booleans()),
        st.builds(Feedback, shown=unique_ids, used=unique_ids, query=st.none() | EMBEDDED_TEXTS),
        st.builds(EndSession),
        st.builds(SetPolicy, level=LEVELS, policy=POLICIES),
        st.builds(Import, fact=imported, metadata=METADATA),
        st.builds(DeleteAll, key=st.none() | st.just("pet"), filters=st.none() | FILTERS.map(parse_filter)),
    )


def _promotions(scope: st.SearchStrategy[Scope]) -> st.SearchStrategy[Promote]:
    selections = st.fixed_dictionaries({"source_id": st.none() | IDENTIFIERS}) | st.fixed_dictionaries(
        {"fact_ids": st.lists(st.uuids(), max_size=3).map(tuple)}
    )
    return st.builds(lambda source, selected: Promote(source=source, **selected), scope, selections)


def _promote_commands(scope: Scope) -> st.SearchStrategy[Command]:
    sources = IDENTIFIERS.map(lambda run: scope.model_copy(update={"run_id": run})).filter(lambda run: run != scope)
    return st.builds(Command, command_id=IDENTIFIERS, scope=st.just(scope), issued_at=TIMES, order=_promotions(sources))


COMMANDS = st.builds(
    Command, command_id=IDENTIFIERS, scope=SCOPES, issued_at=TIMES, order=_command_payloads(), actor=st.none() | TEXTS
) | SCOPES.flatmap(_promote_commands)


COMMITS = st.builds(
    Commit,
    source_id=IDENTIFIERS,
    scope=st.none() | SCOPES,
    origin=st.builds(Origin, topic=TEXTS, partition=COUNTS, offset=COUNTS),
    occurred_at=TIMES,
    published_at=TIMES,
    decided_at=TIMES,
    outcome=st.sampled_from(["facts", "no_facts", "rejected", "failed", "done"]),
    attempt=st.integers(1, 3),
    limit=st.none() | st.builds(LimitHit, name=st.just("active_facts"), level=LEVELS, count=COUNTS, limit=COUNTS),
    order=st.none() | _command_payloads() | _promotions(SCOPES),
    reason=st.none() | TEXTS,
    detail=TEXTS,
    events=st.lists(_events(), max_size=3).map(tuple),
    provenance=st.builds(
        Provenance,
        steps=st.lists(
            st.builds(Step, stage=st.sampled_from(["extract", "resolve"]), milliseconds=st.floats(0, 1e9)), max_size=2
        ).map(tuple),
    ),
    based_on=COUNTS,
    metadata=METADATA,
)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((JSON_FOLDER / f"{name}.v{VERSIONS[name]}.json").read_bytes()))


@pytest.mark.parametrize("records", [TURNS, COMMANDS, COMMITS], ids=["turn", "command", "commit"])
@given(drawn=st.data())
def test_a_record_comes_back_from_the_wire_unchanged(
    records: st.SearchStrategy[Turn | Command | Commit], drawn: st.DataObject
) -> None:
    record = drawn.draw(records)
    data, model = record.to_bytes(), type(record)
    assert model.from_bytes(data) == record
    assert model.from_bytes(data).to_bytes() == data
    _validator(model.__name__.lower()).validate(json.loads(data))


def _turn(**fields: Any) -> Turn:
    defaults: dict[str, Any] = {
        "turn_id": "t1",
        "scope": {"user_id": "nadia"},
        "messages": [{"role": "user", "content": "Hello."}],
        "occurred_at": datetime(2026, 4, 11, tzinfo=UTC),
    }
    return Turn(**defaults | fields)


def _nested(depth: int) -> dict[str, Any]:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return {"value": value}


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"metadata": {"a": "b\x00"}}, r"U\+0000"),
        ({"metadata": {"a\x00": "b"}}, r"U\+0000"),
        ({"metadata": {"a": ["\ud83d"]}}, "surrogate"),
        ({"metadata": {"a": float("nan")}}, "not finite"),
        ({"metadata": {"a": [float("inf")]}}, "not finite"),
        ({"metadata": {"a": 2**63}}, "beyond 64 bits"),
        ({"metadata": {"a": {"b": datetime(2026, 4, 11, tzinfo=UTC)}}}, "a datetime, which is not a JSON value"),
        ({"metadata": {"a": ("b",)}}, "a tuple, which is not a JSON value"),
        ({"metadata": _nested(MAX_DEPTH)}, "nested deeper"),
        ({"messages": [{"role": "user", "content": "a\x00b"}]}, "content"),
        ({"messages": [{"role": "user", "content": "half an emoji: \ud83d"}]}, "content"),
        ({"occurred_at": datetime(1, 6, 1, tzinfo=UTC)}, "years 2 to 9998"),
        ({"occurred_at": datetime(9999, 6, 1, tzinfo=UTC)}, "years 2 to 9998"),
        ({"occurred_at": datetime(2026, 4, 11)}, "timezone"),  # noqa: DTZ001 - the fault that is tested
    ],
)
def test_what_would_not_come_back_or_cannot_be_stored_is_refused(fields: dict[str, Any], advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        _turn(**fields)


def test_metadata_may_be_as_deep_as_the_limit() -> None:
    turn = _turn(metadata=_nested(MAX_DEPTH - 1))
    assert Turn.from_bytes(turn.to_bytes()) == turn
