"""The statements that make the schema `memory`: the client's own queries as functions, and views over the tables."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from psycopg.sql import SQL, Composable, Identifier

from mnemolog.projections.sql import queries

MEMORY_SCHEMA: Final = "memory"
_SCOPE_IDS: Final = ("tenant", "user_id", "agent_id", "app_id", "run_id")
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_SQL: Final = queries("memory")
_NOTHING: Final = SQL("")
_NOW: Final = SQL("now()")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuery:
    """A query of the client, as the body of a function.

    `parameters` are the expressions of its parameters, as far as they are not the function's own of the same names;
    `row`, `state` and `at` are what the columns and the condition of a scope are about; `parts` are further places with
    the names of the queries of the same file that stand there.
    """

    file: str
    name: str
    row: str = "f"
    state: str = "f"
    at: str = "now()"
    parts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def body_in(self, function: str) -> SQL:
        """The text with the parameters of `function`, or with their expressions."""
        text = queries(self.file)[self.name]
        if "{fact}" in text.as_string() or "{scope}" in text.as_string():
            text = SQL(
                text.format(
                    fact=_fact_columns(state=self.state, at=SQL(self._with_parameters(self.at, function))),
                    scope=SQL(" AND ").join(_id_condition(self.row, name, function) for name in _SCOPE_IDS),
                    **{place: queries(self.file)[part] for place, part in self.parts.items()},
                ).as_string()
            )
        return SQL(self._with_parameters(text.as_string(), function).rstrip(";"))

    def _with_parameters(self, text: str, function: str) -> str:
        def expression(found: re.Match[str]) -> str:
            return self.parameters.get(found[1], f"{function}.{found[1]}")

        return _PARAMETER.sub(expression, text).replace("%%", "%")


CLIENT_QUERIES: Final[Mapping[str, ClientQuery]] = MappingProxyType(
    {
        "facts_as_of": ClientQuery(
            file="facts", name="facts_as_of", state="s", at="%(true_at)s", parts={"known": "at_any_time"}
        ),
        "history": ClientQuery(file="history", name="versions", parameters={"fact_id": "history.fact"}),
        "changes_between": ClientQuery(file="history", name="changes", row="e"),
        "profile": ClientQuery(
            file="facts", name="profile", parameters={name: f"coalesce(profile.{name}, '')" for name in _SCOPE_IDS}
        ),
        "explain": ClientQuery(
            file="history", name="events", parameters={name: f"asked.{name}" for name in (*_SCOPE_IDS, "fact_ids")}
        ),
    }
)
"""The functions that answer as the client does, by the query that both have."""
_VIEWS_AND_HELPERS: Final = (
    *("check_scope", "check_given", "state_at", "fact_rows", "facts", "current_facts", "pending_rows", "pending"),
    *("event_rows", "events", "turn_rows", "turns"),
)


def statements() -> list[SQL]:
    """Make all views and functions, or bring them up to date; in this order."""
    helpers = [_composed(name) for name in _VIEWS_AND_HELPERS]
    functions = [_composed(name, query=query.body_in(name)) for name, query in CLIENT_QUERIES.items()]
    return [*helpers, *functions, _SQL["column_comments"]]


def digest() -> str:
    """SHA-256 of all statements."""
    return hashlib.sha256("\n".join(one.as_string() for one in statements()).encode()).hexdigest()


def _composed(name: str, query: SQL = _NOTHING) -> SQL:
    """The statements under a name of `memory.sql`; a text without places is taken as it is."""
    conflicting = queries("pending")["conflicting_fact"].as_string().replace("utc_text(", "mnemolog.utc_text(")
    places = {
        "fact": _fact_columns(ids="s"),
        "fact_types": _SQL["fact_types"],
        "conflicting": SQL(conflicting),
        "scope_parameters": _SQL["scope_parameters"],
        "settings": _SQL["settings"],
        "query": query,
    }
    text = _SQL[name]
    return (
        SQL(text.format(**places).as_string()) if any(f"{{{place}}}" in text.as_string() for place in places) else text
    )


def _fact_columns(*, ids: str = "f", state: str = "f", at: SQL = _NOW) -> Composable:
    return queries("facts")["fact_columns"].format(ids=Identifier(ids), state=Identifier(state), at=at)


def _id_condition(row: str, name: str, function: str) -> Composable:
    return _SQL["id_condition"].format(row=Identifier(row), id=Identifier(name), value=Identifier(function, name))
