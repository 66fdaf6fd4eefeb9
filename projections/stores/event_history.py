"""Event history of facts: the input of an undo."""

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from psycopg.rows import dict_row

from mnemolog.projections.db.pools import Pool
from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import FactStore
from mnemolog.schemas.command import Undo
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import EventHistory, FormerState, LoggedEvent, OriginalDecision


class EventHistoryStore(Store):
    """Reads the event history of facts."""

    QUERIES: ClassVar = {
        **queries("event_history"),
        "by_model": queries("event_history")["by_model"].format(decided=queries("event_history")["decided"]),
    }

    def __init__(self, pool: Pool, facts: FactStore) -> None:
        super().__init__(pool)
        self._facts = facts

    async def undo_targets(self, scope: Scope, undo: Undo, *, limit: int) -> list[LoggedEvent]:
        """The events of exactly `scope` that an undo selects, in the log's order; at most `limit` of them.

        Those that are undone already are among them, unless it selects a model or a prompt version.
        """
        parameters = {
            **scope.columns,
            "owner": scope.owner,
            **undo.model_dump(exclude={"kind", "cascade"}),
            "limit": limit,
        }
        return await self.events([row[0] for row in await self._rows(_target_query(undo), parameters)])

    async def history_of(self, scope: Scope, fact_ids: Sequence[UUID]) -> EventHistory:
        """These facts of `scope` with all events and states they have had."""
        asked = {**scope.columns, "fact_ids": list(fact_ids)}
        touching = [row[0] for row in await self._rows("events_touching", asked)]
        former: dict[UUID, list[FormerState]] = {}
        for row in await self._rows("former_states", asked, make=dict_row):
            states = former.setdefault(row.pop("fact_id"), [])
            states.append(FormerState(event_id=row.pop("event_id"), state=FactState(**row)))
        return EventHistory(
            facts=await self._facts.facts(fact_ids), former_states=former, events=await self.events(touching)
        )

    async def events(self, event_ids: Sequence[UUID]) -> list[LoggedEvent]:
        """These events, in the log's order."""
        rows = await self._rows("events", {"event_ids": list(event_ids)}, make=dict_row) if event_ids else []
        return [_logged_event(row) for row in rows]


def _target_query(undo: Undo) -> str:
    if undo.event_id is not None:
        return "by_event"
    return "by_source" if undo.source_id is not None else "by_model"


def _logged_event(row: dict[str, Any]) -> LoggedEvent:
    original = OriginalDecision(
        event_id=row.pop("original_id"),
        event=row.pop("original_event"),
        position=tuple(row.pop("original_position")),
    )
    fact_ids = {name: frozenset(row[name]) for name in ("changed_fact_ids", "named_fact_ids")}
    return LoggedEvent(**row | fact_ids | {"position": tuple(row["position"])}, original=original)
