"""A log of an earlier version, with commands on a topic of their own, rebuilds to the tables of that version."""

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
from mnemolog.schemas.admission import parse_record, parse_turn
from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.old_commands import with_kind
from tests.support.harnesses.projected_database import ProjectedDatabase

DATA: Final = Path(__file__).parents[3] / "data"
ADDED_COLUMNS: Final = {
    "facts": {"ordinal", "action_hint", "words"},
    "former_states": {"true_from"},
    "memory_events": {"promoted_from"},
    "profiles": {"work", "relationships", "other"},
    "scopes": {"facts", "speakers"},
}
"""Columns that later migrations added, or that were generated; the digests are of the columns and tables before.

The one of `profiles` is that of a rebuild with the entries of one turn in the order of their statements, each with
`unresolved`.
"""


def records(topic: str) -> Iterator[tuple[int, bytes]]:
    """The partitions and values of a topic, in the order of the log."""
    with gzip.open(DATA / "log_v0_1.jsonl.gz", "rt") as lines:
        for record in map(json.loads, lines):
            if record["topic"] == topic:
                yield record["partition"], base64.b64decode(record["value"])


def test_the_records_of_both_topics_decode_as_turns_and_commands() -> None:
    turns = [parse_turn(value, position="p") for _, value in records("conversation_turns")]
    assert [parse_record(value, position="p") for _, value in records("conversation_turns")] == turns
    commands = [parse_record(with_kind(value), position="p") for _, value in records("memory_commands")]
    assert len(turns) == 43
    assert [turn.reason for turn in turns if not isinstance(turn, Turn)] == ["not_a_record"]  # half a line
    assert len(commands) == 9
    assert {command.order.kind for command in commands if isinstance(command, Command)} == {
        *("undo", "expire", "correct", "delete", "update", "set_policy", "delete_all", "confirm")
    }


@pytest.mark.postgres
async def test_the_log_rebuilds_to_equal_tables(database: str) -> None:
    expected: dict[str, dict[str, Any]] = json.loads((DATA / "log_v0_1.digests.json").read_text())
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
    old = [column for column in table.columns if column not in ADDED_COLUMNS.get(table.name, ())]
    columns = [SQL(LONG_COLUMNS[one]) if one in LONG_COLUMNS else Identifier(one) for one in old]
    query = SQL(DIGEST).format(columns=SQL(", ").join(columns), table=Identifier("mnemolog", table.name))
    ((rows, digest),) = await (await connection.execute(query)).fetchall()
    return {"rows": rows, "digest": digest}
