"""How sure a fact is, what raises that, and what waits for a second word before it may overwrite."""

from datetime import timedelta
from typing import Final

import pytest

from mnemolog.projections.queries.pending import PendingFact
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.servers.scripted_model import ScriptedDecision

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

OLD: Final = "Ben is a vegetarian."
NEW: Final = "Ben loves a good steak."
MEAT: Final = "meat on the plate"
STEAK: Final = "meat on the grill"
SURE: Final = 0.95
STRONG: Final = 0.80


async def test_a_less_certain_denial_of_a_sure_fact_waits_for_another_turn(harness: PipelineHarness) -> None:
    ben = harness.person("ben")
    await ben.say(fact_json(OLD, MEAT, category="soft_preference", key="diet"))
    said = fact_json(NEW, STEAK, category="soft_preference", certainty="strong")
    result = await ben.say(said, decisions={NEW: ScriptedDecision("CONTRADICT", (OLD,))})
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
    hits = (await harness.memory.search("Ben loves steak", user_id=ben.name)).hits
    assert {hit.fact.text: hit.fact.status for hit in hits} == {OLD: "active", NEW: "pending_confirmation"}
    profile = await harness.memory.profile(user_id=ben.name)
    assert [entry["text"] for entry in profile.soft_preferences] == [OLD]
    await harness.memory.add("Ben loves a good steak.", user_id=ben.name, turn_id=result.turn_id)
    steak = fact_json("Ben had a steak again.", "meat from the grill")
    again = await ben.say(
        steak, decisions={steak["text"]: ScriptedDecision("KEEP", (NEW,))}, overrides={"conflict": 0.1}
    )
    assert [memory.event for memory in again.changes] == ["pending_confirmed"], "not by the same turn"
    facts = await ben.facts()
    assert (facts[OLD]["status"], facts[OLD]["believed_to"] is None) == ("archived", False)
    confirmed = pytest.approx(STRONG + 0.25 * (1 - STRONG))
    assert (facts[NEW]["status"], facts[NEW]["confidence"]) == ("active", confirmed)
    assert await harness.memory.pending(user_id=ben.name) == []
