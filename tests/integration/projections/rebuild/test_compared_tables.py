"""How a rebuild compares the tables that it has made with the live ones, on a real Postgres."""

import pytest

from mnemolog.projections.rebuild import digest
from mnemolog.projections.rebuild.rebuild import Progress, rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from tests.support.builders.commits import added, commit
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


async def test_digests_do_not_depend_on_the_parts_in_which_tables_are_read(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.apply(*(commit(f"n{number}", added(f"Fact n{number}.")) for number in range(200)))
    whole = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    monkeypatch.setattr(digest, "BLOCKS_PER_JOB", 3)
    reported: list[Progress] = []
    in_parts = await rebuild(db.url, TableLogSource(db.pool), verify_only=True, progress=reported.append)
    assert in_parts.tables == whole.tables
    assert reported[-1].total > 2 * len(whole.tables)
    await db.rows("UPDATE facts SET text = 'Other.' WHERE text = 'Fact n0.' RETURNING 1")
    changed = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    assert [(one.table, one.differing) for one in changed.tables if not one.equal] == [("facts", 1)]


async def test_words_of_before_an_upgrade_are_no_difference_and_are_filled_anew(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("She plays violins.")))
    words = await db.rows("SELECT words FROM facts")
    await db.rows("UPDATE facts SET words = to_tsvector('english', text) RETURNING 1")
    assert await db.rows("SELECT words FROM facts") != words
    report = await rebuild(db.url, TableLogSource(db.pool))
    assert (report.equal, report.swapped) == (True, True)
    assert await db.rows("SELECT words FROM facts") == words
