"""Reads what summaries of entities are written from."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities.stored import SummaryFact, SummarySource


class SummaryStore(Store):
    """Reads the facts of entities; waits while Postgres is unavailable."""

    QUERIES: ClassVar = queries("summaries")

    async def summary_source(self, entity_id: UUID, *, at: datetime, limit: int) -> SummarySource:
        """What a summary of an entity may be written from at `at`: at most `limit` facts. Three round trips."""
        rows = await self._rows("facts_to_summarise", {"entity_id": entity_id, "at": at, "limit": limit})
        versions = await self._rows("versions", {"entity_id": entity_id})
        changed = await self.changed_facts([entity_id])
        return SummarySource(
            facts=tuple(SummaryFact(fact_id=row[0], text=row[1], true_from=row[2]) for row in rows),
            total=rows[0][3] if rows else 0,
            versions=versions[0][0],
            changed=changed[entity_id],
        )

    async def changed_facts(self, entity_ids: Sequence[UUID]) -> dict[UUID, int]:
        """How many facts of each entity have changed since its summary; without one all that are active."""
        return dict(await self._rows("changed_facts", {"entity_ids": list(entity_ids)}))

    async def named_by(self, fact_ids: Sequence[UUID]) -> dict[UUID, int]:
        """How many of these facts name each entity; one that none names is not there."""
        return dict(await self._rows("named_by_facts", {"fact_ids": list(fact_ids)}))
