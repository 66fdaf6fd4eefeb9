"""An end moves without a question to a model only where that is certain, and no guard would hold it back."""

from typing import Any

import pytest

from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Confirm, Correct, Edit
from mnemolog.schemas.facts import ExtractedFact
from tests.support.builders.commits import day, fact_id_at
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

ALICE = ScopeFilter(user_id="alice")
ROME, OSLO, BERN, LEFT = (
    "Mira lives in Rome.",
    "Mira lives in Oslo.",
    "Mira lives in Bern.",
    "Mira has left Rome.",
)
STAY = "Mira stays in Bern until the 20th."


def home(text: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, **{"key": "home_city", "subject": "Mira", "single_valued": True, **fields})


async def held(resolver: ResolverHarness, on: int) -> list[str]:
    known = await facts_as_of(resolver.stored.conn, ALICE, believed_at=day(40), true_at=day(on))
    return [fact.text for fact in known if fact.action_hint != "retract"]


def script(resolver: ResolverHarness, **verdicts: TextVerdict) -> None:
    resolver.chat_model.set_replies(verdicts_by_text(verdicts))


async def test_what_may_be_about_somebody_else_moves_no_end(resolver: ResolverHarness) -> None:
    """Ben's job, and the user's, while the scope knows no name of the user."""
    job: dict[str, Any] = {"key": "employer", "single_valued": True}
    acme, no, intel = "Ben works at Acme.", "Ben no longer works at Acme.", "The user works at Intel."
    script(resolver, **{no: TextVerdict("RETRACT", (acme,))})
    await resolver.resolve_turn(extracted_fact(acme, subject="Ben", **job), at=day(1))
    await resolver.resolve_turn(extracted_fact(no, subject="Ben", action_hint="retract", **job), at=day(16))
    for at in (18, 5):
        await resolver.resolve_turn(extracted_fact(intel, subject="user", **job), at=day(at))
    assert acme in await held(resolver, 10)


async def test_nor_the_end_of_a_humans_word(resolver: ResolverHarness, commands: CommandHarness) -> None:
    script(resolver, **{LEFT: TextVerdict("RETRACT", (ROME,))})
    bern = fact_id_at(await resolver.resolve_turn(home(BERN), at=day(1)))
    corrected = Correct(edit=Edit(fact_id=bern, text=ROME, true_from=day(1)))
    await commands.execute("c1", corrected, at=day(2))
    left = fact_id_at(await resolver.resolve_turn(home(LEFT, action_hint="retract"), at=day(16)))
    await commands.execute("c2", Confirm(fact_ids=(left,)), at=day(17))
    for at in (20, 5):
        await resolver.resolve_turn(home(OSLO), at=day(at))
    assert ROME in await held(resolver, 10)


async def test_nor_does_a_guess_move_the_end_of_what_is_certain(resolver: ResolverHarness) -> None:
    guess = "Mira perhaps lives in Bern."
    script(resolver, **{OSLO: TextVerdict("REPLACE", (ROME,)), guess: TextVerdict("REPLACE", (ROME, OSLO))})
    await resolver.resolve_turn(home(ROME), at=day(1))
    await resolver.resolve_turn(home(OSLO), at=day(20))
    await resolver.resolve_turn(home(guess, certainty="speculation"), at=day(5))
    assert ROME in await held(resolver, 10)


async def test_nor_does_what_holds_for_a_term(resolver: ResolverHarness) -> None:
    script(resolver, **{LEFT: TextVerdict("RETRACT", (ROME,))})
    await resolver.resolve_turn(home(ROME), at=day(1))
    await resolver.resolve_turn(home(LEFT, action_hint="retract"), at=day(16))
    for at in (18, 5):
        await resolver.resolve_turn(home(STAY, valid_until=day(20)), at=day(at))
    assert ROME in await held(resolver, 10)


async def test_a_stay_takes_no_place_of_a_home(resolver: ResolverHarness) -> None:
    script(resolver, **{OSLO: TextVerdict("REPLACE", (ROME,)), STAY: TextVerdict("CONTRADICT", (OSLO,))})
    await resolver.resolve_turn(home(ROME), at=day(1))
    await resolver.resolve_turn(home(OSLO, certainty="strong"), at=day(5))
    await resolver.resolve_turn(home(STAY, valid_until=day(20)), at=day(8))
    assert ROME in await held(resolver, 30)


async def test_a_plan_that_was_replaced_before_it_came_never_was_true(resolver: ResolverHarness) -> None:
    """Bern was planned on the 5th; that it was Rome on the 3rd comes late."""
    rome, bern = "Mira moves to Rome on the 20th.", "Mira moves to Bern on the 25th."
    script(resolver, **{rome: TextVerdict("REPLACE", (bern,)), bern: TextVerdict("REPLACE", (rome,))})
    await resolver.resolve_turn(home(bern, action_hint="update", event_time=day(25)), at=day(5))
    await resolver.resolve_turn(home(rome, action_hint="update", event_time=day(20)), at=day(3))
    assert [await held(resolver, on) for on in (22, 30)] == [[], [bern]]
