"""Filters of facts in a real Postgres, against a naive reading of the same filters."""

import asyncio
import random
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.filters.model import parse_filter
from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import added, commit, day, fact_id_at, replaced
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

ANYBODY: Final = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
NOW: Final = day(60)
WORDS: Final = ("Bern", "bern", "äpfel", "ÄPFEL", "100%", "a_b", "", "%", "Straße")
JSON: Final = (1, 1.5, 2, True, False, "Bern", "bern", "1", "ZÜRICH")
COLUMNS: Final = {
    "id": "fact_id",
    "memory": "text",
    "categories": "category",
    "state": "status",
    "entity": "subject",
} | {
    "created_at": "recorded_at",
    "updated_at": "state_since",
}


def test_what_is_no_filter_is_refused_with_its_place() -> None:
    for given_filter, place in [
        ({"nope": 1}, "nope is not a known field"),
        ({"OR": [{"user_id": "a"}, {"importance": {"gte": "x"}}]}, r"OR\.1\.importance\.gte"),
        ({"user_id": {"regex": "a"}}, r"user_id\.regex is not a known field"),
        ({"importance": float("nan")}, "finite"),
        ({"created_at": {"gt": "2026"}}, "created_at.gt"),
        ({"created_at": {"gt": "-5"}}, "created_at.gt"),
        ({"created_at": {"gt": 1700000000.5}}, "created_at.gt"),
        ({"key": {}}, "no operator"),
        ({"key": {"eq": None}}, "compares with null"),
        ({"NOT": None}, "NOT is null"),
        ({"OR": [{"metadata": None}]}, "metadata is null"),
        ({"OR": []}, "OR must have at least 1 item"),
        ({"state": "gone"}, "state.eq must be"),
        ({"memory": "a\x00b"}, "U[+]0000"),
        ([], "an object"),
    ]:
        with pytest.raises(ValueError, match=place):
            parse_filter(given_filter)


def test_a_filter_of_any_size_is_refused_in_bounded_time() -> None:
    deep: dict[str, Any] = {"user_id": "a"}
    for _ in range(100_000):
        deep = {"NOT": deep}
    with pytest.raises(ValueError, match="deeper than 8 levels"):
        parse_filter(deep)
    with pytest.raises(ValueError, match="more than 200 conditions"):
        parse_filter({"OR": [{"user_id": str(number)} for number in range(100_000)]})
    with pytest.raises(ValueError, match="at most 1000 items"):
        parse_filter({"user_id": {"in": [str(number) for number in range(2000)]}})


def nested(levels: int, *, as_list: bool) -> dict[str, Any]:
    wanted: dict[str, Any] = {"metadata": {"a": {"eq": 1}}}
    for _ in range(levels):
        wanted = {"NOT": [wanted] if as_list else wanted}
    return wanted


@pytest.mark.parametrize("as_list", [True, False])
def test_as_many_levels_and_conditions_as_the_page_says_are_allowed(as_list: bool) -> None:
    parse_filter(nested(8, as_list=as_list))
    with pytest.raises(ValueError, match="deeper than 8 levels"):
        parse_filter(nested(9, as_list=as_list))
    parse_filter({"OR": [{"importance": {"gte": number / 200}} for number in range(200)]})
    with pytest.raises(ValueError, match="more than 200 conditions"):
        parse_filter({"OR": [{"importance": {"gte": number / 201}} for number in range(201)]})


