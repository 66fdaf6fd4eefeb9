"""What `delete_all` with a filter deletes, in real tables."""

import json
from typing import Any

import pytest

from mnemolog.schemas.command import DeleteAll
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.filters import parse_filter
from tests.support.builders.commits import ALICE, BOB, added, commit, day, fact_id_at, pending
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

IMPORTED = {"source": {"name": "import"}}
KNOWN = commit(
    "t1",
    added("Alice lives in Bern.", key="home_city", value="Bern", category="identity", importance=0.9),
    added("Alice eats no nuts.", key="allergy", category="health", importance=0.9),
    metadata=IMPORTED,
)
LATER = commit("t2", added("Alice has a cat.", importance=0.3), at=day(5))
WAITING = commit("t3", pending("Alice lives in Rome.", fact_id_at(KNOWN), key="home_city"), at=day(6))
OF_BOB = commit("b1", added("Bob has a cat."), scope=BOB, metadata=IMPORTED)


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN, LATER, WAITING, OF_BOB)
    return CommandHarness(db)


async def deleted_texts(db: ProjectedDatabase, done: Commit) -> set[str]:
    """What a command deleted; with it lapses what waited for a confirmation against it."""
    deleted = {target for event in done.events if event.event == "fact_retracted" for target in event.targets}
    rows = await db.rows("SELECT fact_id, text FROM facts WHERE status NOT IN ('active', 'pending_confirmation')")
    assert deleted <= {fact_id for fact_id, _ in rows}
    return {text for fact_id, text in rows if fact_id in deleted}


@pytest.mark.parametrize(
    ("filters", "deleted"),
    [
        ({"metadata": {"source.name": "import"}}, {"Alice lives in Bern.", "Alice eats no nuts."}),
        ({"created_at": {"gte": day(5)}}, {"Alice has a cat.", "Alice lives in Rome."}),
        ({"state": "pending_confirmation"}, {"Alice lives in Rome."}),
        (
            {"OR": [{"categories": "health"}, {"memory": {"icontains": "CAT"}}]},
            {"Alice eats no nuts.", "Alice has a cat."},
        ),
        ({"user_id": "bob"}, set()),
        ({"state": {"ne": "active"}, "memory": {"contains": "cat"}}, set()),
    ],
)
async def test_the_open_facts_of_the_scope_that_a_filter_lets_through(
    db: ProjectedDatabase, harness: CommandHarness, filters: dict[str, Any], deleted: set[str]
) -> None:
    done = await harness.execute("c1", DeleteAll(filters=parse_filter(filters)), at=day(9))
    assert done.outcome == "done"
    assert await deleted_texts(db, done) == deleted


@pytest.mark.parametrize(("state", "deleted"), [("active", set()), ("expired", {"Alice has a ticket."})])
async def test_what_has_ended_is_not_active(
    db: ProjectedDatabase, harness: CommandHarness, state: str, deleted: set[str]
) -> None:
    await db.apply(commit("t4", added("Alice has a ticket.", valid_until=day(8)), at=day(7)))
    wanted = parse_filter({"state": state, "memory": {"contains": "ticket"}})
    done = await harness.execute("c1", DeleteAll(filters=wanted), at=day(9))
    assert await deleted_texts(db, done) == deleted


async def test_key_and_category_narrow_it_further(db: ProjectedDatabase, harness: CommandHarness) -> None:
    order = DeleteAll(key="home_city", filters=parse_filter({"metadata": {"source.name": "import"}}))
    done = await harness.execute("c1", order, at=day(9))
    assert await deleted_texts(db, done) == {"Alice lives in Bern."}


async def test_the_log_keeps_the_filter_and_names_the_facts(harness: CommandHarness) -> None:
    """So what was deleted does not depend on how a filter is read later."""
    order = DeleteAll(filters=parse_filter({"categories": "health", "created_at": {"lt": day(9).isoformat()}}))
    done = await harness.execute("c1", order, at=day(9))
    assert [target for event in done.events for target in event.named_ids] == [fact_id_at(KNOWN, 1)]
    kept = json.loads(done.to_bytes())
    assert kept["order"]["filters"] == {
        "categories": {"eq": "health"},
        "created_at": {"lt": day(9).isoformat().replace("+00:00", "Z")},
    }
    assert Commit.from_bytes(done.to_bytes()).order == order
    assert done.scope == ALICE
