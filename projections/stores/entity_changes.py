"""Reads what commands about entities ask of the tables."""

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from psycopg.rows import dict_row

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.command import Undo
from mnemolog.schemas.entities.model import Alias
from mnemolog.schemas.entities.stored import LoggedChange, StoredEntity, StoredProposal
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope


class EntityChangeStore(Store):
    """Reads entities and what persons decided about them; each call is one round trip."""

    QUERIES: ClassVar = queries("entity_changes")

    async def entities(self, entity_ids: Sequence[UUID]) -> dict[UUID, StoredEntity]:
        """Those of `entity_ids` that there are, whatever their scope and status."""
        rows = await self._rows("entities_by_id", {"entity_ids": list(entity_ids)}, make=dict_row)
        found = {}
        for row in rows:
            scope = Scope.from_columns(row.pop(name) for name in SCOPE_FIELDS)
            aliases = tuple(Alias(**alias) for alias in row.pop("aliases"))
            found[row["entity_id"]] = StoredEntity(**row, scope=scope, aliases=aliases)
        return found

    async def facts_of_entity(self, entity_id: UUID, *, limit: int) -> tuple[int, list[UUID]]:
        """How many open facts name an entity, and the first `limit` of them."""
        rows = await self._rows("facts_of_entity", {"entity_id": entity_id, "limit": limit})
        return (rows[0][1] if rows else 0), [row[0] for row in rows]

    async def naming_facts(self, entity_id: UUID, fact_ids: Sequence[UUID]) -> list[UUID]:
        """Those of `fact_ids` that name an entity now."""
        return [
            row[0] for row in await self._rows("naming_facts", {"entity_id": entity_id, "fact_ids": list(fact_ids)})
        ]

    async def proposals(self, event_ids: Sequence[UUID]) -> list[StoredProposal]:
        """Those of `event_ids` that propose a merge, whatever their scope."""
        rows = await self._rows("proposals", {"event_ids": list(event_ids)}, make=dict_row)
        scopes = [Scope.from_columns(row.pop(name) for name in SCOPE_FIELDS) for row in rows]
        return [StoredProposal(**row, scope=scope) for row, scope in zip(rows, scopes, strict=True)]

    async def undo_targets(self, scope: Scope, undo: Undo) -> list[LoggedChange]:
        """The changes of exactly `scope` that an undo selects, in the log's order. A model decides summaries alone."""
        asked = {**scope.columns, "owner": scope.owner, **undo.model_dump(exclude={"kind", "cascade"})}
        rows = await self._rows("selected_changes", asked, make=dict_row)
        return [LoggedChange(**row | {"entity_ids": tuple(row["entity_ids"])}) for row in rows]
