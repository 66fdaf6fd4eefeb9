"""Known facts by their ids, with all that a command or a timer has to know of them before it may touch them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.schemas.facts import ExtractedFact, FactState
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import ClosedValue, DueExpiry, PendingCase, ScopeFacts, StoredFact

_SQL: Final = queries("stored_facts")
_STATEMENT_COLUMNS: Final = (
    *("text", "excerpt", "search_text", "key", "value", "category", "importance_category", "importance", "certainty"),
    *("subject", "event_time", "valid_until", "single_valued"),
)
STATE_COLUMNS: Final = tuple(FactState.model_fields)
"""The columns of everything of a fact that events can change, in their order."""

MAX_CLOSED_VALUES: Final = 100
"""How many values that have ended are looked up at once, the first to end first: the next newer one is among them."""
_CLOSED_VALUE_FIELDS: Final = ("fact_id", "key", "subject", "event_time", "true_from", "true_to", "said_at")


class FactStore:
    """Reads by id; each call is one round trip and waits while Postgres is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, StoredFact]:
        """Those of `fact_ids` that there are, whatever their scope and status."""
        rows = await self._rows("facts", {"fact_ids": list(fact_ids)}) if fact_ids else []
        return {row[0]: _stored_fact(row) for row in rows}

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, PendingCase]:
        """The open cases among `fact_ids`; what is not pending has none."""
        rows = await self._rows("pending_cases", {"fact_ids": list(fact_ids)}) if fact_ids else []
        return {
            fact_id: PendingCase(
                fact_id=fact_id,
                targets=tuple(targets),
                action=action,
                ended_at=ended_at,
                needs_human=needs_human,
                said_at=said_at,
            )
            for fact_id, targets, action, ended_at, needs_human, said_at in rows
        }

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        """Per fact since when it has been true, and every version before it, all the way back; the oldest first."""
        rows = await self._rows("version_starts", {"fact_ids": list(fact_ids)}) if fact_ids else []
        return {fact_id: tuple(since) for fact_id, since in rows}

    async def closed_values(self, scope: Scope, keys: Sequence[str], *, after: datetime) -> tuple[ClosedValue, ...]:
        """What these keys held in exactly `scope` until after `after`; the first `MAX_CLOSED_VALUES` that ended."""
        parameters = {**scope.columns, "keys": list(keys), "after": after, "limit": MAX_CLOSED_VALUES}
        rows = await self._rows("closed_values", parameters) if keys else []
        return tuple(ClosedValue(**dict(zip(_CLOSED_VALUE_FIELDS, row, strict=True))) for row in rows)

    async def conflicting_fact_ids(self, fact_id: UUID) -> tuple[UUID, ...]:
        """What an unresolved fact was weighed against when it was added beside it, the most similar first."""
        return tuple(row[0] for row in await self._rows("conflict_of", {"fact_id": fact_id}))

    async def scope_facts(self, scope: Scope, *, key: str | None, category: str | None, limit: int) -> ScopeFacts:
        """The active and pending facts of exactly `scope`, or those of a key or category; at most `limit` of them."""
        rows = await self._rows("in_scope", {**scope.columns, "key": key, "category": category, "limit": limit})
        return ScopeFacts(total=rows[0][0] if rows else 0, fact_ids=tuple(fact_id for _, fact_id in rows))

    async def due_expiries(self, now: datetime, *, after: DueExpiry | None, limit: int) -> list[DueExpiry]:
        """The next `limit` facts after `after` that are held although their end has passed by `now`."""
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

    async def _rows(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        return await retry_while_unavailable(partial(self._fetch, name, parameters), name=name)

    async def _fetch(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async with self._pool.connection() as connection:
            return await (await connection.execute(_SQL[name], parameters, binary=True)).fetchall()


def _stored_fact(row: tuple[Any, ...]) -> StoredFact:
    fact_id, tenant, user_id, agent_id, app_id, run_id, true_from, speaker, authority, *rest = row
    return StoredFact(
        fact_id=fact_id,
        scope=Scope.from_columns((tenant, user_id, agent_id, app_id, run_id)),
        fact=ExtractedFact(**dict(zip(_STATEMENT_COLUMNS, rest[: len(_STATEMENT_COLUMNS)], strict=True))),
        true_from=true_from,
        speaker=speaker,
        authority=authority,
        state=FactState(**dict(zip(STATE_COLUMNS, rest[len(_STATEMENT_COLUMNS) :], strict=True))),
    )
