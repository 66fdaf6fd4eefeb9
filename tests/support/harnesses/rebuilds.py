"""Logs to rebuild from, which lie elsewhere as Kafka's does, and rebuilds that a test interrupts."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from mnemolog.projections.rebuild.rebuild import Progress, RebuildReport, rebuild
from mnemolog.projections.rebuild.replay import LogOpener, LogSource
from mnemolog.projections.write.projector import LogRecord
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    fact_id_at,
    merged,
    replaced,
    skipped,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.projected_database import ProjectedDatabase

RECORDS = 25
"""In each partition of `fill_live_tables`."""


class InMemoryLog:
    """A `LogSource` over lists of values by partition; an empty value is a record that is missing."""

    def __init__(self, records: dict[int, list[bytes]]) -> None:
        self.records = records

    @property
    def opener(self) -> LogOpener:
        return partial(open_in_memory, self.records)

    async def partitions(self) -> list[int]:
        return list(self.records)

    async def end_offset(self, partition: int) -> int:
        return len(self.records.get(partition, []))

    async def read(self, partition: int, start: int, stop: int) -> AsyncIterator[LogRecord]:
        for offset in range(start, min(stop, len(self.records.get(partition, [])))):
            if value := self.records[partition][offset]:
                yield LogRecord(offset=offset, value=value)


@asynccontextmanager
async def open_in_memory(records: dict[int, list[bytes]]) -> AsyncIterator[InMemoryLog]:
    yield InMemoryLog(records)


def records_of(scope: Scope) -> list[bytes]:
    """Every kind of event, a repeated source, a stale target, bytes that are no commit, metadata, used tokens."""
    first = commit("1", added("Lives in Bern.", category="identity"), added("Tea."), added("A cat."), scope=scope)
    last = commit("2", replaced("Lives in Rome.", fact_id_at(first), category="identity"), scope=scope, at=day(1))
    metadata = {"numbers": [1, -0.5, 1e-7], "ä\u2028": {"b": None, "a": "\\ \x7f \n"}}
    used = Step(stage="extract", milliseconds=1, model="m", llm_calls=1, input_tokens=5)
    log: list[Commit | bytes] = [
        first,
        last,
        commit("3", skipped(fact_id_at(first, 1)), confirmed(fact_id_at(first, 2)), scope=scope, at=day(2)),
        commit("1", added("Never."), scope=scope, at=day(2)),
        commit("4", replaced("Lives in Oslo.", fact_id_at(first)), scope=scope, at=day(3)),
        b"no commit",
        commit("5", merged("Tea and a cat.", fact_id_at(first, 1), fact_id_at(first, 2)), scope=scope, at=day(4)),
        commit("6", contradicted("Lives in Nice.", fact_id_at(last), category="identity"), scope=scope, at=day(5)),
        commit("7", scope=scope, at=day(6)),
        commit("8", scope=scope, outcome="failed", reason="invalid_record", at=day(6)),
        *every_decision_log(scope),
        commit("with metadata", added("Milk."), scope=scope, metadata=metadata),
        commit("over", scope=scope, outcome="rejected", reason="limit", steps=[used]),
        commit(f"bytes of {scope.user_id}", scope=None, outcome="failed", reason="not_a_record"),
        commit("last", scope=scope, at=day(30)),
    ]
    return [one if isinstance(one, bytes) else one.to_bytes() for one in log]


async def fill_live_tables(db: ProjectedDatabase, partitions: Sequence[int] = (0, 2)) -> InMemoryLog:
    """Project a log with one user in each partition, alice and bob first."""
    scopes = [ALICE, BOB, *(Scope(user_id=f"user{partition}") for partition in partitions[2:])]
    log = InMemoryLog({one: records_of(scope) for one, scope in zip(partitions, scopes, strict=False)})
    for partition, values in log.records.items():
        await db.apply(*values, partition=partition)
    return log


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Raised by a test in the middle of a rebuild."""


async def interrupt(
    db: ProjectedDatabase, log: LogSource, *, step: str = "folding", after: int, full: bool = False
) -> None:
    """Rebuild until so much of a step is done."""

    def stop(progress: Progress) -> None:
        if progress.step == step and progress.done >= after:
            raise Interrupted

    with pytest.raises(Interrupted):
        await rebuild(db.url, log, full=full, progress=stop)


def kept(report: RebuildReport) -> set[str]:
    """The tables that were kept instead of written anew."""
    return {table.table for table in report.tables if table.kept}


def differing(report: RebuildReport) -> dict[str, tuple[int, set[str]]]:
    """Per table that differs the number of rows and the kinds of differences."""
    return {
        table.table: (table.differing, {one.kind for one in table.examples})
        for table in report.tables
        if not table.equal
    }


async def oids(db: ProjectedDatabase, *tables: str) -> list[int]:
    """What tells live tables from those that took their names."""
    query = "SELECT array_agg(oid::regclass::oid::bigint ORDER BY oid) FROM unnest(%s::text[]) AS oid"
    ((found,),) = await (await db.conn.execute(query, [[f"mnemolog.{table}" for table in tables]])).fetchall()
    return list(found)


async def schemas_of(db: ProjectedDatabase) -> list[str]:
    found = await db.rows("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'mnemolog%' ORDER BY 1")
    return [name for (name,) in found]


CATALOGUE: Final = """
    SELECT 'schema', '', nspacl::text, '', '', '' FROM pg_namespace WHERE nspname = %(schema)s::text
    UNION ALL
    SELECT 'relation', relname::text, relkind::text, relacl::text, obj_description(oid, 'pg_class'),
        pg_get_viewdef(oid) || coalesce(array_to_string(reloptions, ','), '')
    FROM pg_class WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('r', 'v')
    UNION ALL
    SELECT 'index', indexname::text, indexdef, '', '', '' FROM pg_indexes WHERE schemaname = %(schema)s::text
    UNION ALL
    SELECT 'function', proname::text, regexp_replace(pg_get_functiondef(oid), '[()]| AS "[a-z?]+"', '', 'g'),
        proacl::text, obj_description(oid, 'pg_proc'), ''
    FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
    UNION ALL
    SELECT 'trigger', tgname::text, pg_get_triggerdef(oid), tgenabled::text, '', ''
    FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = %(schema)s::regnamespace)
    UNION ALL
    SELECT 'constraint', conname::text, pg_get_constraintdef(oid), '', '', ''
    FROM pg_constraint WHERE connamespace = %(schema)s::regnamespace
    UNION ALL
    SELECT 'column', attrelid::regclass::text || '.' || attname, attacl::text, col_description(attrelid, a.attnum),
        a.attnum::text || attstorage::text, format_type(atttypid, atttypmod) || attnotnull
        || coalesce(pg_get_expr(adbin, adrelid), '')
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid
    LEFT JOIN pg_attrdef AS d ON adrelid = c.oid AND d.adnum = a.attnum
    WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('r', 'v')
    ORDER BY 1, 2, 3
"""
"""Postgres writes functions without the brackets and with the names of columns that it does not need."""


async def catalogue(connection: AsyncConnection[Any], schema: str = "mnemolog") -> list[list[str]]:
    """Everything that the schema has, with definitions, comments and grants; its name stands as SCHEMA."""
    async with connection.transaction():
        await connection.execute("SET LOCAL search_path = pg_catalog")  # so that every definition names its schema
        rows = await (await connection.execute(CATALOGUE, {"schema": schema})).fetchall()
    return [[str(value).replace(f"{schema}.", "SCHEMA.") for value in row] for row in rows]
