"""Whose facts a query may see: one scope exactly, or wider where the caller says so."""

from dataclasses import dataclass
from typing import Final, Self

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.errors import QueryError, check_unicode
from mnemolog.projections.sql import queries
from mnemolog.schemas.command import DeleteAll, Undo
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

ANY_VALUE: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeFilter:
    """A condition on every dimension: None finds only rows that do not set it, "*" finds any value and none.

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
        if self.tenant == ANY_VALUE:
            raise QueryError("a query sees one tenant: name it instead of '*'")
        if self.user_id is None and self.agent_id is None:
            raise QueryError("name a user_id or an agent_id ('*' for any): every fact has at least one of them")

    @classmethod
    def of_scope(cls, scope: Scope) -> Self:
        """The rows of this one scope."""
        return cls(**{name: getattr(scope, name) for name in SCOPE_FIELDS})

    @property
    def is_exact(self) -> bool:
        return None not in self.parameters.values()

    @property
    def parameters(self) -> dict[str, str | None]:
        """The five parameters of a query: NULL for any value, the empty string for 'not set'."""
        given = {name: getattr(self, name) for name in SCOPE_FIELDS}
        return {name: None if value == ANY_VALUE else value or "" for name, value in given.items()}


async def matching_scopes(
    conn: AsyncConnection[TupleRow], payload: DeleteAll | Undo, within: ScopeFilter
) -> list[Scope]:
    """The scopes of `within` that hold facts to delete, or in which the model or prompt version to undo decided."""
    parameters = {**payload.model_dump(), **within.parameters}
    cursor = await conn.execute(queries("concerned")[payload.kind], parameters)
    return [Scope.from_columns(row) for row in await cursor.fetchall()]
