"""The names that were read in a turn: how the entity of each was found, or why it links no fact."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.events import EntityRegistered, FactLinked
from mnemolog.schemas.entities.model import EntityLink, ResolutionStep, UnlinkedName, UnlinkedReason


class CalledEntity(NamedTuple):
    """What an entity is called, and since when it is known."""

    name: str
    since: datetime


EntityNames = Mapping[UUID, CalledEntity]
"""What entities are called, by their ids."""
NO_NAMES: Final[EntityNames] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedName:
    """A name as it was said, None for "the user", and the entity that it means, found by `step` among `compared`.

    `left_out` says why it links no fact; then `fact_id` is None, and an entity and a step are there only where it was
    looked for. `entity` is what the entity is called now, None where it is not known (any more). Of a name that is
    taken, `since` is when its bearer was told of first.
    """

    name: str | None
    entity_id: UUID | None
    entity: str | None
    step: ResolutionStep | None
    compared: tuple[str, ...] = ()
    fact_id: UUID | None = None
    left_out: UnlinkedReason | None = None
    since: datetime | None = None


async def entity_names(conn: AsyncConnection[TupleRow], commit: Commit) -> dict[UUID, CalledEntity]:
    """What the entities are called that a commit links, has looked at, or that its extraction was shown."""
    named = {entity_id for one in _read(commit) for entity_id in (one.entity_id, *one.compared) if entity_id}
    named |= {entity_id for step in commit.provenance.steps for entity_id in step.entities}
    if not named:
        return {}
    rows = await (await conn.execute(queries("entities")["names"], {"entity_ids": list(named)})).fetchall()
    return {entity_id: CalledEntity(name, since) for entity_id, name, since in rows}


def traced_names(commit: Commit, known: EntityNames) -> tuple[TracedName, ...]:
    """The names in a commit; `known` are those of `entity_names`. Pure."""
    registered = {
        event.entity_id: CalledEntity(event.name, commit.decided_at)
        for event in commit.entity_events
        if isinstance(event, EntityRegistered)
    }
    called = {**registered, **known}
    linked = (_traced(link, called, fact_id) for fact_id, link in _links(commit))
    return *linked, *(_traced(one, called) for one in _unlinked(commit))


def _traced(one: EntityLink | UnlinkedName, called: EntityNames, fact_id: UUID | None = None) -> TracedName:
    entity = None if one.entity_id is None else called.get(one.entity_id)
    reason = one.reason if isinstance(one, UnlinkedName) else None
    return TracedName(
        name=one.name,
        entity_id=one.entity_id,
        entity=entity and entity.name,
        step=one.step,
        compared=tuple(called[other].name for other in one.compared if other in called),
        fact_id=fact_id,
        left_out=reason,
        since=entity.since if entity and reason == "name_taken" else None,
    )


def _read(commit: Commit) -> Iterator[EntityLink | UnlinkedName]:
    yield from (link for _, link in _links(commit))
    yield from _unlinked(commit)


def _links(commit: Commit) -> Iterator[tuple[UUID, EntityLink]]:
    events = (event for event in commit.entity_events if isinstance(event, FactLinked))
    return ((event.fact_id, link) for event in events for link in event.links)


def _unlinked(commit: Commit) -> Iterator[UnlinkedName]:
    return (one for step in commit.provenance.steps for one in step.unlinked)
