"""The copy of the log that the tables keep: the rows of `commits` and `memory_events`, which never change."""

from typing import Any, Final

from pydantic_core import to_json

from mnemolog.projections.sql import queries
from mnemolog.projections.write.rows import Changes, CommitRow, EventRow
from mnemolog.projections.write.table_writer import SCOPE_TYPES, Connection, Row, copy_binary, jsonb
from mnemolog.schemas.events import DecisionUndone
from mnemolog.schemas.scope import scope_columns

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


async def copy_log_rows(connection: Connection, changes: Changes) -> None:
    """Write the applied commits and their events. COPY is not possible inside a pipeline."""
    await copy_binary(connection, _SQL["copy_commits"], _COMMIT_TYPES, map(commit_row, changes.commits))
    await copy_binary(connection, _SQL["copy_events"], _EVENT_TYPES, map(event_row, changes.events))


def commit_row(row: CommitRow) -> Row:
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


def event_row(row: EventRow) -> Row:
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
