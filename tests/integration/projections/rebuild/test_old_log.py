"""A log of an earlier version, with commands on a topic of their own, rebuilds to the tables of that version."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from psycopg.sql import SQL, Composed, Identifier

from mnemolog.projections.rebuild.digest import ComparedTable, compare_schemas, tables_of
from mnemolog.schemas.admission import parse_record, parse_turn
from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.old_commands import with_kind
from tests.support.harnesses.projected_database import ProjectedDatabase

DATA: Final = Path(__file__).parents[3] / "data"
ADDED_COLUMNS: Final = {
    "facts": {"ordinal", "action_hint"},
    "former_states": {"true_from"},
    "profiles": {"work", "relationships", "other"},
    "scopes": {"facts"},
}
"""Columns that later migrations added; the digests are of the columns and tables before.

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
            await connection.execute("CREATE SCHEMA v0_1")
            for table in [one for one in await tables_of(connection, "mnemolog") if one.name in expected]:
                await connection.execute(_copy_old_columns(table))
            compared = await compare_schemas(connection, "v0_1", "v0_1", on_progress=lambda _done, _total: None)
            await connection.rollback()
    assert {one.table: {"rows": one.live_rows, "digest": one.live_digest} for one in compared} == expected


def _copy_old_columns(table: ComparedTable) -> Composed:
    old = [Identifier(column) for column in table.columns if column not in ADDED_COLUMNS.get(table.name, ())]
    return SQL("CREATE TABLE {} AS SELECT {} FROM {}").format(
        Identifier("v0_1", table.name), SQL(", ").join(old), Identifier("mnemolog", table.name)
    )
