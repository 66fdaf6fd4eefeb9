"""Dumps of the database that pg_dump makes and pg_restore reads, as docs/how-to/back-up.md says."""

import subprocess
from pathlib import Path

import pytest

from mnemolog.embedded.postgres import install_folder
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from tests.support.builders.commits import added, commit, day, fact_id_at, replaced
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

DATA_ONLY = ("--data-only", "--exclude-table=*.schema_files")
READ = (
    "SELECT text, state FROM memory.facts ORDER BY text",
    "SELECT fact_id, words, embedding::text FROM mnemolog.facts ORDER BY fact_id",
    "SELECT source_id, body FROM mnemolog_journal.turn_journal ORDER BY source_id",
    "SELECT turn_id, words FROM memory.turns INNER JOIN mnemolog_journal.turn_journal ON turn_id = source_id",
)


def pg(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [install_folder() / "bin" / program, *arguments], capture_output=True, text=True, timeout=100, check=False
    )


async def fill(db: ProjectedDatabase) -> None:
    home = commit("old", added("Old tea."), at=day(1))
    await db.journal_turns("old")
    await db.apply(home, commit("new", replaced("Coke.", fact_id_at(home), ended_at=day(3)), at=day(4)))


async def check(restored_url: str, db: ProjectedDatabase) -> None:
    """The restored tables are those of `db`, and what their own copy of the log gives."""
    async with ProjectedDatabase.open(restored_url) as restored:
        for query in READ:
            rows = await restored.rows(query)
            assert rows == await db.rows(query)
            assert rows
        assert (await rebuild(restored.url, TableLogSource(restored.pool), verify_only=True)).equal
        await restored.apply(commit("later", added("Water."), at=day(5)))
        assert ("Water.", "current") in await restored.rows(READ[0])


async def test_a_whole_dump_is_restored_into_an_empty_database(
    db: ProjectedDatabase, database: str, empty_database: str, tmp_path: Path
) -> None:
    await fill(db)
    dump = str(tmp_path / "dump")
    assert pg("pg_dump", "--format=custom", f"--file={dump}", database).returncode == 0
    restored = pg("pg_restore", "--clean", "--if-exists", "--exit-on-error", f"--dbname={empty_database}", dump)
    assert restored.returncode == 0, restored.stderr
    await check(empty_database, db)


async def test_data_alone_are_restored_without_triggers(
    db: ProjectedDatabase, database: str, second_database: str, tmp_path: Path
) -> None:
    """The trigger of a fact's words finds none of its functions there: pg_restore takes all schemas off the path."""
    await fill(db)
    dump = str(tmp_path / "dump")
    assert pg("pg_dump", *DATA_ONLY, "--format=custom", f"--file={dump}", database).returncode == 0
    options = ("--data-only", "--single-transaction", f"--dbname={second_database}", dump)
    refused = pg("pg_restore", *options)
    assert "function fact_words" in refused.stderr
    restored = pg("pg_restore", "--disable-triggers", *options)
    assert restored.returncode == 0, restored.stderr
    await check(second_database, db)
