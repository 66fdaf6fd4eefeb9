"""The client's queries, as the bodies of functions for SQL users."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from psycopg.sql import SQL, Composable, Identifier

from mnemolog.projections.sql import queries
from mnemolog.schemas.scope import SCOPE_FIELDS

NOW: Final = SQL("now()")
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuery:
    """A query of the client, as the body of a function or a part of it.

    `parameters` are the expressions of its parameters, as far as they are not the function's own of the same names;
    `row`, `state` and `at` are what the columns and the condition of a scope are about; `parts` are further places with
    the names of the queries of the same file that stand there, empty for nothing and None for no condition.
    """

    file: str
    name: str
    row: str = "f"
    state: str = "f"
    at: str = "now()"
    parts: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def body_in(self, function: str) -> SQL:
        """The text with the parameters of `function`, or with their expressions."""
        text = queries(self.file)[self.name]
        if any(place in text.as_string() for place in ("{fact}", "{scope}")):
            scope = scope_condition(function, self.row)
            parts = {
                place: queries(self.file)[part].format(scope=scope, filter=SQL("true"))
                if part
                else SQL("true" if part is None else "")
                for place, part in self.parts.items()
            }
            at = SQL(self._with_parameters(self.at, function))
            text = SQL(text.format(fact=fact_columns(state=self.state, at=at), scope=scope, **parts).as_string())
        return SQL(self._with_parameters(text.as_string(), function).rstrip(";"))

    def _with_parameters(self, text: str, function: str) -> str:
        filled = _PARAMETER.sub(lambda place: self.parameters.get(place[1], f"{function}.{place[1]}"), text)
        return filled.replace("%%", "%")


def fact_columns(*, ids: str = "f", state: str = "f", at: SQL = NOW) -> Composable:
    """The columns of a fact: the scope from `ids`, what events can change from `state`.

    The status is the one that the tables have, whose indexes then serve; the column `state` has it with the times.
    """
    disputed = SQL("f.disputed" if state == "f" else "false")
    return queries("facts")["fact_columns"].format(
        ids=Identifier(ids), state=Identifier(state), status=Identifier(state, "status"), disputed=disputed, at=at
    )


def scope_condition(function: str, row: str = "f") -> Composable:
    """The condition that `row` is of the scope that the parameters of a function name, wildcards among them."""
    condition = queries("memory")["id_condition"]
    return SQL(" AND ").join(
        condition.format(row=Identifier(row), id=Identifier(name), value=Identifier(function, name))
        for name in SCOPE_FIELDS
    )


def _exact(function: str) -> dict[str, str]:
    """The ids of a scope as the tables have them."""
    return {name: f"coalesce({function}.{name}, '')" for name in SCOPE_FIELDS}


_WEIGHTS: Final = {"vector": 0.45, "text": 0.45, "names": 0.2, "recency": 0.1, "times": 0.1}
SEARCH_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "fusion": "weighted",
        "rrf_k": 10,
        **{f"{name}_weight": weight / sum(_WEIGHTS.values()) for name, weight in _WEIGHTS.items()},
        "neighbours_weight": 0.6,
        "importance_weight": 0.05,
        "confidence_weight": 0.05,
        "half_life_days": 365.0,
        "min_candidates": 400,
        "candidates_per_hit": 8,
        "max_words": 256,
        "field_weights": "{1.0,1.0,1.0,0.5}",
        "per_matter": 3,
    }
)
"""The client's options of a search that functions do not have; a test compares them."""
_SEARCH_PARAMETERS: Final = MappingProxyType(
    {
        **_exact("search"),
        **{name: f"'{value}'" if isinstance(value, str) else str(value) for name, value in SEARCH_DEFAULTS.items()},
        "text": "question",
        "at": "now()",
        "dimensions": "vector_dims(search.vector)",
        "candidates": "greatest({min_candidates}, {candidates_per_hit} * search.top_k)".format(**SEARCH_DEFAULTS),
        "ranked": "2 * search.top_k",
        "indexed": "NULL",
        "period_from": "NULL::timestamptz",
        "period_to": "NULL::timestamptz",
        "only_period": "false",
    }
)
_UNFILTERED: Final = {
    "route": "any_route",
    "state": "",
    "ranks": "no_ranks",
    "conversation": "conversation",
    "neighbours": "neighbours",
    "shown": "hits_alone",
    "left_out": "nothing_left_out",
    "messages": "no_messages",
}

CLIENT_QUERIES: Final[Mapping[str, Mapping[str, ClientQuery]]] = MappingProxyType(
    {
        "facts_as_of": {
            "query": ClientQuery(
                file="facts",
                name="facts_as_of",
                state="s",
                at="%(true_at)s",
                parts={"state_at": "state_at", "known": None},
            )
        },
        "changes_between": {"query": ClientQuery(file="history", name="changes", row="e")},
        "profile": {"query": ClientQuery(file="profiles", name="profile", parameters=_exact("profile"))},
        "search": {
            "query": ClientQuery(
                file="search",
                name="hybrid",
                parts={"live": "scanned", "whole": "all_facts", **_UNFILTERED},
                parameters=_SEARCH_PARAMETERS,
            ),
            "query_by_indexes": ClientQuery(
                file="search",
                name="hybrid",
                parts={
                    **_UNFILTERED,
                    "live": "from_indexes",
                    "whole": "indexed_facts",
                    "conversation": "",
                    "neighbours": "no_neighbours",
                },
                parameters=_SEARCH_PARAMETERS,
            ),
            "is_indexed": ClientQuery(
                file="search", name="by_indexes_or_not", parameters={**_SEARCH_PARAMETERS, "indexed": "true"}
            ),
        },
        "context": {
            "query": ClientQuery(
                file="profiles",
                name="lasting_facts",
                parameters={
                    **_exact("context"),
                    "at": "now()",
                    "categories": "ARRAY['hard_preference', 'health', 'task_context', 'soft_preference']",
                    "events": "ARRAY['specific_event', 'routine_activity', 'conversational']",
                },
            )
        },
    }
)
"""The queries in the functions that answer as the client does, by function and place."""
