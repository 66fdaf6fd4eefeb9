"""Loads the state that a fold needs, and writes the rows that it made, in bulk."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from psycopg.sql import SQL

from mnemolog.projections.database import RowConnection
from mnemolog.projections.sql import queries
from mnemolog.projections.write import tables
from mnemolog.projections.write.entity_writer import ask_entities, write_entities
from mnemolog.projections.write.fold import FoldState, LastAttempt, fact_ids_of_commits, source_of
from mnemolog.projections.write.rows import Changes, KnownFact, TimedFactState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import SCOPE_FIELDS, ScopeColumns

PROFILE_BATCH: Final = 100
_SQL: Final = queries("projector")
_STATE: Final = (*FactState.model_fields, "state_since")
STATEMENTS: Final[Mapping[str, SQL]] = {
    **_SQL,
    "known_facts": SQL(_SQL["known_facts"].format(state=SQL(", ".join(_STATE))).as_string()),
    "update_facts": tables.KNOWN_FACTS.statement(
        _SQL["update_facts"],
        state=SQL(", ".join(_STATE)),
        new_state=SQL(", ".join(f"given.{name}" for name in _STATE)),
    ),
    "settle_pending": tables.SETTLEMENTS.statement(_SQL["settle_pending"]),
    "undo_events": tables.UNDONE.statement(_SQL["undo_events"]),
    "set_policies": tables.POLICIES.statement(_SQL["set_policies"]),
    "step_scopes": tables.SCOPE_INCREMENTS.statement(_SQL["step_scopes"]),
}
"""The queries of `projector.sql`, with the columns of the tables that they write."""


async def load_state(connection: RowConnection, commits: Sequence[Commit]) -> FoldState:
    """The state that a fold of `commits` needs; inside a pipeline that is one round trip."""
    owners, source_ids = zip(*map(source_of, commits), strict=True) if commits else ((), ())
    asked = {"owners": list(owners), "source_ids": list(source_ids)}
    applied = await connection.execute(STATEMENTS["applied"], asked, binary=True)
    facts = await connection.execute(STATEMENTS["known_facts"], {"fact_ids": fact_ids_of_commits(commits)}, binary=True)
    asked_entities, asked_changes = await ask_entities(connection, commits)
    known = {
        fact_id: KnownFact(
            fact_id=fact_id,
            scope=cast("ScopeColumns", tuple(columns[: len(SCOPE_FIELDS)])),
            state=TimedFactState(**dict(zip(_STATE, columns[len(SCOPE_FIELDS) :], strict=True))),
        )
        for fact_id, *columns in await facts.fetchall()
    }
    entities = await asked_entities.fetchall() if asked_entities else []
    changes = await asked_changes.fetchall() if asked_changes else []
    return FoldState(
        applied={
            (owner, source_id): LastAttempt(number=number, retryable=retryable)
            for owner, source_id, number, retryable in await applied.fetchall()
        },
        facts=known,
        entities={row[0]: cast("ScopeColumns", row[1:6]) for row in (*entities, *changes)},
        undone_entities=frozenset(row[0] for row in entities if row[6]),
    )


async def copy_rows(connection: RowConnection, changes: Changes) -> None:
    """Write the rows that are new. COPY is not possible inside a pipeline."""
    await tables.COMMITS.copy(connection, changes.commits)
    await tables.MEMORY_EVENTS.copy(connection, changes.events)
    await copy_fact_rows(connection, changes)


async def copy_fact_rows(connection: RowConnection, changes: Changes) -> None:
    """Write the new rows, without the copy of the log (commits and events)."""
    await tables.FACTS.copy(connection, changes.facts)
    await tables.FORMER_STATES.copy(connection, changes.former_states)
    await tables.FACT_RELATIONS.copy(connection, changes.relations)
    await tables.PENDING_CONFIRMATIONS.copy(connection, changes.pending)
    await tables.REJECTIONS.copy(connection, changes.rejections)


async def update_rows(connection: RowConnection, changes: Changes) -> None:
    """Update known rows, add the rows of entities, and step the versions of the scopes."""
    await write_entities(connection, changes.entities)
    if changes.commits:
        positions = {
            "partition": [row.position.partition for row in changes.commits],
            "log_offset": [row.position.offset for row in changes.commits],
        }
        await connection.execute(STATEMENTS["count_tokens"], positions)
        if any(step.model for row in changes.commits for step in row.commit.provenance.steps):
            await connection.execute(STATEMENTS["count_usage"], positions)
    if changes.updates:
        await connection.execute(STATEMENTS["update_facts"], tables.KNOWN_FACTS.parameters(changes.updates))
    if changes.settlements:
        await connection.execute(STATEMENTS["settle_pending"], tables.SETTLEMENTS.parameters(changes.settlements))
    if undone := [row for row in changes.undone if row.undone_by is not None]:
        await connection.execute(STATEMENTS["undo_events"], tables.UNDONE.parameters(undone))
    if reinstated := [row.event_id for row in changes.undone if row.undone_by is None]:
        await connection.execute(STATEMENTS["reinstate_events"], {"event_id": reinstated})
    if changes.policies:
        await connection.execute(STATEMENTS["set_policies"], tables.POLICIES.parameters(changes.policies))
    if changes.scope_increments:
        await connection.execute(
            STATEMENTS["step_scopes"], tables.SCOPE_INCREMENTS.parameters(changes.scope_increments)
        )


async def refresh_profiles(connection: RowConnection, scopes: Sequence[ScopeColumns]) -> None:
    """Derive the profiles of `scopes` anew, and which facts of them are disputed."""
    if scopes:
        columns = dict(zip(SCOPE_FIELDS, map(list, zip(*scopes, strict=True)), strict=True))
        async with connection.pipeline():
            await connection.execute(STATEMENTS["dispute_facts"], columns)
            await connection.execute(STATEMENTS["refresh_profiles"], columns)


async def profile_batches(connection: RowConnection) -> list[list[ScopeColumns]]:
    """All scopes that have a profile, by as many as one statement refreshes."""
    scopes = cast("list[ScopeColumns]", await (await connection.execute(STATEMENTS["all_scopes"])).fetchall())
    return [scopes[start : start + PROFILE_BATCH] for start in range(0, len(scopes), PROFILE_BATCH)]
