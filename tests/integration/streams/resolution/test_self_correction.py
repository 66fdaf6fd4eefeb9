"""Who corrects themselves within a turn is believed: guards protect what was known before."""

from datetime import datetime

import pytest

from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactAdded, FactContradicted
from tests.support.builders.commits import day
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    home,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

ME = ScopeFilter(user_id="alice")
ROME, MILAN, OSLO = "Mira lives in Rome.", "Mira lives in Milan.", "Mira lives in Oslo."


async def rome_no_wait_milan(resolver: ResolverHarness, milan: TextVerdict, **verdicts: TextVerdict) -> Commit:
    said = {ROME: verdicts.get("rome", TextVerdict("ADD")), MILAN: milan}
    resolver.chat_model.set_replies(verdicts_by_text(said))
    return await resolver.resolve_turn(home(ROME), home(MILAN, action_hint="update"), at=day(1))


async def test_the_correction_holds_and_what_was_corrected_never_did(resolver: ResolverHarness) -> None:
    _, corrected = (await rome_no_wait_milan(resolver, TextVerdict("CONTRADICT", (ROME,)))).events
    assert isinstance(corrected, FactContradicted)
    assert await resolver.statuses() == {ROME: "archived", MILAN: "active"}


async def test_the_correction_ends_what_the_corrected_statement_had_ended(resolver: ResolverHarness) -> None:
    await resolver.resolve_turn(home(OSLO), at=day(0))
    rome = TextVerdict("REPLACE", (OSLO,))
    await rome_no_wait_milan(resolver, TextVerdict("CONTRADICT", (ROME,)), rome=rome)
    assert await resolver.statuses() == {OSLO: "superseded", ROME: "archived", MILAN: "active"}


@pytest.mark.parametrize("planned_for", [day(0.5), day(20)], ids=["it has begun by now", "it is still to begin"])
async def test_what_is_corrected_within_its_turn_never_held_before_a_plan_either(
    resolver: ResolverHarness, planned_for: datetime
) -> None:
    """The turn is of day 0.2, and comes when the plan to move to Oslo is known."""
    verdicts = {ROME: TextVerdict("REPLACE", (OSLO,)), MILAN: TextVerdict("CONTRADICT", (ROME,))}
    resolver.chat_model.set_replies(verdicts_by_text(verdicts))
    await resolver.resolve_turn(home(OSLO, value="Oslo", event_time=planned_for), at=day(0))
    await resolver.resolve_turn("Mira likes tea.", at=day(1))
    said = home(ROME, value="Rome"), home(MILAN, value="Milan", action_hint="update")
    rome, milan = (await resolver.resolve_turn(*said, at=day(0.2))).events
    assert rome.end_time == planned_for
    assert isinstance(milan, FactAdded)
    for at, city in ((0.3, MILAN), (25, OSLO)):
        known = await facts_as_of(resolver.stored.conn, ME, believed_at=day(30), true_at=day(at))
        assert [fact.text for fact in known if fact.key] == [city]
