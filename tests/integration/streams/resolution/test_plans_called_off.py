"""Of what one statement ends, a plan is called off at once, and what has begun ends when the statement says."""

import pytest

from mnemolog.projections.queries.facts import facts, facts_as_of, profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactAdded
from tests.support.builders.commits import day
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.command_harness import CommandHarness
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


async def change_plan(resolver: ResolverHarness) -> Commit:
    """Another plan, of which the model says that it ends both."""
    resolver.chat_model.set_replies(verdicts_by_text({OSLO: TextVerdict("REPLACE", (ROME, BERN))}))
    return await resolver.resolve_turn(home(OSLO, action_hint="update", event_time=day(7)), at=day(4))


async def held(resolver: ResolverHarness, at: float) -> list[str]:
    known = await facts_as_of(resolver.stored.conn, ME, believed_at=day(30), true_at=day(at))
    return [fact.text for fact in known if fact.action_hint != "retract"]


async def test_what_is_so_ends_when_the_new_plan_begins_and_the_old_plan_is_listed_no_more_until_that_is_undone(
    resolver: ResolverHarness, commands: CommandHarness
) -> None:
    await tell_plan(resolver)
    changed = await change_plan(resolver)
    assert [await held(resolver, at) for at in (5, 8, 11)] == [[ROME], [OSLO], [OSLO]]
    assert [fact.text for fact in await facts(resolver.stored.conn, ME, at=day(5))] == [ROME, OSLO]
    upcoming = (await profile(resolver.stored.conn, ME, day(5))).upcoming
    assert [entry["text"] for entry in upcoming] == [OSLO]
    await commands.execute("c1", Undo(source_id=changed.source_id), at=day(5))
    assert [await held(resolver, at) for at in (8, 11)] == [[ROME], [BERN]]


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


async def test_an_announced_end_goes_on_in_what_is_merged(resolver: ResolverHarness) -> None:
    await resolver.resolve_turn(home(ROME), at=day(1))
    resolver.chat_model.set_replies([decision_json(1, "EXPIRE", 1, ended_at=day(20))])
    leaving = extracted_fact("Mira will leave Rome on the 20th.", action_hint="retract", valid_until=day(20))
    await resolver.resolve_turn(leaving, at=day(3))
    text = "Mira lives in Rome with Eva."
    resolver.chat_model.set_replies(verdicts_by_text({text: TextVerdict("MERGE", (ROME,), merged=text)}))
    await resolver.resolve_turn(home(text), at=day(5))
    assert await resolver.stored.rows(
        "SELECT text, true_to FROM facts WHERE status = 'active' AND key IS NOT NULL"
    ) == [(text, day(20))]