def sample_commits() -> Iterator[Commit]:
    """Facts of several scopes in all states, some with few fields set."""
    chance = random.Random(1)
    for number in range(80):
        scope = Scope(
            user_id=chance.choice(["alice", "bob", None]),
            agent_id="bot",
            app_id=chance.choice(["ios", None]),
            run_id=chance.choice(["r1", "r2", None]),
        )
        fields: dict[str, Any] = {
            "key": chance.choice(["home_city", "pet", None]),
            "value": chance.choice(["Bern", "Rome", None]),
            "category": chance.choice(["identity", "health", "other"]),
            "importance": chance.choice([0.1, 0.5, 0.9]),
            "confidence": chance.choice([0.4, 0.95]),
            "subject": chance.choice(["Ana", None]),
            "speaker": chance.choice(["Ana", "Tom", None]),
            "event_time": chance.choice([day(1), day(5), None]),
            "valid_until": chance.choice([day(50), day(90), None]),
        }
        metadata = {
            "source": chance.choice(JSON),
            "tags": chance.choice([[1, "Bern"], ["bern", True], [], "Bern", None]),
            "address": chance.choice([{"city": "Bern", "zip": chance.choice(JSON)}, "Bern", {}]),
        }
        first = commit(
            f"t{number}",
            added(f"{chance.choice(WORDS)} {number} {chance.choice(WORDS)}", **fields),
            scope=scope,
            at=day(number % 30),
            metadata=metadata,
        )
        yield first
        if number % 3 == 0:
            news = replaced(f"New {number}.", fact_id_at(first), ended_at=day(40))
            yield commit(f"u{number}", news, scope=scope, at=day(40), metadata=metadata)


def naive(wanted: Mapping[str, Any], fact: Fact) -> bool:
    """Whether a fact passes, as the words of the documentation say it."""
    return all(_naive_part(name, asked, fact) for name, asked in wanted.items())


def _naive_part(name: str, asked: Any, fact: Fact) -> bool:
    match name:
        case "AND":
            return all(naive(part, fact) for part in asked)
        case "OR":
            return any(naive(part, fact) for part in asked)
        case "NOT":
            return not any(naive(part, fact) for part in asked)
        case "metadata":
            return all(_holds(_inside(fact.metadata, path), one, is_json=True) for path, one in asked.items())
        case _:
            return _holds(getattr(fact, COLUMNS.get(name, name)), asked, is_list=name == "categories")


def _inside(metadata: Any, path: str) -> Any:
    for name in path.split("."):
        metadata = metadata.get(name) if isinstance(metadata, dict) else None
    return metadata


def _holds(value: Any, asked: Any, *, is_json: bool = False, is_list: bool = False) -> bool:
    if asked == "*" or asked is None:
        return (value is None) == (asked is None)
    operators = asked if isinstance(asked, dict) else {"eq": asked}
    return all(_compares(value, name, given_value, is_json, is_list) for name, given_value in operators.items())


def _compares(value: Any, name: str, other: Any, is_json: bool, is_list: bool) -> bool:
    same = _same_json if is_json else lambda one, two: one == two
    among = other if name in {"in", "nin"} else [other]
    match name:
        case "exists":
            holds = (value is not None) == other
        case "eq" | "in":
            holds = value is not None and any(same(value, one) for one in among)
        case "ne" | "nin":
            holds = value is None or not any(same(value, one) for one in among)
        case "contains" | "icontains":
            holds = _contains(value, name, [other] if is_list else other)
        case _:
            holds = value is not None and (not is_json or _same_kind(value, other)) and _ordered(value, name, other)
    return bool(holds)


def _contains(value: Any, name: str, other: Any) -> bool:
    if isinstance(other, list):
        return value in other
    if isinstance(value, list):
        return name == "contains" and any(_same_json(one, other) for one in value)
    if not isinstance(value, str) or not isinstance(other, str):
        return False
    return other in value if name == "contains" else other.lower() in value.lower()


def _ordered(value: Any, name: str, other: Any) -> bool:
    return bool({"gt": value > other, "gte": value >= other, "lt": value < other, "lte": value <= other}[name])


def _same_json(one: Any, two: Any) -> bool:
    return isinstance(one, bool) == isinstance(two, bool) and bool(one == two)


def _same_kind(one: Any, two: Any) -> bool:
    return (isinstance(one, str) and isinstance(two, str)) or (
        all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, two))
    )


def _operators(values: st.SearchStrategy[Any], *names: str) -> st.SearchStrategy[Any]:
    equality = {
        "eq": values,
        "ne": values,
        "in": st.lists(values, max_size=3),
        "nin": st.lists(values, max_size=3),
        "exists": st.booleans(),
    }
    one = st.one_of(
        [st.fixed_dictionaries({name: how}) for name, how in (equality | dict.fromkeys(names, values)).items()]
    )
    two = st.fixed_dictionaries({}, optional=equality | dict.fromkeys(names, values)).filter(bool)
    return st.one_of(values, st.just("*"), st.none(), one, two)


