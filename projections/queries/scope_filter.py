"""Which facts a query may see: those of one scope, or of more where the caller says so.

And the SQL that all queries for facts share.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, LiteralString, Self

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composable, Composed, Identifier, Placeholder

from mnemolog.projections.database import Query
from mnemolog.projections.errors import QueryError, check_unicode
from mnemolog.projections.filter_condition import filter_condition, status_at
from mnemolog.projections.sql import queries
from mnemolog.schemas.command import DeleteAll, Undo
from mnemolog.schemas.filters import EVERYTHING, Equality, Filter
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

ANY_VALUE: Final = "*"
"""Any value of an id that is set."""
ANY_OR_NONE: Final = "**"
"""Any value of an id, and rows that do not set it."""
WILDCARDS: Final = frozenset({ANY_VALUE, ANY_OR_NONE})


def read_query(
    file: str,
    name: str,
    *,
    scope: Mapping[str, str] = MappingProxyType({}),
    row: str = "f",
    state: str = "f",
    at: LiteralString = "now()",
    parts: Mapping[str, str | None] = MappingProxyType({}),
) -> SQL:
    """A query with the columns of `Fact` at `{fact}`, and the condition of a filter's parameters on `row` at `{scope}`.

    `{conflicting}` is a fact `t` as JSON, `{decided}` the condition that a model or a prompt version decided.

    What events can change of a fact is read from `state`: the facts themselves, or their former states. `at` is an SQL
    expression: what begins after it is marked as beginning later. `parts` are further places with the names of the
    queries of the same file that stand there, None for no condition. `{filter}` is left for `with_filter`.
    """
    wildcards = tuple(wildcards_of(scope).items())
    return _composed(file=file, name=name, wildcards=wildcards, row=row, state=state, at=at, parts=tuple(parts.items()))


def wildcards_of(scope: Mapping[str, str]) -> dict[str, str]:
    """The wildcards of a scope's parameters, the empty string for any other value."""
    return {name: value if value in WILDCARDS else "" for name, value in scope.items()}


def scope_condition(wildcards: Mapping[str, str], row: str = "f") -> Composable:
    """The condition that `row` is of a scope, which the parameters named as the ids give, but for its wildcards."""
    # For a question about one scope Postgres makes one plan, and keeps it, where it does not see the values.
    this_value = SQL("{id} = {value}" if any(wildcards.values()) else "{id} = (SELECT {value}::text)")
    conditions = [
        (SQL("{id} <> ''") if wildcard else this_value).format(id=Identifier(row, column), value=Placeholder(column))
        for column, wildcard in wildcards.items()
        if wildcard != ANY_OR_NONE
    ]
    return SQL(" AND ").join(conditions) if conditions else SQL("true")


def fact_columns(*, state: str = "f", at: LiteralString) -> Composable:
    """The columns of `Fact`; `state` and `at` as `read_query` has them. What has ended by then is shown as expired."""
    disputed = SQL("f.disputed" if state == "f" else "false")
    status = status_at(SQL(at), state=state)
    return queries("facts")["fact_columns"].format(
        ids=Identifier("f"), state=Identifier(state), status=status, disputed=disputed, at=SQL(at)
    )


@cache
def _composed(
    *,
    file: str,
    name: str,
    wildcards: tuple[tuple[str, str], ...],
    row: str,
    state: str,
    at: LiteralString,
    parts: tuple[tuple[str, str | None], ...],
) -> SQL:
    """One statement for each combination of wildcards: a condition that depends on values could use no index."""
    scope = scope_condition(dict(wildcards), row)
    query = queries(file)[name].format(
        fact=fact_columns(state=state, at=at),
        scope=scope,
        filter=SQL("{filter}"),
        **{place: queries(file)[part].format(scope=scope) if part else SQL("true") for place, part in parts},
        conflicting=queries("pending")["conflicting_fact"],
        decided=queries("event_history")["decided"],
    )
    return SQL(query.as_string())  # composed once, not at each call


def with_filter(query: SQL, wanted: Filter) -> tuple[Composed, dict[str, Any]]:
    """The query with the condition of a filter at `{filter}`, and the parameters of the filter."""
    condition, parameters = filter_condition(wanted)
    return query.format(filter=condition), parameters


