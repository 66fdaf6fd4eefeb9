"""What events did to facts, as it is in the tables: all that taking them back has to know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.known import STANDING, KnownFacts, StoredFact
from mnemolog.projections.pools import Pool, persistently
from mnemolog.projections.sql import queries
from mnemolog.schemas.command import Undo
from mnemolog.schemas.events import Standing
from mnemolog.schemas.scope import Scope

_SQL: Final = queries("past")
LogPlace = tuple[int, int, int]
"""Partition, offset and ordinal: events of one owner compare by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The decision that an event made, or that an undo took out of effect or put back into it."""

    event_id: UUID
    event: str
    place: LogPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvent:
    """An event and the facts that it brought, changed and names; an undo names what its root does as well.

    `turns_on` says that its root was in effect after it, and `latest` is the last event that said so or otherwise.
    `said` is the text that it brought along.
    """

    event_id: UUID
    event: str
    place: LogPlace
    source_id: str
    occurred_at: datetime
    root: Root
    turns_on: bool
    latest: UUID
    said: str | None = None
    brought: UUID | None = None
    changed: frozenset[UUID] = frozenset()
    named: frozenset[UUID] = frozenset()

    @property
    def holds(self) -> bool:
        """Whether nothing has turned its root on or off since."""
        return self.latest == self.event_id

    @property
    def facts(self) -> frozenset[UUID]:
        """The facts that would stand otherwise without this event."""
        return self.changed if self.brought is None else self.changed | {self.brought}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerState:
    """How a fact stood before an event changed it."""

    event_id: UUID
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Facts as they stand, how each stood before, and all events that name them; everything in the log's order."""

    facts: Mapping[UUID, StoredFact]
    former: Mapping[UUID, Sequence[FormerState]]
    events: Sequence[PastEvent]


class PastReader:
    """Reads the past of facts; each call waits while Postgres is away."""

    def __init__(self, pool: Pool, known: KnownFacts) -> None:
        self._pool = pool
        self._known = known

    async def aimed(self, scope: Scope, undo: Undo, *, limit: int) -> list[PastEvent]:
        """The events of exactly `scope` that an undo aims at, in the log's order; at most `limit` of them.

        Those that are taken back already are among them, unless it aims at a model or a prompt version.
        """
        parameters = {
            **scope.columns,
            "owner": scope.owner,
            **undo.model_dump(exclude={"kind", "cascade"}),
            "limit": limit,
        }
        return await self.events([row[0] for row in await self._rows(_aim(undo), parameters)])

    async def past(self, scope: Scope, fact_ids: Sequence[UUID]) -> Past:
        """Everything that became of these facts of `scope`."""
        asked = {**scope.columns, "fact_ids": list(fact_ids)}
        touching = [row[0] for row in await self._rows("touching", asked)]
        former: dict[UUID, list[FormerState]] = {}
        for fact_id, event_id, *standing in await self._rows("former_states", asked):
            state = FormerState(event_id=event_id, standing=Standing(**dict(zip(STANDING, standing, strict=True))))
            former.setdefault(fact_id, []).append(state)
        return Past(facts=await self._known.facts(fact_ids), former=former, events=await self.events(touching))

    async def events(self, event_ids: Sequence[UUID]) -> list[PastEvent]:
        """These events, in the log's order."""
        rows = await self._rows("events", {"event_ids": list(event_ids)}) if event_ids else []
        return [_past_event(row) for row in rows]

    async def _rows(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        return await persistently(partial(self._fetch, name, parameters), name=name)

    async def _fetch(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async with self._pool.connection() as connection:
            return await (await connection.execute(_SQL[name], parameters, binary=True)).fetchall()


def _aim(undo: Undo) -> str:
    if undo.event_id is not None:
        return "by_event"
    return "by_source" if undo.source_id is not None else "by_author"


def _past_event(row: tuple[Any, ...]) -> PastEvent:
    event_id, event, partition, offset, ordinal, source_id, occurred_at, said, brought, changed, named, *rest = row
    root_id, root_event, root_partition, root_offset, root_ordinal, turns_on, latest = rest
    return PastEvent(
        event_id=event_id,
        event=event,
        place=(partition, offset, ordinal),
        source_id=source_id,
        occurred_at=occurred_at,
        root=Root(event_id=root_id, event=root_event, place=(root_partition, root_offset, root_ordinal)),
        turns_on=turns_on,
        latest=latest,
        said=said,
        brought=brought,
        changed=frozenset(changed),
        named=frozenset(named),
    )
