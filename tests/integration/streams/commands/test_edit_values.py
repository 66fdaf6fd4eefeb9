"""The value of a fact that a command has edited: in the tables and in the profile it agrees with the text."""

from collections.abc import Callable
from typing import Any

import pytest

from mnemolog.projections.queries.facts import facts, profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import CommandPayload, Confirm, Correct, Edit, Update
from tests.support.builders.commits import ALICE, added, commit, day, fact_id_at, pending
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

MINE = ScopeFilter.of_scope(ALICE)
HOME: dict[str, Any] = {"key": "home_city", "value": "Munich", "category": "identity"}
KNOWN = commit("t1", added("Alice lives in Munich.", **HOME))
LIVES = fact_id_at(KNOWN)

Order = Callable[[Edit], CommandPayload]
ORDERS: list[Order] = [lambda edit: Correct(edit=edit), lambda edit: Update(edits=(edit,))]


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN)
    return CommandHarness(db)


@pytest.mark.parametrize("order", ORDERS, ids=["correct", "update"])
@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("Alice lives in Bonn.", None, "Bonn"),
        ("Alice lives in the old town of Bonn.", None, None),
        ("Alice lives in the old town of Bonn.", "Bonn", "Bonn"),
        ("Alice lives in Munich by the river.", None, "Munich"),
        ("Alice lives in Bonn.", "", None),
    ],
)
async def test_the_profile_has_the_value_of_the_new_text(
    harness: CommandHarness, order: Order, text: str, given: str | None, value: str | None
) -> None:
    await harness.execute("c1", order(Edit(fact_id=LIVES, text=text, value=given)), at=day(1))
    (entry,) = (await profile(harness.stored.conn, MINE, day(2))).identity
    assert (entry["text"], entry["key"], entry["value"]) == (text, "home_city", value)


@pytest.mark.parametrize("order", ORDERS, ids=["correct", "update"])
async def test_a_pending_fact_is_confirmed_before_it_is_edited(harness: CommandHarness, order: Order) -> None:
    held = commit("t2", pending("Alice lives in Bern.", LIVES, **HOME | {"value": "Bern"}), at=day(1))
    await harness.stored.apply(held)
    edit = Edit(fact_id=fact_id_at(held), text="Alice lives in Basel.")
    assert (await harness.execute("c1", order(edit), at=day(2))).reason == "closed_fact"
    await harness.execute("c2", Confirm(fact_ids=(edit.fact_id,)), at=day(2))
    await harness.execute("c3", order(edit), at=day(3))
    shown = {fact.text: fact.value for fact in await facts(harness.stored.conn, MINE, at=day(4))}
    assert shown == {"Alice lives in Basel.": "Basel"}
