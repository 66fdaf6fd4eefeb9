"""Whose facts a query may see: one scope exactly, or wider where the caller says so."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import Query
from mnemolog.projections.queries.errors import QueryError, check_unicode
from mnemolog.projections.queries.fact_rows import (
    ANY_OR_NONE,
    ANY_VALUE,
    WILDCARDS,
    read_query,
    wildcards_of,
    with_filter,
)
from mnemolog.schemas.command import DeleteAll, Undo
from mnemolog.schemas.filters.model import EVERYTHING, Equality, Filter
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

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
        """The rows of this one scope."""
        return cls(**{name: getattr(scope, name) for name in SCOPE_FIELDS})

    @classmethod
    def of_filter(cls, tenant: str, wanted: Filter) -> Self:
        """The widest scopes of which a filter alone, without any other argument, can let facts through.

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
        asked = {name: _asked_id(condition) for name, condition in pinned.items()}
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


def _ids_of(parts: Iterable[Filter]) -> dict[str, Equality[str]]:
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


def _asked_id(asked: Equality[str]) -> str | None:
    """As a query names an id: the value, None for 'not set', or a wildcard that lets through what else is asked."""
    if asked.eq is not None:
        return asked.eq
    if asked.exists is None:
        return ANY_OR_NONE
    return ANY_VALUE if asked.exists else None


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
