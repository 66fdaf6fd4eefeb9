"""Reads the facts of a scope that may be promoted into another one of the same owner."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from psycopg import AsyncConnection
from psycopg.rows import DictRow, TupleRow, dict_row
from psycopg.sql import SQL, Composed

from mnemolog.projections.db.store import Store
from mnemolog.projections.filters.condition import filter_condition
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import stored_fact
from mnemolog.schemas.command import Promote
from mnemolog.schemas.filters.model import EVERYTHING
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import PromotableFact, PromotableFacts
from mnemolog.schemas.vector import Vector


class PromotionStore(Store):
    """Looks up what a promote command selects; each call is one round trip."""

    QUERIES: ClassVar[Mapping[str, SQL | Composed]] = queries("stored_facts")

    async def promotable_facts(
        self, into: Scope, payload: Promote, *, at: datetime, min_importance: float, limit: int
    ) -> PromotableFacts:
        """The first `limit` of the selected facts, those that can be promoted `into` a scope first; and their counts.

        Named facts are found wherever they live, others in exactly the scope of the payload.
        """
        selected = self.QUERIES["promotable_ids" if payload.fact_ids else "promotable_scope"]
        condition, values = filter_condition(payload.filters or EVERYTHING)
        parameters = {
            **into.columns,
            **{f"from_{name}": value for name, value in payload.source.columns.items()},
            **values,
            "fact_ids": list(payload.fact_ids),
            "source_id": payload.source_id,
            "at": at,
            "min_importance": min_importance,
            "limit": limit,
        }

        async def fetch(connection: AsyncConnection[TupleRow]) -> list[DictRow]:
            query = queries("stored_facts")["promotable"].format(selected=selected, filter=condition)
            async with connection.cursor(binary=True, row_factory=dict_row) as cursor:
                return await (await cursor.execute(query, parameters)).fetchall()

        rows = await self._run("promotable", fetch)
        counts = {name: rows[0][name] if rows else 0 for name in ("free", "known", "total")}
        return PromotableFacts(facts=tuple(map(_promotable_fact, rows)), **counts)


def _promotable_fact(row: Mapping[str, Any]) -> PromotableFact:
    return PromotableFact(
        stored=stored_fact(row),
        vector=Vector.from_values(row["embedding_model"], row["embedding"].to_list()),
        source_id=row["source_id"],
        said_at=row["said_at"],
    )
