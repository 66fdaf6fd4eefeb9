"""A log of turns and commands that a worker wrote rebuilds to the tables that it had."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

from mnemolog.projections.rebuild.digest import ComparedTable, tables_of
from mnemolog.schemas.admission import Refusal, parse_record
from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn
from tests.support.harnesses.projected_database import ProjectedDatabase

DATA: Final = Path(__file__).parents[3] / "data"


def records(topic: str) -> Iterator[tuple[int, bytes]]:
    """The partitions and values of a topic, in the order of the log."""
    with gzip.open(DATA / "golden_log.jsonl.gz", "rt") as lines:
        for record in map(json.loads, lines):
            if record["topic"] == topic:
                yield record["partition"], base64.b64decode(record["value"])


def test_the_records_decode_as_turns_and_commands() -> None:
    parsed = [parse_record(value, position="p") for _, value in records("conversation_turns")]
    turns = [one for one in parsed if isinstance(one, Turn)]
    commands = [one for one in parsed if isinstance(one, Command)]
    assert (len(turns), len(commands)) == (42, 9)
    assert [one.reason for one in parsed if isinstance(one, Refusal)] == ["not_a_record"]  # half a line
    assert {command.order.kind for command in commands} == {
        *("undo", "expire", "correct", "delete", "update", "set_policy", "delete_all", "confirm")
    }


@pytest.mark.postgres
async def test_the_log_rebuilds_to_equal_tables(database: str) -> None:
    expected: dict[str, dict[str, Any]] = json.loads((DATA / "golden_log.digests.json").read_text())
    async with ProjectedDatabase.open(database) as stored:
        for partition in {partition for partition, _ in records("memory_events")}:
            await stored.apply(
                *(value for at, value in records("memory_events") if at == partition), partition=partition
            )
        async with stored.pool.connection() as connection:
            await connection.execute("SET LOCAL datestyle = 'ISO, YMD'")
            tables = [table for table in await tables_of(connection, "mnemolog") if table.name in expected]
            found = {table.name: await _digest(connection, table) for table in tables}
    assert found == expected


DIGEST: Final = """
WITH hashed AS (SELECT sha256(convert_to(ROW({columns})::text, 'UTF8')) AS hash FROM {table}),
parts AS (
    SELECT get_byte(hash, 0) AS part, sha256(string_agg(hash, ''::bytea ORDER BY hash)) AS hash, count(*) AS rows
    FROM hashed
    GROUP BY part
)
SELECT
    coalesce(sum(rows), 0)::bigint,
    encode(sha256(coalesce(string_agg(hash, ''::bytea ORDER BY part), ''::bytea)), 'hex')
FROM parts
"""
"""SHA-256 over the texts of rows: the same in every version of Postgres."""
LONG_COLUMNS: Final = {"embedding": "sha256(halfvec_send(embedding))", "record": "sha256(record)"}


async def _digest(connection: AsyncConnection[Any], table: ComparedTable) -> dict[str, Any]:
    names = [one for one in table.columns if one != "words"]  # stems differ between versions of Postgres
    columns = [SQL(LONG_COLUMNS[one]) if one in LONG_COLUMNS else Identifier(one) for one in names]
    query = SQL(DIGEST).format(columns=SQL(", ").join(columns), table=Identifier("mnemolog", table.name))
    ((rows, digest),) = await (await connection.execute(query)).fetchall()
    return {"rows": rows, "digest": digest}
