"""Of what one statement ends, a plan is called off at once, and what has begun ends when the statement says."""

import pytest

from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.events import FactAdded
from tests.support.builders.commits import day
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    extracted_fact,
    home,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

ME = ScopeFilter(user_id="alice")
ROME, BERN, OSLO = "Mira lives in Rome.", "Mira moves to Bern on the 10th.", "Mira moves to Oslo on the 7th."


async def tell_plan(resolver: ResolverHarness) -> None:
    """She lives in Rome until the plan begins."""
    resolver.chat_model.set_replies(verdicts_by_text({BERN: TextVerdict("REPLACE", (ROME,))}))
    await resolver.resolve_turn(home(ROME), at=day(1))
    await resolver.resolve_turn(home(BERN, action_hint="update", event_time=day(10)), at=day(3))


async def held(resolver: ResolverHarness, at: float) -> list[str]:
    known = await facts_as_of(resolver.stored.conn, ME, believed_at=day(30), true_at=day(at))
    return [fact.text for fact in known if fact.action_hint != "retract"]


async def test_a_question_that_is_asked_again_does_the_same(resolver: ResolverHarness) -> None:
    await tell_plan(resolver)
    resolver.chat_model.set_replies("this is no JSON")
    (added,) = (await resolver.resolve_turn(home(OSLO, action_hint="update", event_time=day(7)), at=day(4))).events
    assert isinstance(added, FactAdded)
    assert added.unresolved
    resolver.chat_model.set_replies(verdicts_by_text({OSLO: TextVerdict("REPLACE", (ROME, BERN))}))
    decided = await resolver.resolve_turn(extracted_fact("Mira looks forward to it."), at=day(4.5))
    assert [event.event for event in decided.events] == ["fact_added", "fact_retracted", "conflict_resolved"]
    homes = [[text for text in await held(resolver, at) if text in (ROME, BERN, OSLO)] for at in (5, 8, 11)]
    assert homes == [[ROME], [OSLO], [OSLO]]
