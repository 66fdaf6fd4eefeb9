"""How sure a fact is, what raises that, and what waits for a second word before it may overwrite."""

from datetime import timedelta
from typing import Any, Final

import pytest

from mnemolog.projections.queries.pending import PendingFact
from mnemolog.projections.queries.results import WriteResult
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import Person, PipelineHarness
from tests.support.servers.scripted_model import ScriptedDecision

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

OLD: Final = "Ben is a vegetarian."
NEW: Final = "Ben loves a good steak."
MEAT: Final = "meat on the plate"
STEAK: Final = "meat on the grill"
SURE: Final = 0.95


def confirmed_confidence(confidence: float) -> Any:
    """What a confirmation makes of a confidence."""
    return pytest.approx(confidence + 0.25 * (1 - confidence))


async def contradicted(ben: Person, **second: Any) -> WriteResult:
    """Something sure is denied by one statement."""
    await ben.say(fact_json(OLD, MEAT, category="soft_preference", key="diet"))
    return await ben.say(
        fact_json(NEW, STEAK, category="soft_preference", **second),
        decisions={NEW: ScriptedDecision("CONTRADICT", (OLD,))},
    )


async def test_one_statement_does_not_contradict_what_is_sure(harness: PipelineHarness) -> None:
    ben = harness.person("ben")
    result = await contradicted(ben)
    assert (result.facts_pending, result.facts_added, result.facts_deleted) == (1, 0, 0)
    assert await ben.statuses() == {OLD: "active", NEW: "pending_confirmation"}
    (waiting,) = await harness.memory.pending(user_id=ben.name)
    assert isinstance(waiting, PendingFact)
    assert (waiting.fact.text, waiting.fact.excerpt, waiting.action) == (NEW, NEW, "contradict")
    assert [(one.text, one.confidence) for one in waiting.challenged] == [(OLD, SURE)]
    assert (waiting.guard, waiting.verdict, waiting.needs_human) == ("high_confidence", "CONTRADICT", False)
    assert waiting.age > timedelta(0)
    assert result.trace is not None
    (decided,) = result.trace.decisions
    assert [(one.text, one.confidence) for one in decided.before] == [(OLD, SURE)]


async def test_what_is_pending_is_found_and_marked_and_stays_out_of_the_profile(harness: PipelineHarness) -> None:
    ben = harness.person("ben-profile")
    await contradicted(ben)
    hits = (await harness.memory.search("Ben loves steak", user_id=ben.name)).hits
    assert {hit.fact.text: hit.fact.status for hit in hits} == {OLD: "active", NEW: "pending_confirmation"}
    profile = await harness.memory.profile(user_id=ben.name)
    assert [entry["text"] for entry in profile.soft_preferences] == [OLD]
    assert [fact.text for fact in await harness.memory.facts(user_id=ben.name)] == [OLD]
    await ben.run_command("confirm", await ben.fact_id(NEW))
    profile = await harness.memory.profile(user_id=ben.name)
    assert [entry["text"] for entry in profile.soft_preferences] == [NEW]


async def test_a_second_turn_confirms_it_but_not_the_same_turn_again(harness: PipelineHarness) -> None:
    ben = harness.person("ben-second")
    result = await contradicted(ben)
    steak = fact_json("Ben had a steak again.", "meat from the grill")
    accepted = await harness.memory.add("Ben loves a good steak.", user_id=ben.name, turn_id=result.turn_id)
    assert accepted.turn_id == result.turn_id
    assert (await ben.statuses())[NEW] == "pending_confirmation"
    result = await ben.say(
        steak, decisions={steak["text"]: ScriptedDecision("KEEP", (NEW,))}, overrides={"conflict": 0.1}
    )
    assert [memory.event for memory in result.memories] == ["pending_confirmed"]
    facts = await ben.facts()
    assert (facts[OLD]["status"], facts[OLD]["believed_to"] is None) == ("archived", False)
    assert (facts[NEW]["status"], facts[NEW]["confidence"]) == ("active", confirmed_confidence(SURE))
    assert await harness.memory.pending(user_id=ben.name) == []
