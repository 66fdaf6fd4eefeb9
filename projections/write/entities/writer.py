"""Reads the entities that a fold needs, and writes their rows. No statement is sent where there is nothing of them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from mnemolog.projections.sql import queries
from mnemolog.projections.write.entities.rows import AliasRow, AnyEntityRow, EntityRow, EvidenceRow, LinkRow
from mnemolog.projections.write.table_writer import Connection
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.events import (
    EntityAliasAdded,
    EntityRegistered,
    FactLinked,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.scope import SCOPE_FIELDS, ScopeColumns, scope_columns

_SQL: Final = queries("entities")


async def ask_entities(connection: Connection, commits: Iterable[Commit]) -> AsyncCursor[TupleRow] | None:
    """Ask for the known entities that events of these commits name; None where they name none."""
    named = _named_entities(commits)
    return await connection.execute(_SQL["known_entities"], {"entity_ids": named}, binary=True) if named else None


async def read_entities(asked: AsyncCursor[TupleRow] | None) -> dict[UUID, ScopeColumns]:
    """The scopes of the entities that were asked for."""
    return {row[0]: cast("ScopeColumns", row[1:]) for row in await asked.fetchall()} if asked else {}


async def write_entities(connection: Connection, rows: Sequence[AnyEntityRow]) -> None:
    """Write new entities, names and links; in a pipeline that is no round trip of its own."""
    if entities := [row for row in rows if isinstance(row, EntityRow)]:
        await connection.execute(_SQL["add_entities"], _entity_columns(entities))
    if aliases := [row for row in rows if isinstance(row, AliasRow)]:
        await connection.execute(_SQL["add_aliases"], _alias_columns(aliases))
    if links := [row for row in rows if isinstance(row, LinkRow)]:
        columns = {
            "fact_id": [row.fact_id for row in links],
            "entity_id": [row.link.entity_id for row in links],
            "role": [row.link.role for row in links],
            "event_id": [row.event_id for row in links],
        }
        await connection.execute(_SQL["add_links"], columns)
    if evidence := [row for row in rows if isinstance(row, EvidenceRow)]:
        stated = _evidence_columns(evidence)
        await connection.execute(_SQL["add_relationships"], stated)
        await connection.execute(_SQL["add_evidence"], stated)


def _named_entities(commits: Iterable[Commit]) -> list[UUID]:
    """The entities that events name, and those that they register: an id may be known already."""
    named: dict[UUID, None] = {}
    for event in (event for commit in commits for event in commit.entity_events):
        match event:
            case EntityRegistered():
                named |= dict.fromkeys((event.entity_id, *event.possible_twins))
            case EntityAliasAdded():
                named[event.entity_id] = None
            case FactLinked():
                named |= dict.fromkeys(link.entity_id for link in event.links)
            case RelationStated() | RelationEnded():
                named |= dict.fromkeys((event.subject_id, event.object_id))
    return list(named)


def _entity_columns(rows: Sequence[EntityRow]) -> dict[str, list[Any]]:
    return {
        **_scopes([row.commit for row in rows]),
        "entity_id": [row.event.entity_id for row in rows],
        "owner": [row.commit.owner for row in rows],
        "name": [row.event.name for row in rows],
        "type": [row.event.type for row in rows],
        # An array of arrays would have to be a rectangle.
        "possible_twins": [f"{{{','.join(map(str, row.possible_twins))}}}" for row in rows],
        "event_id": [row.event.event_id for row in rows],
        "source_id": [row.commit.source_id for row in rows],
        "recorded_at": [row.commit.decided_at for row in rows],
        "ordinal": [row.event.ordinal for row in rows],
    }


def _alias_columns(rows: Sequence[AliasRow]) -> dict[str, list[Any]]:
    return {
        **_scopes([row.commit for row in rows]),
        "entity_id": [row.entity_id for row in rows],
        "kind": [row.alias.kind for row in rows],
        "key": [row.alias.key for row in rows],
        "head": [row.alias.head for row in rows],
        "alias": [row.alias.text for row in rows],
        "place": [row.place for row in rows],
        "event_id": [row.event_id for row in rows],
        "recorded_at": [row.commit.decided_at for row in rows],
    }


def _evidence_columns(rows: Sequence[EvidenceRow]) -> dict[str, list[Any]]:
    return {
        **_scopes([row.commit for row in rows]),
        "relation_id": [row.relation_id for row in rows],
        "owner": [row.commit.owner for row in rows],
        "subject_id": [row.event.subject_id for row in rows],
        "predicate": [row.event.predicate for row in rows],
        "object_id": [row.event.object_id for row in rows],
        "inverse": [row.event.inverse for row in rows],
        "fact_id": [row.event.fact_id for row in rows],
        "strength": [row.event.strength if isinstance(row.event, RelationStated) else None for row in rows],
        "ended_at": [row.event.ended_at if isinstance(row.event, RelationEnded) else None for row in rows],
        "event_id": [row.event.event_id for row in rows],
        "source_id": [row.commit.source_id for row in rows],
        "recorded_at": [row.commit.decided_at for row in rows],
        "ordinal": [row.event.ordinal for row in rows],
    }


def _scopes(commits: Sequence[Commit]) -> dict[str, list[str]]:
    scopes = [scope_columns(commit.scope) for commit in commits]
    return {name: [scope[place] for scope in scopes] for place, name in enumerate(SCOPE_FIELDS)}
