"""An end moves without a question to a model only where that is certain, and no guard would hold it back."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Confirm, Correct, Edit
from mnemolog.schemas.facts import ExtractedFact
from tests.support.builders.commits import day, fact_id_at
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    extracted_fact,
    home,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

ALICE = ScopeFilter(user_id="alice")
ROME, OSLO, BERN = (f"Mira lives in {city}." for city in ("Rome", "Oslo", "Bern"))
LEFT, STAY, GUESS = "Mira has left Rome.", "Mira stays in Bern until the 20th.", "Mira perhaps lives in Bern."
WORKS, LEAVES, INTEL_TOO = "Ben works at Acme.", "Ben no longer works at Acme.", "The user works at Intel."


def job(text: str, subject: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, key="employer", subject=subject, single_valued=True, **fields)


async def held(resolver: ResolverHarness, on: int) -> list[str]:
    known = await facts_as_of(resolver.stored.conn, ALICE, believed_at=day(40), true_at=day(on))
    return [fact.text for fact in known if fact.action_hint != "retract"]


@pytest.mark.parametrize(
    ("told", "verdicts", "kept", "on"),
    [
        pytest.param(
            [
                (job(WORKS, "Ben"), 1),
                (job(LEAVES, "Ben", action_hint="retract"), 16),
                *((job(INTEL_TOO, "user"), at) for at in (18, 5)),
            ],
            {LEAVES: TextVerdict("RETRACT", (WORKS,))},
            WORKS,
            10,
            id="the end of a fact that may be of somebody else, while no name of the user is known",
        ),
        pytest.param(
            [(home(ROME), 1), (home(OSLO), 20), (home(GUESS, certainty="speculation"), 5)],
            {OSLO: TextVerdict("REPLACE", (ROME,)), GUESS: TextVerdict("REPLACE", (ROME, OSLO))},
            ROME,
            10,
            id="the end of what is certain, by a guess",
        ),
        pytest.param(
            [
                (home(ROME), 1),
                (home(LEFT, action_hint="retract"), 16),
                *((home(STAY, valid_until=day(20)), at) for at in (18, 5)),
            ],
            {LEFT: TextVerdict("RETRACT", (ROME,))},
            ROME,
            10,
            id="an end, by what holds for a term",
        ),
    ],
)
async def test_without_a_question_nothing_moves(
    resolver: ResolverHarness,
    told: Sequence[tuple[ExtractedFact, int]],
    verdicts: Mapping[str, TextVerdict],
    kept: str,
    on: int,
) -> None:
    resolver.chat_model.set_replies(verdicts_by_text(verdicts))
    for fact, at in told:
        await resolver.resolve_turn(fact, at=day(at))
    assert kept in await held(resolver, on)


async def test_no_end_of_a_humans_word_moves_unasked(resolver: ResolverHarness, commands: CommandHarness) -> None:
    resolver.chat_model.set_replies(verdicts_by_text({LEFT: TextVerdict("RETRACT", (ROME,))}))
    bern = fact_id_at(await resolver.resolve_turn(home(BERN), at=day(1)))
    await commands.execute("c1", Correct(edit=Edit(fact_id=bern, text=ROME, true_from=day(1))), at=day(2))
    left = fact_id_at(await resolver.resolve_turn(home(LEFT, action_hint="retract"), at=day(16)))
    await commands.execute("c2", Confirm(fact_ids=(left,)), at=day(17))
    for at in (20, 5):
        await resolver.resolve_turn(home(OSLO), at=day(at))
    assert ROME in await held(resolver, 10)
