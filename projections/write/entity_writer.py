"""Reads the entities that a fold needs, writes their rows, and derives their state where a batch changed it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from mnemolog.projections import metrics
from mnemolog.projections.database import RowConnection
from mnemolog.projections.sql import queries
from mnemolog.projections.write import rows, tables
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import ENTITY_TYPES
from mnemolog.schemas.entity_events import (
    ENTITY_CHANGE,
    EntityDecisionUndone,
    EntityRegistered,
    EntitySplit,
    FactLinked,
)
from mnemolog.schemas.entity_state import (
    CurrentEntity,
    CurrentState,
    GivenAlias,
    GivenType,
    RegisteredEntity,
    StoredChange,
)
from mnemolog.schemas.facts import OPEN_STATUSES
from mnemolog.schemas.scope import SCOPE_FIELDS, ScopeColumns

_SQL: Final = queries("entities")
_CHANGES: Final = queries("entity_changes")
_ADD_ENTITIES: Final = tables.ENTITIES.statement(_SQL["add_entities"])
_ADD_ALIASES: Final = tables.GIVEN_ALIASES.statement(
    _SQL["add_aliases"], table_columns=tables.ENTITY_ALIASES.names, table_values=tables.ENTITY_ALIASES.given_values
)
_ADD_NAME_VECTORS: Final = tables.NAME_VECTORS.statement(_SQL["add_name_vectors"])
_ADD_LINKS: Final = tables.FACT_ENTITIES.statement(_SQL["add_links"])
_ADD_RELATIONSHIPS: Final = tables.RELATIONSHIPS.statement(_SQL["add_relationships"])
_ADD_EVIDENCE: Final = tables.RELATIONSHIP_EVIDENCE.statement(_SQL["add_evidence"])
_ADD_CHANGES: Final = tables.ENTITY_CHANGES.statement(_CHANGES["add_changes"])


async def ask_entities(
    connection: RowConnection, commits: Iterable[Commit]
) -> tuple[AsyncCursor[TupleRow] | None, AsyncCursor[TupleRow] | None]:
    """Ask for the known entities and changes that events of these commits name; None where they name none."""
    named, undone = _named(commits)
    return (
        await connection.execute(_SQL["known_entities"], {"entity_ids": named}, binary=True) if named else None,
        await connection.execute(_CHANGES["known_changes"], {"event_ids": undone}, binary=True) if undone else None,
    )


async def write_entities(connection: RowConnection, new: Sequence[rows.AnyEntityRow]) -> None:
    """Write new entities, names, links, evidence and changes; in a pipeline that is no round trip of its own."""
    if entities := [row for row in new if isinstance(row, rows.EntityRow)]:
        await connection.execute(_ADD_ENTITIES, tables.ENTITIES.parameters(entities))
    if aliases := [row for row in new if isinstance(row, rows.AliasRow)]:
        await connection.execute(_ADD_ALIASES, tables.GIVEN_ALIASES.parameters(aliases))
    if with_vectors := [row for row in aliases if row.alias.vector is not None]:
        await connection.execute(_ADD_NAME_VECTORS, tables.NAME_VECTORS.parameters(with_vectors))
    if changes := [row for row in new if isinstance(row, rows.EntityChangeRow)]:
        await connection.execute(_ADD_CHANGES, tables.ENTITY_CHANGES.parameters(changes))
        undone = {row.event.original_id: row.event for row in changes if isinstance(row.event, EntityDecisionUndone)}
        undone_by = [None if event.reinstated else event.event_id for event in undone.values()]
        await connection.execute(_CHANGES["undo_changes"], {"event_id": list(undone), "undone_by": undone_by})
    if links := [row for row in new if isinstance(row, rows.LinkRow)]:
        await connection.execute(_ADD_LINKS, tables.FACT_ENTITIES.parameters(links))
    if evidence := [row for row in new if isinstance(row, rows.EvidenceRow)]:
        await connection.execute(_ADD_RELATIONSHIPS, tables.RELATIONSHIPS.parameters(evidence))
        await connection.execute(_ADD_EVIDENCE, tables.RELATIONSHIP_EVIDENCE.parameters(evidence))


def _named(commits: Iterable[Commit]) -> tuple[list[UUID], list[UUID]]:
    """The entities that events name or register, as an id may be known already, and the changes that they name."""
    named: dict[UUID, None] = {}
    changes: dict[UUID, None] = {}
    for event in (event for commit in commits for event in commit.entity_events):
        twins = event.possible_twins if isinstance(event, EntityRegistered) else ()
        named |= dict.fromkeys((*event.entity_ids, *twins))
        changes |= dict.fromkeys(event.change_ids)
    return list(named), list(changes)


ENTITY_BATCH: Final = 500


async def refresh_entities(connection: RowConnection, changes: rows.Changes, hidden: Sequence[UUID]) -> None:
    """Derive the entities anew that these changes affect, and what readers see of them; `hidden` is of `hide_facts`."""
    aliases = [row for row in changes.entities if isinstance(row, rows.AliasRow)]
    links = [row for row in changes.entities if isinstance(row, rows.LinkRow)]
    touched = {row.entity_id for row in aliases}
    if affected := await _affected(connection, changes):
        touched.update(await derive_entities(connection, sorted(affected)))
    if hidden:
        touched.update(await _ids(connection, "named_by_facts", fact_ids=hidden))
    if repeated := [row.entity_id for row in aliases if row.repeated_fact_id and row.alias.kind == "tie"]:
        await connection.execute(_CHANGES["update_ties"], {"entity_ids": repeated})
    speaking = [step.scope for step in changes.scope_increments if step.speakers]
    if touched or links or speaking:
        repetitions = [row.told_by for row in links if row.told_by is not None]
        await show_entities(connection, sorted(touched), [row.fact_id for row in links], repetitions, speaking)


async def _affected(connection: RowConnection, changes: rows.Changes) -> set[UUID]:
    """The entities whose names, types or states changes, undone facts or undone repetitions may have changed."""
    affected: set[UUID] = set()
    for row in changes.entities:
        match row:
            case rows.EntityChangeRow():
                affected |= set(row.event.entity_ids)
            case rows.StaleEntity(entity_id=entity_id):
                affected.add(entity_id)
    if facts := _undone_facts(changes):
        affected |= set(await _ids(connection, "named_by_facts", fact_ids=facts))
    if changes.undone:
        turned = [undone.event_id for undone in changes.undone]
        affected |= set(await _ids(connection, "entities_of_repetitions", event_ids=turned))
    return affected


async def hide_facts(connection: RowConnection, changes: rows.Changes) -> list[UUID]:
    """Keep `is_hidden` of facts; gives the facts in which it changed.

    A fact is hidden with the facts that took its place: the change goes from each to those that it followed.
    """
    facts = [known.fact_id for known in changes.updates]
    facts += [row.fact.fact_id for row in changes.facts if row.state.status not in OPEN_STATUSES]
    turned = [undone.event_id for undone in changes.undone]
    found: list[UUID] = []
    while facts or turned:
        facts = await _ids(connection, "update_hidden_facts", fact_ids=facts, event_ids=turned)
        turned = []
        found += facts
    return found


async def show_entities(
    connection: RowConnection,
    entity_ids: Sequence[UUID],
    fact_ids: Sequence[UUID] = (),
    repetitions: Sequence[UUID] = (),
    scopes: Sequence[ScopeColumns] = (),
) -> None:
    """Keep what readers see of these entities and their names.

    New links of `fact_ids`, `repetitions` of known facts and speakers of `scopes` can show more of other entities.
    """
    asked = {
        "entity_ids": list(entity_ids),
        "fact_ids": list(fact_ids),
        "repetitions": list(repetitions),
        **{name: [scope[place] for scope in scopes] for place, name in enumerate(SCOPE_FIELDS)},
    }
    async with connection.pipeline():
        if entity_ids or repetitions:
            await connection.execute(_CHANGES["update_shown_names"], asked)
        if fact_ids or scopes:
            await connection.execute(_CHANGES["show_told_names"], asked)
        await connection.execute(_CHANGES["update_shown_entities"], asked)


async def all_derived_entities(connection: RowConnection) -> list[Sequence[UUID]]:
    """Every entity whose state is not that of a new one, in batches."""
    return _batches(await _ids(connection, "derived_entities"))


async def all_shown_entities(connection: RowConnection) -> list[Sequence[UUID]]:
    """Every entity that readers may see, in batches; marks all hidden facts before."""
    await connection.execute(_CHANGES["hide_all_facts"])
    return _batches(await _ids(connection, "active_entities"))


def _batches(found: Sequence[UUID]) -> list[Sequence[UUID]]:
    return [found[start : start + ENTITY_BATCH] for start in range(0, len(found), ENTITY_BATCH)]


async def derive_entities(connection: RowConnection, entity_ids: Sequence[UUID]) -> Sequence[UUID]:
    """Derive these entities, and all entities that changes connect with them; gives the ids of all."""
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
        [GivenAlias(*row) for row in await _rows(connection, "given_aliases", asked)],
        [(fact_id, entity_id) for fact_id, entity_id in links if entity_id in set(connected)],
        changes,
        [GivenType(*row) for row in await _rows(connection, "given_types", asked)],
    )
    await _write(connection, state)
    await connection.execute(_CHANGES["update_current_links"], asked)
    if changes:
        await connection.execute(_CHANGES["update_ties"], asked)
    return connected


async def _write(connection: RowConnection, state: CurrentState) -> None:
    entities, aliases = state.current(), state.current_aliases()
    columns: dict[str, list[Any]] = {"entity_id": list(entities)}
    columns |= {name: [getattr(one, name) for one in entities.values()] for name in CurrentEntity._fields}
    await connection.execute(_CHANGES["update_entities"], columns)
    named: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in aliases] for name in ("entity_id", "kind", "key", "event_id")
    }
    await connection.execute(_CHANGES["update_aliases"], {**named, "current_id": list(aliases.values())})
    if state.moved:
        moved = {
            "fact_id": [fact_id for fact_id, _ in state.moved],
            "entity_id": [entity_id for _, entity_id in state.moved],
            "moved_to": [None if to == entity_id else to for (_, entity_id), to in state.moved.items()],
        }
        await connection.execute(_CHANGES["update_links"], moved)


def _undone_facts(changes: rows.Changes) -> list[UUID]:
    """The facts that were undone, or are in effect again; only an undo does either."""
    if not changes.undone:
        return []
    states = [(known.fact_id, known.state) for known in changes.updates]
    states += [(row.fact.fact_id, row.state) for row in changes.facts]
    states += [(row.fact_id, row.state) for row in changes.former_states]
    return sorted({fact_id for fact_id, state in states if state.status == "undone"})


async def _ids(connection: RowConnection, query: str, **asked: Any) -> list[UUID]:
    return [row[0] for row in await _rows(connection, query, asked)]


async def _rows(connection: RowConnection, query: str, asked: dict[str, Any]) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_CHANGES[query], asked)).fetchall()


def count_entities(changes: rows.Changes) -> None:
    """Count what has been committed to the tables. A type of its own, which any word can be, is "custom"."""
    new = [row for row in changes.entities if isinstance(row, rows.EntityRow)]
    kinds = Counter((row.event.type, "yes" if row.possible_twins else "no") for row in new)
    for (kind, is_twin), number in kinds.items():
        shown = kind if kind in ENTITY_TYPES else "custom"
        metrics.ENTITIES.labels(type=shown, possible_twin=is_twin).inc(number)
    for step, number in Counter(row.link.step for row in changes.entities if isinstance(row, rows.LinkRow)).items():
        metrics.ENTITY_LINKS.labels(step=step).inc(number)
    decided = (row.event for row in changes.entities if isinstance(row, rows.EntityChangeRow))
    for (event, by), number in Counter((one.event, one.decision.by) for one in decided).items():
        metrics.ENTITY_CHANGES.labels(event=event, by=by).inc(number)
    for commit in (row.commit for row in changes.commits):
        if commit.outcome == "stored" and commit.source_kind == "turn":
            links = (len(event.links) for event in commit.entity_events if isinstance(event, FactLinked))
            metrics.TURN_LINKS.observe(sum(links))
