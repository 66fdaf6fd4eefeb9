"""Facts and filters at random, and a naive reading of whose facts a filter asks for."""

import random
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import added, commit, day, fact_id_at, replaced

IDS_OF_SCOPES: Final = ("user_id", "agent_id", "app_id", "run_id")
WORDS: Final = ("Bern", "bern", "äpfel", "ÄPFEL", "100%", "a_b", "", "%", "Straße")
JSON: Final = (1, 1.5, 2, True, False, "Bern", "bern", "1", "ZÜRICH")


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
            "more_categories": tuple(chance.sample(["finance", "pets"], chance.randrange(3))),
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
            at=day(number % 30) + timedelta(minutes=517 * number % 1440),
            metadata=metadata,
        )
        yield first
        if number % 3 == 0:
            news = replaced(f"New {number}.", fact_id_at(first), ended_at=day(40))
            yield commit(f"u{number}", news, scope=scope, at=day(40), metadata=metadata)


def whose(wanted: Mapping[str, Any], fact: Fact) -> bool:
    """Whether a filter alone asks for the scope of a fact, as the words of the documentation say it."""
    is_isolated = any(_named_beside(wanted, name) for name in IDS_OF_SCOPES)
    unnamed = [name for name in IDS_OF_SCOPES if f"'{name}'" not in repr(_names(wanted))]
    return not is_isolated or all(getattr(fact, name) is None for name in unnamed)


def says_whose(wanted: Mapping[str, Any]) -> bool:
    """Whether a filter says whose facts it asks for."""
    if any(_named_beside(wanted, name) for name in ("user_id", "agent_id")):
        return True
    lists = [wanted.get("OR", []), *(part.get("OR", []) for part in _and_parts(wanted))]
    return any(parts and all(says_whose(part) for part in parts) for parts in lists)


def _and_parts(wanted: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    inner = list(wanted.get("AND", []))
    return inner + [deeper for part in inner for deeper in _and_parts(part)]


def _named_beside(wanted: Mapping[str, Any], name: str) -> bool:
    return any(name in part for part in (wanted, *_and_parts(wanted)))


def _names(wanted: Any) -> list[Any]:
    """Every name in a filter, but for those inside the conditions of a field."""
    if isinstance(wanted, list):
        return [_names(part) for part in wanted]
    return [_names(value) if name in {"AND", "OR", "NOT"} else name for name, value in wanted.items()]


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
    "categories": _operators(st.sampled_from(["identity", "health", "pets", "none"]), "contains"),
    "state": _operators(st.sampled_from(["active", "superseded", "expired"])),
    **dict.fromkeys(("importance", "confidence"), _operators(st.sampled_from([0.1, 0.4, 0.5, 0.9, 1, 0]), *ORDER)),
    **dict.fromkeys(
        ("created_at", "updated_at", "event_time", "valid_until", "true_from", "true_to"), _operators(TIMES, *ORDER)
    ),
    "structured_attributes": st.fixed_dictionaries(
        {},
        optional={
            "day_of_week": _operators(st.sampled_from(["monday", "saturday", "sunday"])),
            "is_weekend": _operators(st.booleans()),
            **dict.fromkeys(
                ("year", "month", "day", "hour", "minute", "quarter", "week_of_year"),
                _operators(st.sampled_from([1, 3, 9, 10, 20, 30, 2026]), *ORDER),
            ),
        },
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
_ASKED: Final = {"user_id": ["alice", "bob"], "agent_id": ["bot"], "app_id": ["ios"], "run_id": ["r1", "r2"]}
FILTERS_OF_IDS = st.recursive(
    st.fixed_dictionaries(
        {}, optional={name: st.sampled_from([*ids, "*", None, {"in": ids}]) for name, ids in _ASKED.items()}
    ).filter(bool),
    branches,
    max_leaves=5,
)
"""About ids alone."""


def in_scope(scope: ScopeFilter, fact: Fact) -> bool:
    """One value, any that is set, or both."""
    return all(
        asked == "**" or (value is not None if asked == "*" else value == (asked or None))
        for name, asked in scope.parameters.items()
        for value in [getattr(fact, name)]
    )


def holds_at(fact: Fact, at: datetime) -> bool:
    ends = [one for one in (fact.valid_until, fact.true_to) if one is not None]
    return fact.status == "active" and all(end > at for end in ends)
