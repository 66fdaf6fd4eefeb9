"""decode(encode(record)) == record, for every turn, command and commit that can be made."""

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from mnemolog.schemas.base import MAX_DEPTH, Identifier, Json, Metadata, Timestamp, Versioned
from mnemolog.schemas.command import Command, CommandPayload, Feedback, Promote, Resolve, SplitEntity, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.filters import GivenFilter, parse_filter
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides, Turn
from mnemolog.schemas.vector import Vector
from tests.support.naive_filters import FILTERS
from tests.support.paths import ROOT

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXTS = st.text(CHARACTERS, max_size=40)
IDENTIFIERS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="/*"), min_size=1, max_size=20
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)  # noqa: DTZ001 - the strategy adds zones
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-(2.0**62), 2.0**62) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SCOPES = st.builds(Scope, tenant=IDENTIFIERS, user_id=IDENTIFIERS, run_id=st.none() | IDENTIFIERS) | st.builds(
    Scope, agent_id=IDENTIFIERS, app_id=st.none() | IDENTIFIERS
)
IDS = st.lists(st.uuids(), min_size=1, max_size=3, unique=True).map(tuple)
WORDS = TEXTS.filter(str.strip)


def _promotions(scope: st.SearchStrategy[Scope]) -> st.SearchStrategy[Promote]:
    selections: list[dict[str, st.SearchStrategy[Any]]] = [
        {},
        {"source_id": IDENTIFIERS},
        {"fact_ids": IDS},
        {"filters": FILTERS.map(parse_filter)},
    ]
    return st.one_of(*(st.builds(Promote, source=scope, **selection) for selection in selections))


def _commands() -> st.SearchStrategy[Command]:
    """A promotion is from another scope of the same owner."""
    order = of_type(CommandPayload).filter(lambda one: not isinstance(one, Promote))

    def promoting(scope: Scope) -> st.SearchStrategy[Command]:
        runs = IDENTIFIERS.map(lambda run: scope.model_copy(update={"run_id": run})).filter(lambda run: run != scope)
        return of_model(Command, scope=st.just(scope), order=_promotions(runs))

    return of_model(Command, order=order) | SCOPES.flatmap(promoting)


def _overrides(thresholds: list[float]) -> st.SearchStrategy[Overrides]:
    ending, conflict, duplicate = map(st.just, thresholds)
    return of_model(Overrides, ending=ending, conflict=conflict, duplicate=duplicate)


UNDO_TARGETS: Final[list[dict[str, Any]]] = [{"event_id": st.uuids()}, {"source_id": IDENTIFIERS}]
PERIODS = st.tuples(TIMES, TIMES).filter(lambda times: times[0] != times[1]).map(sorted)
THRESHOLDS = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)
PLAIN: Final[dict[Any, st.SearchStrategy[Any]]] = {
    NoneType: st.none(),
    bool: st.booleans(),
    UUID: st.uuids(),
    Decimal: st.decimals(0, 10**6, places=4),
    Vector: st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=8).map(lambda one: Vector.from_values("m", one)),
    # Models with rules across their fields.
    Scope: SCOPES,
    Promote: _promotions(SCOPES),
    Overrides: THRESHOLDS.flatmap(_overrides),
    Feedback: st.builds(Feedback, shown=IDS, used=IDS, query=st.none() | WORDS),
    Resolve: st.builds(Resolve, fact_id=st.uuids(), action=st.just("merge"), text=WORDS),
    SplitEntity: st.builds(SplitEntity, entity_id=st.uuids(), name=WORDS, fact_ids=IDS),
    Undo: st.one_of(*(st.builds(Undo, cascade=st.booleans(), **one) for one in UNDO_TARGETS))
    | PERIODS.map(lambda times: Undo(model="m", since=times[0], until=times[1])),
}
NAMED: Final[list[tuple[Any, st.SearchStrategy[Any]]]] = [
    (Identifier, IDENTIFIERS),
    (Timestamp, TIMES),
    (Json, JSON_VALUES),
    (Metadata, st.dictionaries(TEXTS, JSON_VALUES, max_size=3)),
    (GivenFilter, FILTERS.map(parse_filter)),
]
BOUNDS: Final = ("ge", "gt", "le", "min_length", "max_length", "pattern")
Bounds = dict[str, Any]


