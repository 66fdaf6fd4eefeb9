"""Which exact scopes a wide order concerns: a command has one scope, and touches nothing beyond it."""

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, dict_row

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.sql import queries
from mnemolog.schemas.command import DeleteAll, Undo
from mnemolog.schemas.scope import Scope


async def matching_scopes(
    conn: AsyncConnection[TupleRow], payload: DeleteAll | Undo, within: ScopeFilter
) -> list[Scope]:
    """The scopes of `within` that hold facts to delete, or in which the model or prompt version to undo decided."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("concerned")[payload.kind], {**payload.model_dump(), **within.parameters})
        return [_scope(row) for row in await cursor.fetchall()]


def _scope(row: dict[str, Any]) -> Scope:
    return Scope.model_validate({dimension: value or None for dimension, value in row.items()})
