"""What events did to facts, as it is in the tables: all that taking them back has to know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import STATE_COLUMNS, FactStore, StoredFact
from mnemolog.schemas.command import Undo
from mnemolog.schemas.events import FactState
from mnemolog.schemas.scope import Scope

_SQL: Final = queries("past")
EventPosition = tuple[int, int, int]
"""Partition, offset and ordinal: events of one owner compare by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalDecision:
    """The decision that an event made, or that an undo took out of effect or put back into it."""

    event_id: UUID
    event: str
    position: EventPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """An event and the facts that it brought, changed and names; an undo names what its root does as well.

    `enables` says that its root was in effect after it, and `latest_id` is the last event that said so or otherwise.
    `statement_text` is the text that it brought along.
    """

    event_id: UUID
    event: str
    position: EventPosition
    source_id: str
    occurred_at: datetime
    original: OriginalDecision
    enables: bool
    latest_id: UUID
    statement_text: str | None = None
    new_fact_id: UUID | None = None
    changed_fact_ids: frozenset[UUID] = frozenset()
    named_fact_ids: frozenset[UUID] = frozenset()

    @property
    def is_latest(self) -> bool:
        """Whether nothing has turned its root on or off since."""
        return self.latest_id == self.event_id

    @property
    def affected_fact_ids(self) -> frozenset[UUID]:
        """The facts that would stand otherwise without this event."""
        return self.changed_fact_ids if self.new_fact_id is None else self.changed_fact_ids | {self.new_fact_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerState:
    """How a fact stood before an event changed it."""

    event_id: UUID
    state: FactState


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHistory:
    """Facts as they stand, how each stood before, and all events that name them; everything in the log's order."""

    facts: Mapping[UUID, StoredFact]
    former_states: Mapping[UUID, Sequence[FormerState]]
    events: Sequence[LoggedEvent]


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
        touching = [row[0] for row in await self._rows("touching", asked)]
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
    return "by_source" if undo.source_id is not None else "by_author"


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
