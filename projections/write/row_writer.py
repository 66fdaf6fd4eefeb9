"""Loads the state that a fold needs, and writes the rows that it made, in bulk."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, cast

from psycopg.rows import TupleRow
from pydantic_core import to_json

from mnemolog.projections.database import SCOPE_TYPES, CopyRow, RowConnection, copy_binary, jsonb
from mnemolog.projections.sql import queries
from mnemolog.projections.write.entity_writer import ask_entities, read_entities, write_entities
from mnemolog.projections.write.fold import FoldState, LastAttempt, fact_ids_of_commits, source_of
from mnemolog.projections.write.rows import (
    Changes,
    CommitRow,
    EventRow,
    FactRow,
    FormerStateRow,
    KnownFact,
    PendingRow,
    RejectionRow,
    RelationRow,
    SettlementRow,
    TimedFactState,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import DecisionUndone
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import SCOPE_FIELDS, ScopeColumns, scope_columns

WITHOUT_VECTOR_DATA: Final[Any] = {"fact": {"vector": {"data"}}}
_SQL: Final = queries("projector")
_COMMIT_TYPES: Final = [
    *["int4", "int8", "text", "text", "text"],
    *SCOPE_TYPES,
    *["text", "text", "text", "timestamptz", "timestamptz", "timestamptz", "text", "int4", "int8", "int8"],
    *["int4", "float8", "int8", "int8", "int4", "jsonb", "jsonb", "int4", "text", "text", "jsonb", "bytea"],
]
_EVENT_TYPES: Final = [
    *["uuid", "int4", "int8", "int4", "text", "text"],
    *SCOPE_TYPES,
    *["text", "uuid", "uuid[]", "timestamptz", "timestamptz", "text", "text", "bool", "jsonb"],
    *["text", "text", "text", "uuid", "uuid"],
]


async def copy_log_rows(connection: RowConnection, changes: Changes) -> None:
    """Write the applied commits and their events. COPY is not possible inside a pipeline."""
    await copy_binary(connection, _SQL["copy_commits"], _COMMIT_TYPES, map(commit_row, changes.commits))
    await copy_binary(connection, _SQL["copy_events"], _EVENT_TYPES, map(event_row, changes.events))


def commit_row(row: CommitRow) -> CopyRow:
    """The columns of `copy_commits`; the record is the last."""
    commit, steps = row.commit, row.commit.provenance.steps
    return (
        *(row.position.partition, row.position.offset, commit.owner, commit.source_id, commit.source_kind),
        *scope_columns(commit.scope),
        *(commit.outcome, commit.reason, commit.detail, commit.occurred_at, commit.published_at, commit.decided_at),
        *(commit.origin.topic, commit.origin.partition, commit.origin.offset, commit.based_on),
        sum(step.llm_calls for step in steps),
        sum(step.embedding_calls for step in steps),
        sum(step.input_tokens for step in steps),
        sum(step.output_tokens for step in steps),
        sum(step.reprompts for step in steps),
        jsonb(commit.provenance.model_dump_json()),
        jsonb(to_json(commit.metadata)),
        *(commit.attempt, commit.order.kind if commit.order else None, commit.actor),
        jsonb(to_json(commit.limit)) if commit.limit else None,
        row.record,
    )


def event_row(row: EventRow) -> CopyRow:
    """The columns of `copy_events`."""
    commit, event, decision = row.commit, row.event, row.event.decision
    origin = event.promoted_from
    return (
        *(event.event_id, row.position.partition, row.position.offset, event.ordinal, commit.owner, commit.source_id),
        *scope_columns(commit.scope),
        *(
            event.event,
            row.fact_id,
            list(row.targets),
            origin.said_at if origin else commit.occurred_at,
            commit.decided_at,
        ),
        *(decision.by, decision.reason, row.stale),
        jsonb(event.model_dump_json(exclude=WITHOUT_VECTOR_DATA)),
        *(decision.model, decision.prompt_version, decision.guard),
        event.undone if isinstance(event, DecisionUndone) else None,
        origin.fact_id if origin else None,
    )


PROFILE_BATCH: Final = 100
_FACT_TYPES: Final = [
    *["uuid", "text"],
    *SCOPE_TYPES,
    *["text", "text", "text", "text", "text", "text", "float8", "text", "float8", "text", "text", "text", "text"],
    *["bool", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz"],
    *["timestamptz", "int4", "timestamptz", "uuid[]", "uuid", "text", "bool", "text", "text", "halfvec", "jsonb"],
    *["text", "bool", "timestamptz", "timestamptz", "timestamptz", "int4", "text"],
]
_FORMER_STATE_TYPES: Final = [
    *["uuid", "uuid", "timestamptz", "timestamptz", "text", "float8", "int4"],
    *["timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "uuid", "bool", "timestamptz"],
]
_RELATION_TYPES: Final = ["uuid", "uuid", "text", "uuid", "timestamptz"]
_PENDING_TYPES: Final = [
    *["uuid", "text"],
    *SCOPE_TYPES,
    *["uuid", "uuid[]", "text", "timestamptz", "text", "bool", "timestamptz", "timestamptz", "text", "uuid"],
]
_STATE_PATHS: Final = {name: f"state.{name}" for name in TimedFactState.__slots__}
_REJECTION_TYPES: Final = ["int4", "int8", "int4", "text", "text", "text", "text", "bytea"]


async def load_state(connection: RowConnection, commits: Sequence[Commit]) -> FoldState:
    """The state that a fold of `commits` needs; inside a pipeline that is one round trip."""
    sources = [source_of(commit) for commit in commits]
    owners, source_ids = [owner for owner, _ in sources], [source_id for _, source_id in sources]
    asked = {"owners": owners, "source_ids": source_ids}
    applied = await connection.execute(_SQL["applied"], asked, binary=True)
    facts = await connection.execute(_SQL["known_facts"], {"fact_ids": fact_ids_of_commits(commits)}, binary=True)
    asked_entities = await ask_entities(connection, commits)
    known = [_known_fact(row) for row in await facts.fetchall()]
    return FoldState(
        applied={
            (owner, source_id): LastAttempt(number=number, retryable=retryable)
            for owner, source_id, number, retryable in await applied.fetchall()
        },
        facts={fact.fact_id: fact for fact in known},
        **await read_entities(asked_entities),
    )


async def copy_rows(connection: RowConnection, changes: Changes) -> None:
    """Write the rows that are new. COPY is not possible inside a pipeline."""
    await copy_log_rows(connection, changes)
    await copy_fact_rows(connection, changes)


async def copy_fact_rows(connection: RowConnection, changes: Changes) -> None:
    """Write the new rows but for the copy of the log (`log_rows`)."""
    await copy_binary(connection, _SQL["copy_facts"], _FACT_TYPES, map(_fact_row, changes.facts))
    await copy_binary(
        connection, _SQL["copy_former_states"], _FORMER_STATE_TYPES, map(_former_state_row, changes.former_states)
    )
    await copy_binary(connection, _SQL["copy_relations"], _RELATION_TYPES, map(_relation_row, changes.relations))
    await copy_binary(connection, _SQL["copy_pending"], _PENDING_TYPES, map(_pending_row, changes.pending))
    await copy_binary(connection, _SQL["copy_rejections"], _REJECTION_TYPES, map(_rejection_row, changes.rejections))


async def update_rows(connection: RowConnection, changes: Changes) -> None:
    """Update the rows that were there before, add those of entities, and step the versions of the scopes."""
    await write_entities(connection, changes.entities)
    if changes.commits:
        positions = _columns(changes.commits, partition="position.partition", log_offset="position.offset")
        await connection.execute(_SQL["count_tokens"], positions)
        if any(step.model for row in changes.commits for step in row.commit.provenance.steps):
            await connection.execute(_SQL["count_usage"], positions)
    if changes.updates:
        await connection.execute(_SQL["update_facts"], _columns(changes.updates, "fact_id", **_STATE_PATHS))
    if changes.settlements:
        await connection.execute(_SQL["settle_pending"], _settlements(changes.settlements))
    if undone := [row for row in changes.undone if row.undone_by is not None]:
        await connection.execute(_SQL["undo_events"], _columns(undone, "event_id", "undone_by", "since"))
    if reinstated := [row.event_id for row in changes.undone if row.undone_by is None]:
        await connection.execute(_SQL["reinstate_events"], {"event_id": reinstated})
    if changes.policies:
        columns = _columns(changes.policies, "since", event_id="event.event_id")
        policies = [row.event.policy.model_dump_json() for row in changes.policies]
        scopes = _scopes([row.scope for row in changes.policies])
        await connection.execute(_SQL["set_policies"], {**columns, "policy": policies, **scopes})
    if changes.scope_increments:
        steps = _columns(changes.scope_increments, "owner", "partition", "commits", "facts")
        speakers = [to_json(step.speakers).decode() for step in changes.scope_increments]
        scopes = _scopes([step.scope for step in changes.scope_increments])
        await connection.execute(_SQL["step_scopes"], {**steps, "speakers": speakers, **scopes})


async def refresh_profiles(connection: RowConnection, scopes: Sequence[ScopeColumns]) -> None:
    """Derive the profiles of `scopes` anew, in one statement."""
    if scopes:
        await connection.execute(_SQL["refresh_profiles"], _scopes(scopes))


async def profile_batches(connection: RowConnection) -> list[list[ScopeColumns]]:
    """All scopes that have a profile, by as many as one statement refreshes."""
    scopes = cast("list[ScopeColumns]", await (await connection.execute(_SQL["all_scopes"])).fetchall())
    return [scopes[start : start + PROFILE_BATCH] for start in range(0, len(scopes), PROFILE_BATCH)]


def _fact_row(row: FactRow) -> CopyRow:
    commit, fact, state = row.commit, row.fact, row.state
    return (
        *(fact.fact_id, commit.owner),
        *scope_columns(commit.scope),
        *(fact.text, fact.search_text, fact.key, fact.value, fact.category, fact.importance_category),
        *(fact.importance, fact.certainty, state.confidence, fact.subject, fact.speaker, fact.excerpt, state.status),
        *(state.unresolved, fact.event_time, fact.valid_until, state.true_from, state.true_to, state.closed_at),
        *(state.believed_from, state.believed_to, state.mention_count, state.last_confirmed_at),
        *(list(row.supersedes), state.superseded_by, commit.source_id, row.stale, fact.content_hash),
        *(fact.vector.model, fact.vector, jsonb(to_json(commit.metadata))),
        *(fact.authority, fact.single_valued, fact.said_at or commit.occurred_at),
        *(commit.decided_at, state.state_since, row.ordinal),
        fact.action_hint,
    )


def _former_state_row(row: FormerStateRow) -> CopyRow:
    state = (getattr(row.state, name) for name in FactState.model_fields)
    return (row.fact_id, row.event_id, row.state.state_since, row.until, *state)


def _relation_row(row: RelationRow) -> CopyRow:
    return (row.fact_id, row.related_id, row.relation, row.event_id, row.since)


def _pending_row(row: PendingRow) -> CopyRow:
    commit, event, settled = row.commit, row.event, row.settlement_row
    closed = settled is not None and settled.settlement is not None
    return (
        *(event.fact.fact_id, commit.owner),
        *scope_columns(commit.scope),
        *(event.event_id, list(event.targets), event.action, event.ended_at, event.guard, event.needs_human),
        commit.decided_at,
        *((settled.at, settled.settlement, settled.event_id) if settled and closed else (None, None, None)),
    )


def _rejection_row(row: RejectionRow) -> CopyRow:
    where = (row.position.partition, row.position.offset, row.item)
    return (*where, row.owner, row.source_id, row.reason, row.detail, row.record)


def _columns(rows: Sequence[Any], *names: str, **paths: str) -> dict[str, list[Any]]:
    """The columns of `rows` as parameters of a query: attributes by name, and column=path of an inner attribute."""
    all_paths = {name: name for name in names} | paths
    return {column: list(map(attrgetter(path), rows)) for column, path in all_paths.items()}


def _settlements(settlements: Sequence[SettlementRow]) -> dict[str, list[Any]]:
    return {
        **_columns(settlements, "fact_id", "settlement"),
        "settled_at": [row.at if row.settlement else None for row in settlements],
        "settled_by": [row.event_id if row.settlement else None for row in settlements],
    }


def _known_fact(row: TupleRow) -> KnownFact:
    fields = dict(zip(TimedFactState.__slots__, row[6:], strict=True))
    return KnownFact(fact_id=row[0], scope=cast("ScopeColumns", row[1:6]), state=TimedFactState(**fields))


def _scopes(scopes: Sequence[ScopeColumns]) -> dict[str, list[str]]:
    return {name: [scope[place] for scope in scopes] for place, name in enumerate(SCOPE_FIELDS)}
