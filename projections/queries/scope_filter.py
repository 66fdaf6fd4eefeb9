"""Whose facts a query may see: one scope exactly, or wider where the caller says so."""

from dataclasses import dataclass
from typing import Self

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.errors import QueryError, check_unicode
from mnemolog.projections.queries.fact_rows import WILDCARDS, read_query, wildcards_of
from mnemolog.schemas.command import DeleteAll, Undo
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope


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


async def matching_scopes(
    conn: AsyncConnection[TupleRow], payload: DeleteAll | Undo, within: ScopeFilter
) -> list[Scope]:
    """The scopes of `within` that hold facts to delete, or in which the model or prompt version to undo decided."""
    parameters = {**payload.model_dump(), **within.parameters}
    query = read_query(
        "scopes", payload.kind, scope=within.parameters, row="f" if payload.kind == "delete_all" else "happened"
    )
    cursor = await conn.execute(query, parameters)
    return [Scope.from_columns(row) for row in await cursor.fetchall()]
