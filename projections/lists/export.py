"""All facts of a scope as JSON lines, with as much memory for a million as for a thousand."""

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Final

import orjson
from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row

from mnemolog.projections.queries.facts import listing_query
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters.model import Filter

EXPORT_BATCH: Final = 1000
"""How many facts are in memory at a time."""


async def exported_lines(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, wanted: Filter, *, all_versions: bool, at: datetime
) -> AsyncGenerator[list[bytes]]:
    """What `facts` of the same arguments lists, each fact a line of JSON with its end; all as of one moment."""
    query, parameters = listing_query(scope, wanted, all_versions=all_versions)
    given = {**parameters, **scope.parameters, "at": at, "limit": None}
    async with conn.transaction(), conn.cursor("exported_facts", row_factory=class_row(Fact)) as cursor:
        await cursor.execute(query, given)
        while found := await cursor.fetchmany(EXPORT_BATCH):
            yield [orjson.dumps(fact.to_dict(), option=orjson.OPT_APPEND_NEWLINE) for fact in found]
