"""Many rows at once: what a fold needs from the tables, and what it made into them.

Works in the schema that comes first in the connection's search_path, so that a rebuild uses it as well.
The connection has to know halfvec (`mnemolog.projections.db.pools.prepare`).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb
from pydantic_core import to_json

from mnemolog.projections.sql import queries
from mnemolog.projections.write.rows import (
    Changes,
    CommitRow,
    EventRow,
    FactRow,
    FormerStateRow,
    KnownFact,
    PendingRow,
    PolicyRow,
    RejectionRow,
    RelationRow,
    SettlementRow,
    TimedFactState,
    UndoneRow,
)
from mnemolog.projections.write.state import FoldState, LastAttempt, fact_ids_of_commits, source_of
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import DecisionUndone
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import SCOPE_FIELDS, ScopeColumns, scope_columns

Connection = AsyncConnection[TupleRow]
Row = tuple[Any, ...]

PROFILE_BATCH: Final = 500
WITHOUT_VECTOR_DATA: Final[Any] = {"fact": {"vector": {"data"}}}
_SQL: Final = queries("projector")
_SCOPE_TYPES: Final = ["text"] * 5
_COMMIT_TYPES: Final = [
    *["int4", "int8", "text", "text", "text"],
    *_SCOPE_TYPES,
    *["text", "text", "text", "timestamptz", "timestamptz", "timestamptz", "text", "int4", "int8", "int8"],
    *["int4", "float8", "int8", "int8", "int4", "jsonb", "jsonb", "bytea", "int4", "text", "text", "jsonb"],
]
_EVENT_TYPES: Final = [
    *["uuid", "int4", "int8", "int4", "text", "text"],
    *_SCOPE_TYPES,
    *["text", "uuid", "uuid[]", "timestamptz", "timestamptz", "text", "text", "bool", "jsonb"],
    *["text", "text", "text", "uuid"],
]
_FACT_TYPES: Final = [
    *["uuid", "text"],
    *_SCOPE_TYPES,
    *["text", "text", "text", "text", "text", "text", "float8", "text", "float8", "text", "text", "text", "text"],
    *["bool", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz"],
    *["timestamptz", "int4", "timestamptz", "uuid[]", "uuid", "text", "bool", "text", "text", "halfvec", "jsonb"],
    *["text", "bool", "timestamptz", "timestamptz", "timestamptz", "int4"],
]
_FORMER_STATE_TYPES: Final = [
    *["uuid", "uuid", "timestamptz", "timestamptz", "text", "float8", "int4"],
    *["timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "uuid", "bool"],
]
_RELATION_TYPES: Final = ["uuid", "uuid", "text", "uuid", "timestamptz"]
_PENDING_TYPES: Final = [
    *["uuid", "text"],
    *_SCOPE_TYPES,
    *["uuid", "uuid[]", "text", "timestamptz", "text", "bool", "timestamptz", "timestamptz", "text", "uuid"],
]
_REJECTION_TYPES: Final = ["int4", "int8", "int4", "text", "text", "text", "text", "bytea"]


async def load_state(connection: Connection, commits: Sequence[Commit]) -> FoldState:
    """What a fold of `commits` has to know; inside a pipeline that is one round trip."""
    sources = [source_of(commit) for commit in commits]
    owners, source_ids = [owner for owner, _ in sources], [source_id for _, source_id in sources]
    asked = {"owners": owners, "source_ids": source_ids}
    applied = await connection.execute(_SQL["applied"], asked, binary=True)
    facts = await connection.execute(_SQL["known_facts"], {"fact_ids": fact_ids_of_commits(commits)}, binary=True)
    known = [_known_fact(row) for row in await facts.fetchall()]
    return FoldState(
        applied={
            (owner, source_id): LastAttempt(number=number, retryable=retryable)
            for owner, source_id, number, retryable in await applied.fetchall()
        },
        facts={fact.fact_id: fact for fact in known},
    )


async def write_changes(connection: Connection, changes: Changes) -> None:
    """Write rows, changed facts and scope versions; the profiles are left to `refresh_profiles`."""
    await copy_rows(connection, changes)
    async with connection.pipeline():
        await update_rows(connection, changes)


async def copy_rows(connection: Connection, changes: Changes) -> None:
    """Write the rows that are new. COPY is not possible inside a pipeline."""
    await _copy(connection, "copy_commits", _COMMIT_TYPES, map(_commit_row, changes.commits))
    await _copy(connection, "copy_events", _EVENT_TYPES, map(_event_row, changes.events))
    await _copy(connection, "copy_facts", _FACT_TYPES, map(_fact_row, changes.facts))
    await _copy(connection, "copy_former_states", _FORMER_STATE_TYPES, map(_former_state_row, changes.former_states))
    await _copy(connection, "copy_relations", _RELATION_TYPES, map(_relation_row, changes.relations))
    await _copy(connection, "copy_pending", _PENDING_TYPES, map(_pending_row, changes.pending))
    await _copy(connection, "copy_rejections", _REJECTION_TYPES, map(_rejection_row, changes.rejections))


async def update_rows(connection: Connection, changes: Changes) -> None:
    """Write what changed of rows that stood before, and the versions of the scopes."""
    if changes.updates:
        await connection.execute(_SQL["update_facts"], _updates(changes.updates))
    if changes.settlements:
        await connection.execute(_SQL["settle_pending"], _settlements(changes.settlements))
    if undone := [row for row in changes.undone if row.undone_by is not None]:
        await connection.execute(_SQL["undo_events"], _undone(undone))
    if reinstated := [row.event_id for row in changes.undone if row.undone_by is None]:
        await connection.execute(_SQL["reinstate_events"], {"event_id": reinstated})
    if changes.policies:
        await connection.execute(_SQL["set_policies"], _policies(changes.policies))
    if changes.scope_increments:
        steps = {
            "owner": [step.owner for step in changes.scope_increments],
            "commits": [step.commits for step in changes.scope_increments],
        }
        await connection.execute(
            _SQL["step_scopes"], steps | _scopes([step.scope for step in changes.scope_increments])
        )


async def refresh_profiles(connection: Connection, scopes: Sequence[ScopeColumns]) -> None:
    """Derive the profiles of `scopes` anew, in one statement."""
    if scopes:
        await connection.execute(_SQL["refresh_profiles"], _scopes(scopes))


async def refresh_all_profiles(connection: Connection) -> None:
    """Derive every profile anew, some hundred at a time."""
    cursor = await connection.execute(_SQL["all_scopes"])
    scopes = await cursor.fetchall()
    for start in range(0, len(scopes), PROFILE_BATCH):
        await refresh_profiles(connection, [_scope_columns(row) for row in scopes[start : start + PROFILE_BATCH]])


async def _copy(connection: Connection, name: str, types: Sequence[str], rows: Iterable[Row]) -> None:
    first = next(rows := iter(rows), None)
    if first is None:
        return
    async with connection.cursor() as cursor, cursor.copy(_SQL[name]) as copy:
        copy.set_types(types)
        await copy.write_row(first)
        for row in rows:
            await copy.write_row(row)


def _commit_row(row: CommitRow) -> Row:
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
        _jsonb(commit.provenance.model_dump_json()),
        _jsonb(to_json(commit.metadata)),
        *(row.record, commit.attempt, commit.order.kind if commit.order else None, commit.actor),
        _jsonb(to_json(commit.limit)) if commit.limit else None,
    )


def _event_row(row: EventRow) -> Row:
    commit, event, decision = row.commit, row.event, row.event.decision
    return (
        *(event.event_id, row.position.partition, row.position.offset, event.ordinal, commit.owner, commit.source_id),
        *scope_columns(commit.scope),
        *(event.event, row.fact_id, list(row.targets), commit.occurred_at, commit.decided_at),
        *(decision.by, decision.reason, row.stale),
        _jsonb(event.model_dump_json(exclude=WITHOUT_VECTOR_DATA)),
        *(decision.model, decision.prompt_version, decision.guard),
        event.undone if isinstance(event, DecisionUndone) else None,
    )


def _fact_row(row: FactRow) -> Row:
    commit, fact, state = row.commit, row.fact, row.state
    return (
        *(fact.fact_id, commit.owner),
        *scope_columns(commit.scope),
        *(fact.text, fact.search_text, fact.key, fact.value, fact.category, fact.importance_category),
        *(fact.importance, fact.certainty, state.confidence, fact.subject, fact.speaker, fact.excerpt, state.status),
        *(state.unresolved, fact.event_time, fact.valid_until, fact.true_from, state.true_to, state.closed_at),
        *(state.believed_from, state.believed_to, state.mention_count, state.last_confirmed_at),
        *(list(row.supersedes), state.superseded_by, commit.source_id, row.stale, fact.content_hash),
        *(fact.vector.model, fact.vector, _jsonb(to_json(commit.metadata))),
        *(fact.authority, fact.single_valued, commit.occurred_at, commit.decided_at, state.state_since, row.ordinal),
    )


def _former_state_row(row: FormerStateRow) -> Row:
    standing = (getattr(row.state, name) for name in FactState.model_fields)
    return (row.fact_id, row.event_id, row.state.state_since, row.until, *standing)


def _relation_row(row: RelationRow) -> Row:
    return (row.fact_id, row.related_id, row.relation, row.event_id, row.since)


def _pending_row(row: PendingRow) -> Row:
    commit, event, settled = row.commit, row.event, row.settlement_row
    closed = settled is not None and settled.settlement is not None
    return (
        *(event.fact.fact_id, commit.owner),
        *scope_columns(commit.scope),
        *(event.event_id, list(event.targets), event.action, event.ended_at, event.guard, event.needs_human),
        commit.decided_at,
        *((settled.at, settled.settlement, settled.event_id) if settled and closed else (None, None, None)),
    )


def _rejection_row(row: RejectionRow) -> Row:
    where = (row.position.partition, row.position.offset, row.item)
    return (*where, row.owner, row.source_id, row.reason, row.detail, row.record)


def _updates(updates: Sequence[KnownFact]) -> dict[str, list[Any]]:
    names = TimedFactState.__slots__
    columns: dict[str, list[Any]] = {name: [getattr(known.state, name) for known in updates] for name in names}
    return {"fact_id": [known.fact_id for known in updates], **columns}


def _settlements(settlements: Sequence[SettlementRow]) -> dict[str, list[Any]]:
    return {
        "fact_id": [row.fact_id for row in settlements],
        "settled_at": [row.at if row.settlement else None for row in settlements],
        "settlement": [row.settlement for row in settlements],
        "settled_by": [row.event_id if row.settlement else None for row in settlements],
    }


def _undone(rows: Sequence[UndoneRow]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in ("event_id", "undone_by", "since")}


def _policies(rows: Sequence[PolicyRow]) -> dict[str, list[Any]]:
    said: dict[str, list[Any]] = {
        "policy": [row.event.policy.model_dump_json() for row in rows],
        "event_id": [row.event.event_id for row in rows],
        "since": [row.since for row in rows],
    }
    return said | _scopes([row.scope for row in rows])


def _known_fact(row: TupleRow) -> KnownFact:
    fact_id, tenant, user_id, agent_id, app_id, run_id, *state = row
    fields = dict(zip(TimedFactState.__slots__, state, strict=True))
    return KnownFact(fact_id=fact_id, scope=(tenant, user_id, agent_id, app_id, run_id), state=TimedFactState(**fields))


def _scopes(scopes: Sequence[ScopeColumns]) -> dict[str, list[str]]:
    return {name: [scope[place] for scope in scopes] for place, name in enumerate(SCOPE_FIELDS)}


def _scope_columns(row: TupleRow) -> ScopeColumns:
    tenant, user_id, agent_id, app_id, run_id = row
    return tenant, user_id, agent_id, app_id, run_id


def _jsonb(text: str | bytes) -> Jsonb:
    """JSON that is text already."""
    return Jsonb(text, dumps=_identity)


def _identity(text: Any) -> Any:
    return text
