"""What each command does to real tables, and that a refused one changes nothing."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from mnemolog.projections.queries.facts import fact
from mnemolog.schemas.command import (
    CommandPayload,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    Feedback,
    Reject,
    Resolve,
    SetPolicy,
    Undo,
    Update,
    tenant_scope,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    BOB,
    added,
    commit,
    corrected,
    day,
    fact_id_at,
    pending,
    pseudo_random_vector,
    replaced,
)
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

KNOWN = commit(
    "t1",
    added("Alice lives in Bern.", key="home_city", value="Bern", category="identity", subject="Alice"),
    added("Alice has a cat."),
    added("Alice eats no nuts.", category="health", key="allergy"),
)
BERN, CAT, NUTS = (fact_id_at(KNOWN, ordinal) for ordinal in range(3))
BOBS = commit("b1", added("Bob's secret is 4711."), scope=BOB)
SECRET = fact_id_at(BOBS)


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN, BOBS)
    return CommandHarness(db)


def edit(fact_id: UUID, text: str, **fields: Any) -> Edit:
    return Edit(fact_id=fact_id, text=text, **fields)


async def test_a_first_id_stands_for_its_fact_through_all_edits_and_metadata_stay(harness: CommandHarness) -> None:
    told = commit("m1", added("Alice bakes bread on Sundays."), at=day(0.5), metadata={"shelf": "kitchen", "rank": 3})
    await harness.stored.apply(told)
    first, shelf = fact_id_at(told), {"shelf": "kitchen", "rank": 3}
    orders: list[tuple[CommandPayload, dict[str, Any]]] = [
        (Update(edits=(edit(first, "Alice bakes rolls on Sundays."),)), shelf),
        (Correct(edit=edit(first, "Alice bakes cakes on Sundays.")), shelf),
        (Correct(edit=edit(first, "Alice bakes pies on Sundays.", metadata={"shelf": "cellar"})), {"shelf": "cellar"}),
        (Correct(edit=edit(first, "Alice bakes buns on Sundays.", metadata={})), {}),
    ]
    for number, (order, metadata) in enumerate(orders):
        done = await harness.execute(f"c{number}", order, at=day(1 + number))
        assert (done.outcome, str(first) in done.detail) == ("done", number > 0), done.detail
        known = await fact(harness.stored.conn, "default", first)
        assert (known.fact_id, known.former_id, known.metadata) == (fact_id_at(done), first, metadata)
        assert (known.text, known.status) == (done.events[0].new_fact and done.events[0].new_fact.text, "active")
    undone = await harness.execute("u1", Undo(source_id="c3"), at=day(6))
    assert (undone.outcome, (await fact(harness.stored.conn, "default", first)).text) == (
        "done",
        "Alice bakes pies on Sundays.",
    )
    deleted = await harness.execute("d1", Delete(fact_ids=(first,)), at=day(7))
    assert (deleted.outcome, str(first) in deleted.detail) == ("done", True)
    last = await fact(harness.stored.conn, "default", first)
    assert (last.text, last.status) == ("Alice bakes pies on Sundays.", "retracted")
    again = await harness.execute("d2", Delete(fact_ids=(first,)), at=day(8))
    assert (again.outcome, again.reason) == ("rejected", "closed_fact")


async def test_everything_of_a_scope_or_of_a_key_or_category_can_be_deleted(harness: CommandHarness) -> None:
    waiting = commit("t2", pending("Alice lives in Chur.", BERN, key="home_city"), at=day(0.5))
    elsewhere = commit("t3", added("Alice uses an app."), scope=Scope(user_id="alice", app_id="app"))
    await harness.stored.apply(waiting, elsewhere)
    nothing, cat, nuts, bern = "Alice uses an app.", "Alice has a cat.", "Alice eats no nuts.", "Alice lives in Bern."
    steps: list[tuple[DeleteAll, list[str], int]] = [
        (DeleteAll(category="finance"), [nuts, cat, bern], 1),
        (DeleteAll(category="health"), [cat, bern], 1),
        (DeleteAll(key="home_city"), [cat], 0),
        (DeleteAll(), [], 0),
    ]
    for number, (order, left, waits) in enumerate(steps):
        done = await harness.execute(f"c{number}", order, at=day(1))
        assert done.outcome == "done"
        assert await harness.texts_with_status() == sorted([*left, nothing])
        cases = "SELECT count(*) FROM pending_confirmations WHERE settled_at IS NULL"
        assert await harness.stored.rows(cases) == [(waits,)]
    assert await harness.texts_with_status(scope=BOB) == ["Bob's secret is 4711."]


async def test_more_than_one_commit_holds_is_refused(harness: CommandHarness) -> None:
    many = [added(f"Fact {number}.", category="other", vector=pseudo_random_vector(number, 3)) for number in range(700)]
    stored = [commit(f"m{part}", *many) for part in range(3)]
    await harness.stored.apply(*stored)
    refused = await harness.execute("c1", DeleteAll(), at=day(1))
    assert (refused.outcome, refused.reason) == ("rejected", "invalid_command")
    assert "2103 facts" in refused.detail
    done = await harness.execute("c2", DeleteAll(category="identity"), at=day(1))
    assert done.outcome == "done"
    edits = tuple(edit(fact_id_at(stored[0], number), f"{number} " + 7990 * "x") for number in range(100))
    refused = await harness.execute("c3", Update(edits=edits), at=day(1))
    assert (refused.reason, "fewer items" in refused.detail) == ("invalid_command", True)


async def test_a_policy_holds_for_its_scope_or_for_its_tenant(harness: CommandHarness) -> None:
    order = SetPolicy(level="tenant", policy=Policy(add_only=True))
    assert (await harness.execute("c2", order, at=day(1), scope=tenant_scope("default"))).outcome == "done"
    assert (await harness.execute("c3", SetPolicy(level="scope", policy=Policy()), at=day(1))).outcome == "done"
    rows = await harness.stored.rows("SELECT tenant, user_id, policy -> 'add_only' FROM policies ORDER BY user_id")
    assert rows == [("default", "", True), ("default", "alice", None)]


async def test_feedback_is_kept_in_the_log_and_changes_no_fact(harness: CommandHarness) -> None:
    before = await all_rows(harness)
    given = Feedback(shown=(BERN, uuid4()), used=(BERN,), query="Where does Alice live?")
    assert (await harness.execute("c1", given, at=day(1))).outcome == "done"
    assert await all_rows(harness) == before
    rows = await harness.stored.rows("SELECT order_kind, record FROM commits WHERE source_id = 'c1'")
    assert [(kind, Commit.from_bytes(record).order) for kind, record in rows] == [("feedback", given)]
    assert await harness.stored.rows("SELECT count(*) FROM memory_events WHERE source_id = 'c1'") == [(0,)]


async def test_what_cannot_be_done_is_refused_as_a_whole(harness: CommandHarness) -> None:
    """The faults of each command are those of unit tests; here the facts are those of the tables."""
    human = commit("h1", corrected("Alice lives in Thun.", BERN), at=day(0.5))
    waiting = commit("t8", pending("Alice has a dog.", CAT), at=day(0.5))
    await harness.stored.apply(human, waiting)
    before, nobody = await all_rows(harness), UUID(int=7)
    cases: list[tuple[CommandPayload, str]] = [
        (Update(edits=(edit(nobody, "No."), edit(NUTS, "Yes."))), "unknown_fact"),
        (Update(edits=(edit(SECRET, "No."), edit(NUTS, "Yes."))), "foreign_fact"),
        (Update(edits=(edit(fact_id_at(human), "No."), edit(NUTS, "Yes."))), "human_word"),
        (Correct(edit=edit(fact_id_at(waiting), "No.")), "closed_fact"),
        (Delete(fact_ids=(NUTS, nobody, SECRET, BERN)), "foreign_fact"),
        (Confirm(fact_ids=(NUTS, BERN)), "closed_fact"),
        (Reject(fact_ids=(fact_id_at(waiting), NUTS)), "not_pending"),
        (Resolve(fact_id=NUTS, action="keep_both"), "not_unresolved"),
    ]
    for number, (order, reason) in enumerate(cases):
        refused = await harness.execute(f"c{number}", order, at=day(1))
        assert (refused.outcome, refused.reason, refused.events) == ("rejected", reason, ())
        assert "secret" not in refused.detail
    assert await all_rows(harness) == before
    done = await harness.execute("c", Correct(edit=edit(fact_id_at(human), "Alice lives in Visp.")), at=day(1))
    assert done.outcome == "done"  # a human may correct a human


async def test_all_versions_before_a_fact_are_known_by_their_times(harness: CommandHarness) -> None:
    second = commit("t2", replaced("Alice lives in Rome.", BERN), at=day(2))
    third = commit("t3", replaced("Alice lives in Oslo.", fact_id_at(second)), at=day(4))
    late = commit("t4", added("Alice lives in Chur.", true_from=day(1)), at=day(5))
    ended = late.events[0].model_copy(update={"ended_at": day(2), "ended_by": fact_id_at(second)})
    await harness.stored.apply(second, third, late.model_copy(update={"events": (ended,)}))
    since = await harness.known.version_starts([fact_id_at(third), CAT])
    assert since == {fact_id_at(third): (day(0), day(1), day(2), day(4)), CAT: (day(0),)}


async def all_rows(harness: CommandHarness) -> list[tuple[object, ...]]:
    return await harness.stored.rows("SELECT to_jsonb(f)::text FROM facts AS f ORDER BY fact_id")
