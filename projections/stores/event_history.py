"""What events did to facts, as it is in the tables: all that taking them back has to know."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import STATE_COLUMNS, FactStore
from mnemolog.schemas.command import Undo
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import EventHistory, FormerState, LoggedEvent, OriginalDecision

_SQL: Final = queries("event_history")


class EventHistoryStore:
    """Reads the past of facts; each call waits while Postgres is away."""

    def __init__(self, pool: Pool, facts: FactStore) -> None:
        self._pool = pool
        self._facts = facts

    async def undo_targets(self, scope: Scope, undo: Undo, *, limit: int) -> list[LoggedEvent]:
        """The events of exactly `scope` that an undo aims at, in the log's order; at most `limit` of them.

        Those that are taken back already are among them, unless it aims at a model or a prompt version.
        """
        parameters = {
            **scope.columns,
            "owner": scope.owner,
            **undo.model_dump(exclude={"kind", "cascade"}),
            "limit": limit,
        }
        return await self.events([row[0] for row in await self._rows(_target_query(undo), parameters)])

    async def history_of(self, scope: Scope, fact_ids: Sequence[UUID]) -> EventHistory:
        """Everything that became of these facts of `scope`."""
        asked = {**scope.columns, "fact_ids": list(fact_ids)}
        touching = [row[0] for row in await self._rows("events_touching", asked)]
        former: dict[UUID, list[FormerState]] = {}
        for fact_id, event_id, *standing in await self._rows("former_states", asked):
            state = FormerState(event_id=event_id, state=FactState(**dict(zip(STATE_COLUMNS, standing, strict=True))))
            former.setdefault(fact_id, []).append(state)
        return EventHistory(
            facts=await self._facts.facts(fact_ids), former_states=former, events=await self.events(touching)
        )

    async def events(self, event_ids: Sequence[UUID]) -> list[LoggedEvent]:
        """These events, in the log's order."""
        rows = await self._rows("events", {"event_ids": list(event_ids)}) if event_ids else []
        return [_logged_event(row) for row in rows]

    async def _rows(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        return await retry_while_unavailable(partial(self._fetch, name, parameters), name=name)

    async def _fetch(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async with self._pool.connection() as connection:
            return await (await connection.execute(_SQL[name], parameters, binary=True)).fetchall()


def _target_query(undo: Undo) -> str:
    if undo.event_id is not None:
        return "by_event"
    return "by_source" if undo.source_id is not None else "by_model"


def _logged_event(row: tuple[Any, ...]) -> LoggedEvent:
    event_id, event, partition, offset, ordinal, source_id, occurred_at, said, brought, changed, named, *rest = row
    root_id, root_event, root_partition, root_offset, root_ordinal, turns_on, latest = rest
    return LoggedEvent(
        event_id=event_id,
        event=event,
        position=(partition, offset, ordinal),
        source_id=source_id,
        occurred_at=occurred_at,
        original=OriginalDecision(
            event_id=root_id, event=root_event, position=(root_partition, root_offset, root_ordinal)
        ),
        enables=turns_on,
        latest_id=latest,
        statement_text=said,
        new_fact_id=brought,
        changed_fact_ids=frozenset(changed),
        named_fact_ids=frozenset(named),
    )
