"""Reads known facts by id or scope, with all that decisions, commands and the timer need of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg.rows import class_row, dict_row

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.facts import ExtractedFact, FactState
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.stored import ClosedValue, DueExpiry, EndedFact, PendingCase, ScopeFacts, StoredFact

MAX_CLOSED_VALUES: Final = 100
"""How many values that have ended are looked up at once, the first to end first: the next newer one is among them."""


class FactStore(Store):
    """Reads of known facts; each call is one round trip."""

    QUERIES = queries("stored_facts")

    async def facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, StoredFact]:
        """Those of `fact_ids` that there are, whatever their scope and status."""
        rows = await self._rows("facts", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        return {row["fact_id"]: _stored_fact(row) for row in rows}

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, PendingCase]:
        """The open cases among `fact_ids`; what is not pending has none."""
        rows = await self._rows("pending_cases", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        lists = ("targets", "successors")
        return {row["fact_id"]: PendingCase(**row | {name: tuple(row[name]) for name in lists}) for row in rows}

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """The open cases of `scope` that challenge one of these facts, each with all open facts that it challenges."""
        rows = await self._rows("challenges", {**scope.columns, "fact_ids": list(fact_ids)}) if fact_ids else []
        return {pending_id: tuple(challenged) for pending_id, challenged in rows}

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        """Per fact since when it has been true, and every version before it, all the way back; the oldest first."""
        rows = await self._rows("version_starts", {"fact_ids": list(fact_ids)}) if fact_ids else []
        return {fact_id: tuple(since) for fact_id, since in rows}

    async def closed_values(self, scope: Scope, keys: Sequence[str], *, after: datetime) -> tuple[ClosedValue, ...]:
        """What these keys held in exactly `scope` until after `after`; the first `MAX_CLOSED_VALUES` that ended."""
        parameters = {**scope.columns, "keys": list(keys), "after": after, "limit": MAX_CLOSED_VALUES}
        return tuple(await self._rows("closed_values", parameters, make=class_row(ClosedValue)) if keys else ())

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> tuple[EndedFact, ...]:
        """The facts that were true until one of `fact_ids`, or what was merged into it, ended them; oldest first."""
        rows = await self._rows("ended_facts", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        lists = ("rival_ids", "related_ids")
        return tuple(EndedFact(**row | {name: tuple(row[name]) for name in lists}) for row in rows)

    async def values_before(self, fact_id: UUID, since: datetime) -> tuple[UUID, ...]:
        """The other facts of its key that held after `since` and began before it did, the oldest first."""
        return tuple(row[0] for row in await self._rows("values_before", {"fact_id": fact_id, "since": since}))

    async def conflicting_fact_ids(self, fact_id: UUID) -> tuple[UUID, ...]:
        """The facts that an unresolved fact was put beside, the likeliest first."""
        return tuple(row[0] for row in await self._rows("conflict_of", {"fact_id": fact_id}))

    async def scope_facts(self, scope: Scope, *, key: str | None, category: str | None, limit: int) -> ScopeFacts:
        """The active and pending facts of exactly `scope`, or those of a key or category; at most `limit` of them."""
        rows = await self._rows("in_scope", {**scope.columns, "key": key, "category": category, "limit": limit})
        return ScopeFacts(total=rows[0][0] if rows else 0, fact_ids=tuple(fact_id for _, fact_id in rows))

    async def due_expiries(self, now: datetime, *, after: DueExpiry | None, limit: int) -> list[DueExpiry]:
        """The next `limit` facts after `after` that are active although their end has passed by `now`."""
        parameters = {
            "now": now,
            "after_end": after.ends_at if after else None,
            "after_fact": after.fact_id if after else None,
            "limit": limit,
        }
        rows = await self._rows("due_expiries", parameters)
        return [
            DueExpiry(fact_id=fact_id, ends_at=ends_at, scope=Scope.from_columns(columns))
            for fact_id, *columns, ends_at in rows
        ]


def _stored_fact(row: Mapping[str, Any]) -> StoredFact:
    return StoredFact(
        fact_id=row["fact_id"],
        scope=Scope.from_columns(row[name] for name in SCOPE_FIELDS),
        fact=ExtractedFact(**{name: row[name] for name in ExtractedFact.model_fields if name in row}),
        true_from=row["true_from"],
        speaker=row["speaker"],
        authority=row["authority"],
        state=FactState(**{name: row[name] for name in FactState.model_fields}),
    )
