"""How sure a fact is, what raises that, and what waits for a second word before it may overwrite."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.queries.pending import PendingFact
from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.facts import CAUTIOUS_CONFIDENCE, CONFIDENCE_OF_CERTAINTY
from mnemolog.schemas.policy import Policy
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import Person, PipelineHarness, day
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


def all_certainties() -> list[dict[str, Any]]:
    return [fact_json(f"Ann owns a {word} hat.", f"hat {word}", certainty=word) for word in CONFIDENCE_OF_CERTAINTY]


async def test_a_fact_begins_as_sure_as_it_was_said(harness: PipelineHarness) -> None:
    ann = harness.person("ann")
    await ann.say(*all_certainties(), overrides={"conflict": 1.0, "duplicate": 1.0})
    assert {row["certainty"]: row["confidence"] for row in (await ann.facts()).values()} == CONFIDENCE_OF_CERTAINTY


@pytest.mark.parametrize("level", ["turn", "scope", "tenant"])
async def test_the_cautious_preset_believes_nobody_at_once(harness: PipelineHarness, level: str) -> None:
    ann = harness.person(f"ann-{level}", **{"tenant": "cautious"} if level == "tenant" else {})
    overrides: dict[str, Any] = {"conflict": 1.0, "duplicate": 1.0}
    if level == "scope":
        await ann.run_command("set_policy", Policy(confidence="cautious"))
    elif level == "tenant":
        policy = await harness.memory.set_policy(Policy(confidence="cautious"), tenant="cautious")
        await harness.memory.wait(policy.command_id, tenant="cautious")
    else:
        overrides["confidence"] = "cautious"
    await ann.say(*all_certainties(), overrides=overrides)
    assert {row["confidence"] for row in (await ann.facts()).values()} == {CAUTIOUS_CONFIDENCE}


async def test_a_turn_confirms_once_however_often_it_says_it(harness: PipelineHarness) -> None:
    ben = harness.person("ben-often")
    await ben.say(fact_json(OLD, MEAT, certainty="weak"))
    again = ["Ben lives as a vegetarian.", "Ben counts as a vegetarian.", "Vegetarian is what Ben is."]
    facts = [fact_json(text, f"meat on the {word}") for text, word in zip(again, "abc", strict=True)]
    decided = dict.fromkeys(again, ScriptedDecision("KEEP", (OLD,)))
    result = await ben.say(*facts, decisions=decided)
    assert [memory.event for memory in result.memories] == ["fact_confirmed", "fact_skipped", "fact_skipped"]
    fact = (await ben.facts())[OLD]
    assert (fact["mention_count"], fact["confidence"]) == (4, confirmed_confidence(0.60))
    await ben.say(*facts, decisions=decided)
    assert (await ben.facts())[OLD]["confidence"] == confirmed_confidence(0.70)


async def test_what_was_recalled_confirms_nothing(harness: PipelineHarness) -> None:
    ben = harness.person("ben-recalled")
    await ben.say(fact_json(OLD, MEAT, certainty="weak"))
    before = await ben.facts()
    echoes = {
        "the prompt, pasted by the user": [{"role": "user", "content": f"You know: {OLD} What shall I cook?"}],
        "the assistant's words": [
            {"role": "user", "content": "What shall I cook?"},
            {"role": "assistant", "content": "As Ben eats no meat, a risotto."},
        ],
    }
    for excerpt, messages in zip((OLD, "Ben eats no meat"), echoes.values(), strict=True):
        echo = fact_json("Ben eats no meat.", MEAT) | {"excerpt": excerpt}
        result = await ben.say(echo, messages=messages, recalled=[OLD])
        assert (result.status, result.memories) == ("no_facts", ())
    assert await ben.facts() == before
    missing = (await harness.memory.why_not(result.turn_id, user_id=ben.name)).missing
    assert [(one.reason, one.text) for one in missing] == [
        ("excerpt_not_found", "Ben eats no meat."),
        ("not_taken", "What shall I cook?"),
    ]


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


async def test_a_turn_does_not_confirm_its_own_words(harness: PipelineHarness) -> None:
    ben = harness.person("ben-twice")
    await ben.say(fact_json(OLD, MEAT))
    again = "Ben said that steak is what Ben loves."
    facts = [fact_json(NEW, STEAK), fact_json(again, "meat on the spoon")]
    decided = {NEW: ScriptedDecision("CONTRADICT", (OLD,)), again: ScriptedDecision("KEEP", (NEW,))}
    result = await ben.say(*facts, decisions=decided, overrides={"conflict": 0.1, "ending": 0.1})
    assert [memory.event for memory in result.memories] == ["fact_pending", "fact_skipped"]
    assert await ben.statuses() == {OLD: "active", NEW: "pending_confirmation"}


async def test_who_says_the_old_again_rejects_it(harness: PipelineHarness) -> None:
    ben = harness.person("ben-again")
    await contradicted(ben)
    result = await ben.say(fact_json(OLD, MEAT))
    assert [memory.event for memory in result.memories] == ["pending_rejected"]
    facts = await ben.facts()
    assert {text: row["status"] for text, row in facts.items()} == {OLD: "active", NEW: "archived"}
    assert (facts[OLD]["mention_count"], facts[OLD]["confidence"]) == (2, confirmed_confidence(SURE))


RISKS: Final = [{"category": "identity"}, {"category": "health"}, {"category": "finance"}, {"key": "health"}]
OVERWRITES: Final = {
    "REPLACE": ScriptedDecision("REPLACE", (OLD,)),
    "CONTRADICT": ScriptedDecision("CONTRADICT", (OLD,)),
    "MERGE": ScriptedDecision("MERGE", (OLD,), text="Ben is a vegetarian who loves a good steak."),
    "RETRACT": ScriptedDecision("RETRACT", (OLD,)),
    "EXPIRE": ScriptedDecision("EXPIRE", (OLD,), ended_at=day(3)),
}


async def expect_overwrite(
    ben: Person, decision: ScriptedDecision, certainty: str, **risk: str
) -> tuple[dict[str, str], str | None]:
    """What one statement of this certainty does to a fact of this risk that is not sure itself; the guard, if any."""
    await ben.say(fact_json(OLD, MEAT, certainty="strong", **risk))
    result = await ben.say(fact_json(NEW, STEAK, certainty=certainty), decisions={NEW: decision})
    assert result.trace is not None
    return await ben.statuses(), result.trace.decisions[0].guard


@pytest.mark.parametrize("risk", RISKS, ids=lambda risk: "-".join(*risk.items()))
async def test_who_is_not_sure_overwrites_nothing_of_high_risk(harness: PipelineHarness, risk: dict[str, str]) -> None:
    name = "-".join(*risk.items())
    unsure = await expect_overwrite(harness.person(f"ben-{name}"), OVERWRITES["REPLACE"], "strong", **risk)
    assert unsure == ({OLD: "active", NEW: "pending_confirmation"}, "high_risk")
    sure = await expect_overwrite(harness.person(f"ben-{name}-sure"), OVERWRITES["REPLACE"], "explicit", **risk)
    assert sure == ({OLD: "superseded", NEW: "active"}, None)


@pytest.mark.parametrize("action", OVERWRITES)
async def test_every_overwrite_of_high_risk_waits(harness: PipelineHarness, action: str) -> None:
    decision = OVERWRITES[action]
    statuses, guard = await expect_overwrite(harness.person(f"ben-{action}"), decision, "strong", category="health")
    assert (statuses, guard) == ({OLD: "active", decision.text or NEW: "pending_confirmation"}, "high_risk")


async def test_what_is_of_high_risk_and_how_sure_one_has_to_be_is_a_policy(harness: PipelineHarness) -> None:
    ben = harness.person("ben-policy")
    await ben.run_command("set_policy", Policy(high_risk=("hobby",), confirm_below=0.5))
    decision = OVERWRITES["REPLACE"]
    statuses, _ = await expect_overwrite(ben, decision, "weak", category="health")
    assert statuses == {OLD: "superseded", NEW: "active"}
    hobby = [
        fact_json("Ben collects stamps.", "what Ben collects: stamps", key="hobby"),
        fact_json("Ben collects coins.", "what Ben collects: coins"),
    ]
    await ben.say(hobby[0])
    await ben.say(hobby[1] | {"certainty": "speculation"}, decisions={hobby[1]["text"]: ScriptedDecision("REPLACE")})
    assert (await ben.statuses())[hobby[1]["text"]] == "pending_confirmation"


@pytest.mark.parametrize("action", OVERWRITES)
async def test_what_a_human_said_is_ended_by_a_human_alone(harness: PipelineHarness, action: str) -> None:
    ben = harness.person(f"ben-human-{action}")
    await ben.say(fact_json("Ben is a vegan.", MEAT))
    await ben.run_command("correct", await ben.fact_id("Ben is a vegan."), OLD)
    decision = ScriptedDecision("EXPIRE", (OLD,), ended_at=day(1001)) if action == "EXPIRE" else OVERWRITES[action]
    await ben.say(fact_json(NEW, f"{OLD} steak"), decisions={NEW: decision}, occurred_at=datetime.now(UTC))
    (waiting,) = await harness.memory.pending(user_id=ben.name)
    assert isinstance(waiting, PendingFact)
    assert (waiting.guard, waiting.needs_human) == ("human_word", True)
    text = waiting.fact.text
    again = fact_json("Ben had a steak again.", f"{OLD} steak again")
    kept = ScriptedDecision("KEEP", (text,))
    await ben.say(again, decisions={again["text"]: kept}, occurred_at=datetime.now(UTC))
    facts = await ben.facts()
    assert (facts[OLD]["status"], facts[text]["status"]) == ("active", "pending_confirmation")
    refused = await ben.run_command("update", facts[OLD]["fact_id"], "Ben eats fish.")
    assert (refused.status, (refused.error or "").partition(":")[0]) == ("rejected", "human_word")
    await ben.run_command("confirm", waiting.fact.fact_id)
    assert (await ben.statuses())[text] == "active"
    assert await harness.memory.pending(user_id=ben.name) == []


async def test_what_ends_is_no_answer_from_that_very_second(harness: PipelineHarness) -> None:
    """Nothing has to happen for that: in the tables both facts are active, and stay so until the timer comes."""
    cid, end = harness.person("cid"), day(1000)
    lease, permit = "Cid rents a flat.", "Cid has a parking permit."
    await cid.say(fact_json(permit, "permit", valid_until=end.isoformat(), category="task_context"))
    await cid.say(fact_json(lease, "the flat is rented", category="task_context"))
    ends = "The lease of Cid ends."
    await cid.say(
        fact_json(ends, "the flat is left", action_hint="retract"),
        decisions={ends: ScriptedDecision("EXPIRE", ended_at=end)},
    )
    assert await cid.statuses() == dict.fromkeys((permit, lease, ends), "active")

    async def believed(moment: Any) -> list[set[str]]:
        async with AsyncMemoryClient(settings=harness.settings, now=lambda: moment) as memory:
            facts = await memory.facts(user_id="cid")
            hits = (await memory.search("Cid flat permit", user_id="cid")).hits
            tasks = (await memory.profile(user_id="cid")).current_tasks
        return [{fact.text for fact in facts}, {hit.fact.text for hit in hits}, {task["text"] for task in tasks}]

    assert await believed(end - timedelta(microseconds=1)) == [
        {permit, lease, ends},
        {permit, lease, ends},
        {permit, lease},
    ]
    assert await believed(end) == [{ends}, {ends}, set()]
