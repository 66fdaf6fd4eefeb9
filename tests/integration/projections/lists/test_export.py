"""Facts as JSON lines, from a real Postgres."""

import json

import pytest

from mnemolog.projections.queries import facts as export
from mnemolog.projections.queries.facts import exported_lines, facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters import parse_filter
from tests.support.builders.commits import added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.naive_filters import sample_commits

pytestmark = pytest.mark.postgres
EVERYBODY = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")


@pytest.mark.parametrize("filters", [{}, {"importance": {"gte": 0.5}}, {"state": "superseded"}, {"key": "nothing"}])
async def test_the_lines_are_the_facts_of_the_list_in_batches(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch, filters: dict[str, object]
) -> None:
    monkeypatch.setattr(export, "EXPORT_BATCH", 7)
    await db.apply(*sample_commits())
    wanted = parse_filter(filters)
    listed = await facts(db.conn, EVERYBODY, wanted, at=day(60))
    batches = [lines async for lines in exported_lines(db.conn, EVERYBODY, wanted, all_versions=False, at=day(60))]
    assert all(0 < len(lines) <= 7 for lines in batches)
    found = [json.loads(line) for lines in batches for line in lines]
    assert [one["id"] for one in found] == [str(fact.fact_id) for fact in listed]
    assert [one["structured_attributes"] for one in found] == [fact.structured_attributes for fact in listed]


async def db_cursors(db: ProjectedDatabase) -> list[str]:
    return [name for (name,) in await db.rows("SELECT name FROM pg_cursors WHERE name <> ''")]


async def test_what_is_stored_meanwhile_is_not_in_it(db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "EXPORT_BATCH", 1)
    await db.apply(commit("1", added("A."), added("B.")))
    texts = []
    async for lines in exported_lines(db.conn, EVERYBODY, parse_filter({}), all_versions=False, at=day(60)):
        texts += [json.loads(line)["text"] for line in lines]
        assert await db_cursors(db) == ["exported_facts"]  # the server keeps what has not been read
        await db.apply(commit(f"more {len(texts)}", added("C.")))
    assert texts == ["A.", "B."]
