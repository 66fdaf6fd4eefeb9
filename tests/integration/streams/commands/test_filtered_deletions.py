"""What `delete_all` with a filter deletes, in real tables."""

import json
from typing import Any
from uuid import UUID

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
TICKET = commit("t4", added("Alice has a ticket.", valid_until=day(8)), at=day(4))
OF_BOB = commit("b1", added("Bob has a cat."), scope=BOB, metadata=IMPORTED)
SELECTED: list[tuple[dict[str, Any], set[str]]] = [
    ({"metadata": {"source.name": "import"}}, {"Alice lives in Bern.", "Alice eats no nuts."}),
    ({"created_at": {"gte": day(5)}}, {"Alice has a cat.", "Alice lives in Rome."}),
    ({"state": "pending_confirmation"}, {"Alice lives in Rome."}),
    ({"OR": [{"categories": "health"}, {"memory": {"icontains": "CAT"}}]}, {"Alice eats no nuts.", "Alice has a cat."}),
    ({"user_id": "bob"}, set()),
    ({"state": {"ne": "active"}, "memory": {"contains": "cat"}}, set()),
    ({"state": "active", "memory": {"contains": "ticket"}}, set()),
    ({"state": "expired", "memory": {"contains": "ticket"}}, {"Alice has a ticket."}),
]


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN, LATER, WAITING, TICKET, OF_BOB)
    return CommandHarness(db)


async def test_the_open_facts_of_the_scope_that_a_filter_lets_through_are_selected(
    db: ProjectedDatabase, harness: CommandHarness
) -> None:
    texts: dict[UUID, str] = dict(await db.rows("SELECT fact_id, text FROM facts"))
    for filters, selected in SELECTED:
        wanted = parse_filter(filters)
        found = await harness.known.scope_facts(ALICE, key=None, category=None, wanted=wanted, at=day(9), limit=9)
        assert ({texts[one] for one in found.fact_ids}, found.total) == (selected, len(selected)), filters


async def test_a_key_narrows_a_filter_further_and_what_waited_holds(
    db: ProjectedDatabase, harness: CommandHarness
) -> None:
    order = DeleteAll(key="home_city", filters=parse_filter({"metadata": {"source.name": "import"}}))
    done = await harness.execute("c1", order, at=day(9))
    assert await db.rows("SELECT text FROM facts WHERE status = 'retracted'") == [("Alice lives in Bern.",)]
    assert ("Alice lives in Rome.",) in await db.rows("SELECT text FROM facts WHERE status = 'active'")
    assert [event.event for event in done.events] == ["fact_retracted", "pending_confirmed"]


async def test_the_log_keeps_the_filter_and_names_the_facts(harness: CommandHarness) -> None:
    """So what was deleted does not depend on how a filter is read later."""
    order = DeleteAll(filters=parse_filter({"categories": "health", "created_at": {"lt": day(9).isoformat()}}))
    done = await harness.execute("c1", order, at=day(9))
    assert [target for event in done.events for target in event.named_ids] == [fact_id_at(KNOWN, 1)]
    assert json.loads(done.to_bytes())["order"]["filters"] == {
        "categories": {"eq": "health"},
        "created_at": {"lt": day(9).isoformat().replace("+00:00", "Z")},
    }
    assert Commit.from_bytes(done.to_bytes()).order == order
