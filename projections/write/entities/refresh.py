"""Derives the current state of entities anew where a batch has changed what it follows from.

That is seldom: a person's decision about entities, an undo of facts, a new fact that names an entity whose facts were
all undone, or that tells a name or the type of one. Works on the tables as the batch has left them, so that a rebuild
in other batches gives equal rows.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.sql import queries
from mnemolog.projections.write.entities.current_state import (
    CurrentState,
    RegisteredEntity,
    StoredChange,
    ToldAlias,
    ToldType,
)
from mnemolog.projections.write.entities.rows import EntityChangeRow, NamedAgainRow
from mnemolog.projections.write.rows import Changes
from mnemolog.projections.write.table_writer import Connection
from mnemolog.schemas.entities.changes import ENTITY_CHANGE, EntitySplit

ENTITY_BATCH: Final = 500
_SQL: Final = queries("entity_changes")
_DERIVED: Final = ("name", "type", "status", "merged_into")


async def refresh_entities(connection: Connection, changes: Changes) -> None:
    """Derive the entities anew that these changes affect; sends nothing where they affect none."""
    affected = set(_changed_entities(changes))
    if facts := _undone_facts(changes):
        affected |= set(await _ids(connection, "named_by_facts", fact_ids=facts))
    if changes.undone:
        turned = [row.event_id for row in changes.undone]
        affected |= set(await _ids(connection, "told_by_events", event_ids=turned))
    if affected:
        await derive_entities(connection, sorted(affected))


async def all_derived_entities(connection: Connection) -> list[Sequence[UUID]]:
    """Every entity whose state is not that of a new one, in batches."""
    found = await _ids(connection, "derived_entities")
    return [found[start : start + ENTITY_BATCH] for start in range(0, len(found), ENTITY_BATCH)]


async def derive_entities(connection: Connection, entity_ids: Sequence[UUID]) -> None:
    """Derive these entities, and those that changes connect with them."""
    connected = sorted(await _ids(connection, "connected", entity_ids=list(entity_ids)))
    asked = {"entity_ids": connected}
    changes = [
        StoredChange(ENTITY_CHANGE.validate_python(payload, strict=False), log_offset, in_effect)
        for payload, log_offset, in_effect in await _rows(connection, "changes_of_entities", asked)
    ]
    facts = [fact_id for one in changes if isinstance(one.event, EntitySplit) for fact_id in one.event.facts]
    links = await _rows(connection, "links_of_facts", {"fact_ids": facts}) if facts else []
    state = CurrentState.of(
        [RegisteredEntity(*row) for row in await _rows(connection, "registered_entities", asked)],
        [ToldAlias(*row) for row in await _rows(connection, "told_aliases", asked)],
        [(fact_id, entity_id) for fact_id, entity_id in links if entity_id in set(connected)],
        changes,
        [ToldType(*row) for row in await _rows(connection, "told_types", asked)],
    )
    await _write(connection, state)


async def _write(connection: Connection, state: CurrentState) -> None:
    entities, aliases = state.current(), state.current_aliases()
    columns: dict[str, list[Any]] = {"entity_id": list(entities)}
    columns |= {name: [getattr(one, name) for one in entities.values()] for name in _DERIVED}
    await connection.execute(_SQL["update_entities"], columns)
    named: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in aliases] for name in ("entity_id", "kind", "key", "event_id")
    }
    await connection.execute(_SQL["update_aliases"], {**named, "is_current": list(aliases.values())})
    if state.moved:
        moved = {
            "fact_id": [fact_id for fact_id, _ in state.moved],
            "entity_id": [entity_id for _, entity_id in state.moved],
            "moved_to": [None if to == entity_id else to for (_, entity_id), to in state.moved.items()],
        }
        await connection.execute(_SQL["update_links"], moved)


def _changed_entities(changes: Changes) -> Iterable[UUID]:
    for row in changes.entities:
        match row:
            case EntityChangeRow():
                yield from row.event.entity_ids
            case NamedAgainRow(entity_id=entity_id):
                yield entity_id


def _undone_facts(changes: Changes) -> list[UUID]:
    """The facts that were undone, or are in effect again; only an undo does either."""
    if not changes.undone:
        return []
    states = [(known.fact_id, known.state) for known in changes.updates]
    states += [(row.fact.fact_id, row.state) for row in changes.facts]
    states += [(row.fact_id, row.state) for row in changes.former_states]
    return sorted({fact_id for fact_id, state in states if state.status == "undone"})


async def _ids(connection: Connection, query: str, **asked: Any) -> list[UUID]:
    return [row[0] for row in await _rows(connection, query, asked)]


async def _rows(connection: Connection, query: str, asked: dict[str, Any]) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_SQL[query], asked)).fetchall()