ORDER: Final = ("gt", "gte", "lt", "lte")
TEXTS = st.sampled_from(
    ["Bern", "bern", "Rome", "home_city", "pet", "Ana", "Tom", "äpfel", "zürich", "%", "_", "e", "N", ""]
)
PLAIN_JSON = st.sampled_from(JSON)
ORDERED_JSON = st.sampled_from([one for one in JSON if not isinstance(one, bool)])
TIMES = st.sampled_from([day(number) for number in (1, 5, 20, 29, 40, 50)])
IDS = st.sampled_from(["alice", "bob", "bot", "ios", "r1", "nobody"])
FIELDS: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    **dict.fromkeys(("user_id", "agent_id", "app_id", "run_id"), _operators(IDS)),
    **dict.fromkeys(("memory", "key", "value", "entity", "speaker"), _operators(TEXTS, "contains", "icontains")),
    "categories": _operators(st.sampled_from(["identity", "health", "none"]), "contains"),
    "state": _operators(st.sampled_from(["active", "superseded", "archived"])),
    **dict.fromkeys(("importance", "confidence"), _operators(st.sampled_from([0.1, 0.4, 0.5, 0.9, 1, 0]), *ORDER)),
    **dict.fromkeys(
        ("created_at", "updated_at", "event_time", "valid_until", "true_from", "true_to"), _operators(TIMES, *ORDER)
    ),
    "metadata": st.dictionaries(
        st.sampled_from(["source", "tags", "address", "address.city", "address.zip", "missing"]),
        st.one_of(
            _operators(PLAIN_JSON, "contains"),
            st.fixed_dictionaries({}, optional=dict.fromkeys(ORDER, ORDERED_JSON)).filter(bool),
            st.fixed_dictionaries({"icontains": TEXTS}),
        ),
        max_size=2,
    ),
}


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    """Of one field, or of some: of more, hardly a fact would meet all."""
    return {name: draw(FIELDS[name]) for name in draw(st.lists(st.sampled_from([*FIELDS]), min_size=1, max_size=3))}


@st.composite
def branches(draw: st.DrawFn, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(["AND", "OR", "NOT"]), min_size=1, max_size=2, unique=True))
    return {name: draw(st.lists(parts, min_size=1, max_size=3)) for name in names}


FILTERS = st.recursive(conditions(), branches, max_leaves=6)
SCOPES = st.sampled_from(
    [ANYBODY, ScopeFilter(user_id="alice", agent_id="bot"), ScopeFilter(agent_id="bot", run_id="*")]
)


async def test_a_filter_finds_what_a_naive_reading_of_it_finds(second_database: str) -> None:
    async with ProjectedDatabase.open(second_database) as db:
        await db.apply(*sample_commits())
        everything = await facts(db.conn, ANYBODY, all_versions=True, at=NOW)
        assert len({one.status for one in everything}) > 1
        loop = asyncio.get_running_loop()
        found = {True: 0, False: 0}

        @settings(max_examples=400, deadline=None, suppress_health_check=[*HealthCheck])
        @given(scope=SCOPES, wanted=FILTERS)
        def check(scope: ScopeFilter, wanted: dict[str, Any]) -> None:
            parsed = parse_filter(wanted)
            asked = facts(db.conn, scope, parsed, at=NOW)
            got = asyncio.run_coroutine_threadsafe(asked, loop).result(60)
            expected = [
                one.fact_id
                for one in everything
                if naive(wanted, one) and _in_scope(scope, one) and (parsed.asks_about_state or _holds_at(one, NOW))
            ]
            found[bool(expected)] += 1
            assert [one.fact_id for one in got] == expected

        await asyncio.to_thread(check)
    assert min(found.values()) > 50


def _in_scope(scope: ScopeFilter, fact: Fact) -> bool:
    """One value, any that is set, or both."""
    return all(
        asked == "**" or (value is not None if asked == "*" else value == (asked or None))
        for name, asked in scope.parameters.items()
        for value in [getattr(fact, name)]
    )


def _holds_at(fact: Fact, at: datetime) -> bool:
    ends = [one for one in (fact.valid_until, fact.true_to) if one is not None]
    return fact.status == "active" and all(end > at for end in ends)