_IDS: Final = tuple(name for name in SCOPE_FIELDS if name != "tenant")
_OWNERS: Final = frozenset({"user_id", "agent_id"})
SCOPE_PAGE: Final = 500
"""How many scopes of a command for many are in memory at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeFilter:
    """A condition on each id of a scope: None finds rows that do not set it, "*" any value that is set, "**" both.

    The tenant is never a wildcard. Raises `QueryError` for a filter that can find nothing.
    """

    tenant: str = "default"
    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    def __post_init__(self) -> None:
        values = [getattr(self, name) for name in SCOPE_FIELDS]
        if any(value == "" or "\x00" in (value or "") for value in values):
            raise QueryError("an id in the scope is empty or holds U+0000: leave it out to mean 'not set'")
        for value in values:
            check_unicode(value or "")
        if self.tenant in WILDCARDS:
            raise QueryError(f"a query sees one tenant: name it instead of {self.tenant!r}")
        if self.user_id is None and self.agent_id is None:
            raise QueryError("name a user_id or an agent_id ('*' for any): every fact has at least one of them")

    @classmethod
    def of_scope(cls, scope: Scope) -> Self:
        return cls(**{name: getattr(scope, name) for name in SCOPE_FIELDS})

    @classmethod
    def of_filter(cls, tenant: str, wanted: Filter) -> Self:
        """The widest scopes whose facts a filter alone, without any other argument, can let through.

        Where the filter names ids outside of OR and NOT, those that it names nowhere are not set. Where it names them
        in OR alone, the others may be any or none. Raises `QueryError` where it does not say whose facts: every part of
        an OR has to name a user or an agent, unless that is named beside it.
        """
        if not _names_owner(wanted):
            raise QueryError(
                "the filter does not say whose facts: name a user_id or an agent_id ('*' for any) outside of NOT, and "
                "in an OR in each of its parts"
            )
        beside, named = _ids_of(_joined_parts(wanted)), _ids_of(_all_parts(wanted))
        unnamed = dict.fromkeys(set(_IDS) - named.keys()) if beside else {}
        pinned = _ids_of(_joined_parts(wanted, through_single_or=True))
        # As a query names an id: the value, None for 'not set', or a wildcard that lets through what else is asked.
        asked = {
            name: ANY_OR_NONE
            if one.eq is None and one.exists is None
            else one.eq or (ANY_VALUE if one.exists else None)
            for name, one in pinned.items()
        }
        return cls(tenant=tenant, **{**dict.fromkeys(_IDS, ANY_OR_NONE), **unnamed, **asked})

    @property
    def is_exact(self) -> bool:
        return WILDCARDS.isdisjoint(self.parameters.values())

    @property
    def wildcards(self) -> dict[str, str]:
        """The wildcard of each id, the empty string where it is none."""
        return wildcards_of(self.parameters)

    @property
    def named(self) -> str:
        """The ids that are named, in words, but for the tenant and wildcards."""
        values = ((name, getattr(self, name)) for name in SCOPE_FIELDS if name != "tenant")
        return ", ".join(f"{name} {value!r}" for name, value in values if value and value not in WILDCARDS)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of a query: wildcards as they are, the empty string for 'not set'."""
        return {name: getattr(self, name) or "" for name in SCOPE_FIELDS}


def _joined_parts(wanted: Filter, *, through_single_or: bool = False) -> Iterator[Filter]:
    """The parts of a filter that all have to hold, it itself among them."""
    yield wanted
    single = wanted.OR if through_single_or and wanted.OR and len(wanted.OR) == 1 else ()
    for part in (*(wanted.AND or ()), *single):
        yield from _joined_parts(part, through_single_or=through_single_or)


def _all_parts(wanted: Filter) -> Iterator[Filter]:
    yield wanted
    for part in (*(wanted.AND or ()), *(wanted.OR or ()), *(wanted.NOT or ())):
        yield from _all_parts(part)


def _ids_of(parts: Iterable[Filter]) -> "dict[str, Equality[str]]":  # at run time it would make a model
    """The ids that are named in these parts themselves, each with the first condition on it."""
    found: dict[str, Equality[str]] = {}
    for part in parts:
        found |= {name: asked for name in _IDS if (asked := getattr(part, name)) is not None and name not in found}
    return found


def _names_owner(wanted: Filter) -> bool:
    return any(
        not _OWNERS.isdisjoint(part.model_fields_set) or (part.OR is not None and all(map(_names_owner, part.OR)))
        for part in _joined_parts(wanted)
    )


async def matching_scopes(
    conn: AsyncConnection[TupleRow], payload: DeleteAll | Undo, within: ScopeFilter
) -> AsyncGenerator[list[Scope]]:
    """The scopes of `within` with facts or turns to delete, or in which the model or prompt version to undo decided.

    They come in pages, all as of one moment, however many they are.
    """
    parameters: dict[str, Any] = {**payload.model_dump(exclude={"filters"}), **within.parameters}
    query: Query = read_query("scopes", "undo", scope=within.parameters, row="happened")
    if isinstance(payload, DeleteAll):
        deleted = read_query("scopes", "delete_all", scope=within.parameters, parts={"of_turns": "of_turns"})
        query, values = with_filter(deleted, payload.filters or EVERYTHING)
        parameters |= values | {"all": payload.filters is None}
    async with conn.transaction(), conn.cursor("matching_scopes") as cursor:
        await cursor.execute(query, parameters)
        while rows := await cursor.fetchmany(SCOPE_PAGE):
            yield [Scope.from_columns(row) for row in rows]