def _bounds(declared: Iterable[object]) -> Bounds:
    return {name: getattr(one, name) for one in declared for name in BOUNDS if hasattr(one, name)}


def _texts(bounds: Bounds) -> st.SearchStrategy[str]:
    pattern, most = bounds.get("pattern", ""), min(bounds.get("max_length", 40), 40)
    if pattern.startswith("^"):
        return st.from_regex(pattern, fullmatch=True, alphabet=CHARACTERS).filter(lambda one: len(one) <= most)
    texts = st.text(CHARACTERS, min_size=bounds.get("min_length", 0), max_size=most)
    return texts.filter(re.compile(pattern).search) if pattern else texts


NUMBERS_AND_TEXTS: Final[dict[Any, Callable[[Bounds], st.SearchStrategy[Any]]]] = {
    int: lambda bounds: st.integers(bounds.get("ge", 0), bounds.get("le", 2**53)),
    float: lambda bounds: st.floats(
        bounds.get("ge", bounds.get("gt", -1)), bounds.get("le", 1e9), exclude_min="gt" in bounds
    ),
    str: _texts,
}


def _either(args: tuple[Any, ...], bounds: Bounds) -> st.SearchStrategy[Any]:
    return st.one_of(*(of_type(one, bounds) for one in args))


COMPOSED: Final[dict[Any, Callable[[tuple[Any, ...], Bounds], st.SearchStrategy[Any]]]] = {
    Literal: lambda args, _: st.sampled_from(args),
    Union: _either,
    UnionType: _either,
    tuple: lambda args, bounds: st.lists(of_type(args[0]), min_size=bounds.get("min_length", 0), max_size=2).map(tuple),
    Annotated: lambda args, bounds: of_type(
        args[0], bounds | _bounds(one for field in args[1:] if isinstance(field, FieldInfo) for one in field.metadata)
    ),
}


def of_type(hint: Any, bounds: Bounds | None = None) -> st.SearchStrategy[Any]:
    """Values of a type that records have, within the bounds that it and its field declare."""
    named = next((strategy for alias, strategy in NAMED if alias == hint), PLAIN.get(hint))
    if named is not None:
        return named
    if composed := COMPOSED.get(get_origin(hint)):
        return composed(get_args(hint), bounds or {})
    scalar = NUMBERS_AND_TEXTS.get(hint)
    return scalar(bounds or {}) if scalar else of_model(hint)


def of_model(model: Any, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = model.__pydantic_fields__
    hints = {name: hint for name, hint in get_type_hints(model, include_extras=True).items() if name in fields}
    return st.builds(
        model, **{name: of_type(hint, _bounds(fields[name].metadata)) for name, hint in hints.items()} | given
    )


RECORDS = [(Turn, of_model(Turn)), (Command, _commands()), (Commit, of_model(Commit))]


@pytest.mark.parametrize(("model", "records"), RECORDS, ids=["turn", "command", "commit"])
@given(drawn=st.data())
def test_a_record_comes_back_from_the_wire_unchanged(
    model: type[Turn | Command | Commit], records: st.SearchStrategy[Any], drawn: st.DataObject
) -> None:
    record = drawn.draw(records)
    data = record.to_bytes()
    assert model.from_bytes(data) == record
    assert model.from_bytes(data).to_bytes() == data
    _validator(model).validate(json.loads(data))


@cache
def _validator(model: type[Versioned]) -> jsonschema.Draft202012Validator:
    path = ROOT / "schemas/json" / f"{model.__name__.lower()}.v{model.VERSION}.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_bytes()))


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
        ({"metadata": {"a": ["\ud83d"]}}, "surrogate"),
        ({"metadata": {"a": 2**63}}, "beyond 64 bits"),
        ({"metadata": {"a": -1e19}}, "beyond 64 bits"),
        ({"metadata": {"a": {"b": datetime(2026, 4, 11, tzinfo=UTC)}}}, "a datetime, which is not a JSON value"),
        ({"metadata": {"a": ("b",)}}, "a tuple, which is not a JSON value"),
        ({"metadata": {"a": {1: "b"}}}, "a name that is not text"),
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
