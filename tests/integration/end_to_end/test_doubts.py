"""How sure a fact is, what raises that, and what waits for a second word before it may overwrite."""

from datetime import timedelta
from typing import Any, Final

import pytest

from mnemolog.client import MemoryClient
from mnemolog.projections.results import WriteResult
from mnemolog.schemas.facts import CAUTIOUS, CONFIDENCE
from mnemolog.schemas.policy import Policy
from tests.servers.scripted import Ruling, reading
from tests.world import Person, World, day

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

OLD: Final = "Ben is a vegetarian."
NEW: Final = "Ben loves a good steak."
MEAT: Final = "meat on the plate"
STEAK: Final = "meat on the grill"
SURE: Final = 0.95


def doubts(confidence: float) -> Any:
    """What a confirmation makes of a confidence."""
    return pytest.approx(confidence + 0.25 * (1 - confidence))


def all_certainties() -> list[dict[str, Any]]:
    return [reading(f"Ann owns a {word} hat.", f"hat {word}", certainty=word) for word in CONFIDENCE]


async def test_a_fact_begins_as_sure_as_it_was_said(world: World) -> None:
    ann = world.person("ann")
    await ann.says(*all_certainties(), overrides={"conflict": 1.0, "duplicate": 1.0})
    assert {row["certainty"]: row["confidence"] for row in (await ann.facts()).values()} == CONFIDENCE


@pytest.mark.parametrize("level", ["turn", "scope", "tenant"])
async def test_the_cautious_preset_believes_nobody_at_once(world: World, level: str) -> None:
    ann = world.person(f"ann-{level}", **{"tenant": "cautious"} if level == "tenant" else {})
    overrides: dict[str, Any] = {"conflict": 1.0, "duplicate": 1.0}
    if level == "scope":
        await ann.orders("set_policy", Policy(confidence="cautious"))
    elif level == "tenant":
        policy = await world.memory.set_policy(Policy(confidence="cautious"), tenant="cautious")
        await world.memory.wait(policy.command_id, tenant="cautious")
    else:
        overrides["confidence"] = "cautious"
    await ann.says(*all_certainties(), overrides=overrides)
    assert {row["confidence"] for row in (await ann.facts()).values()} == {CAUTIOUS}


async def test_a_turn_confirms_once_however_often_it_says_it(world: World) -> None:
    ben = world.person("ben-often")
    await ben.says(reading(OLD, MEAT, certainty="weak"))
    again = ["Ben eats no meat.", "Ben leaves meat alone.", "Ben shuns meat."]
    facts = [reading(text, f"meat on the {word}") for text, word in zip(again, "abc", strict=True)]
    ruled = dict.fromkeys(again, Ruling("KEEP", (OLD,)))
    result = await ben.says(*facts, ruled=ruled)
    assert [memory.event for memory in result.memories] == ["KEEP", "SKIP", "SKIP"]
    fact = (await ben.facts())[OLD]
    assert (fact["mention_count"], fact["confidence"]) == (4, doubts(0.60))
    await ben.says(*facts, ruled=ruled)
    assert (await ben.facts())[OLD]["confidence"] == doubts(0.70)


async def test_what_was_recalled_confirms_nothing(world: World) -> None:
    ben = world.person("ben-recalled")
    await ben.says(reading(OLD, MEAT, certainty="weak"))
    before = await ben.facts()
    echoes = {
        "the prompt, pasted by the user": [{"role": "user", "content": f"You know: {OLD} What shall I cook?"}],
        "the assistant's words": [
            {"role": "user", "content": "What shall I cook?"},
            {"role": "assistant", "content": "As Ben eats no meat, a risotto."},
        ],
    }
    for excerpt, messages in zip((OLD, "Ben eats no meat"), echoes.values(), strict=True):
        echo = reading("Ben eats no meat.", MEAT) | {"excerpt": excerpt}
        result = await ben.says(echo, messages=messages, recalled=[OLD])
        assert (result.status, result.memories) == ("no_facts", ())
    assert await ben.facts() == before
    missing = (await world.memory.why_not(result.turn_id, user_id=ben.name)).missing
    assert [one.reason for one in missing] == ["recalled"]


async def contradicted(ben: Person, **second: Any) -> WriteResult:
    """Something sure is denied by one statement."""
    await ben.says(reading(OLD, MEAT, category="soft_preference", key="diet"))
    return await ben.says(
        reading(NEW, STEAK, category="soft_preference", **second), ruled={NEW: Ruling("CONTRADICT", (OLD,))}
    )


async def test_one_statement_does_not_contradict_what_is_sure(world: World) -> None:
    ben = world.person("ben")
    result = await contradicted(ben)
    assert (result.facts_pending, result.facts_added, result.facts_deleted) == (1, 0, 0)
    assert await ben.standing() == {OLD: "active", NEW: "pending_confirmation"}
    (waiting,) = await world.memory.pending(user_id=ben.name)
    assert (waiting.fact.text, waiting.fact.excerpt, waiting.action) == (NEW, NEW, "contradict")
    assert [(one.text, one.confidence) for one in waiting.challenged] == [(OLD, SURE)]
    assert (waiting.guard, waiting.verdict, waiting.needs_human) == ("high_confidence", "CONTRADICT", False)
    assert waiting.age > timedelta(0)
    assert result.trace is not None
    (decided,) = result.trace.decisions
    assert [(one.text, one.confidence) for one in decided.before] == [(OLD, SURE)]


async def test_what_is_pending_is_found_and_marked_and_stays_out_of_the_profile(world: World) -> None:
    ben = world.person("ben-profile")
    await contradicted(ben)
    hits = (await world.memory.search("Ben loves steak", user_id=ben.name)).hits
    assert {hit.fact.text: hit.fact.status for hit in hits} == {OLD: "active", NEW: "pending_confirmation"}
    profile = await world.memory.profile(user_id=ben.name)
    assert [entry["text"] for entry in profile.soft_preferences] == [OLD]
    assert [fact.text for fact in await world.memory.facts(user_id=ben.name)] == [OLD]
    await ben.orders("confirm", await ben.fact_id(NEW))
    profile = await world.memory.profile(user_id=ben.name)
    assert [entry["text"] for entry in profile.soft_preferences] == [NEW]


async def test_a_second_turn_confirms_it_but_not_the_same_turn_again(world: World) -> None:
    ben = world.person("ben-second")
    result = await contradicted(ben)
    steak = reading("Ben had a steak again.", "meat from the grill")
    accepted = await world.memory.add("Ben loves a good steak.", user_id=ben.name, turn_id=result.turn_id)
    assert accepted.turn_id == result.turn_id
    assert (await ben.standing())[NEW] == "pending_confirmation"
    result = await ben.says(steak, ruled={steak["text"]: Ruling("KEEP", (NEW,))}, overrides={"conflict": 0.1})
    assert [memory.event for memory in result.memories] == ["CONFIRM"]
    facts = await ben.facts()
    assert (facts[OLD]["status"], facts[OLD]["believed_to"] is None) == ("archived", False)
    assert (facts[NEW]["status"], facts[NEW]["confidence"]) == ("active", doubts(SURE))
    assert await world.memory.pending(user_id=ben.name) == []


async def test_a_turn_does_not_confirm_its_own_words(world: World) -> None:
    ben = world.person("ben-twice")
    await ben.says(reading(OLD, MEAT))
    again = "Ben said that steak is what Ben loves."
    facts = [reading(NEW, STEAK), reading(again, "meat on the spoon")]
    ruled = {NEW: Ruling("CONTRADICT", (OLD,)), again: Ruling("KEEP", (NEW,))}
    result = await ben.says(*facts, ruled=ruled, overrides={"conflict": 0.1, "ending": 0.1})
    assert [memory.event for memory in result.memories] == ["PENDING", "SKIP"]
    assert await ben.standing() == {OLD: "active", NEW: "pending_confirmation"}


async def test_who_says_the_old_again_rejects_it(world: World) -> None:
    ben = world.person("ben-again")
    await contradicted(ben)
    result = await ben.says(reading(OLD, MEAT))
    assert [memory.event for memory in result.memories] == ["REJECT"]
    facts = await ben.facts()
    assert {text: row["status"] for text, row in facts.items()} == {OLD: "active", NEW: "archived"}
    assert (facts[OLD]["mention_count"], facts[OLD]["confidence"]) == (2, doubts(SURE))


RISKS: Final = [{"category": "identity"}, {"category": "health"}, {"category": "finance"}, {"key": "health"}]
OVERWRITES: Final = {
    "REPLACE": Ruling("REPLACE", (OLD,)),
    "CONTRADICT": Ruling("CONTRADICT", (OLD,)),
    "MERGE": Ruling("MERGE", (OLD,), text="Ben is a vegetarian who loves a good steak."),
    "RETRACT": Ruling("RETRACT", (OLD,)),
    "EXPIRE": Ruling("EXPIRE", (OLD,), ended_at=day(3)),
}


async def overwrites(ben: Person, ruling: Ruling, certainty: str, **risk: str) -> tuple[dict[str, str], str | None]:
    """What one statement of this certainty does to a fact of this risk that is not sure itself; the guard, if any."""
    await ben.says(reading(OLD, MEAT, certainty="strong", **risk))
    result = await ben.says(reading(NEW, STEAK, certainty=certainty), ruled={NEW: ruling})
    assert result.trace is not None
    return await ben.standing(), result.trace.decisions[0].guard


@pytest.mark.parametrize("risk", RISKS, ids=lambda risk: "-".join(*risk.items()))
async def test_who_is_not_sure_overwrites_nothing_of_high_risk(world: World, risk: dict[str, str]) -> None:
    name = "-".join(*risk.items())
    unsure = await overwrites(world.person(f"ben-{name}"), OVERWRITES["REPLACE"], "strong", **risk)
    assert unsure == ({OLD: "active", NEW: "pending_confirmation"}, "high_risk")
    sure = await overwrites(world.person(f"ben-{name}-sure"), OVERWRITES["REPLACE"], "explicit", **risk)
    assert sure == ({OLD: "superseded", NEW: "active"}, None)


@pytest.mark.parametrize("action", OVERWRITES)
async def test_every_overwrite_of_high_risk_waits(world: World, action: str) -> None:
    ruling = OVERWRITES[action]
    standing, guard = await overwrites(world.person(f"ben-{action}"), ruling, "strong", category="health")
    assert (standing, guard) == ({OLD: "active", ruling.text or NEW: "pending_confirmation"}, "high_risk")


async def test_what_is_of_high_risk_and_how_sure_one_has_to_be_is_a_policy(world: World) -> None:
    ben = world.person("ben-policy")
    await ben.orders("set_policy", Policy(high_risk=("hobby",), confirm_below=0.5))
    ruling = OVERWRITES["REPLACE"]
    standing, _ = await overwrites(ben, ruling, "weak", category="health")
    assert standing == {OLD: "superseded", NEW: "active"}
    hobby = [
        reading("Ben collects stamps.", "what Ben collects: stamps", key="hobby"),
        reading("Ben collects coins.", "what Ben collects: coins"),
    ]
    await ben.says(hobby[0])
    await ben.says(hobby[1] | {"certainty": "speculation"}, ruled={hobby[1]["text"]: Ruling("REPLACE")})
    assert (await ben.standing())[hobby[1]["text"]] == "pending_confirmation"


@pytest.mark.parametrize("action", OVERWRITES)
async def test_what_a_human_said_is_ended_by_a_human_alone(world: World, action: str) -> None:
    ben = world.person(f"ben-human-{action}")
    await ben.says(reading("Ben is a vegan.", MEAT))
    await ben.orders("correct", await ben.fact_id("Ben is a vegan."), OLD)
    ben.said = 1000  # the days after the correction, which is of today
    ruling = Ruling("EXPIRE", (OLD,), ended_at=day(1001)) if action == "EXPIRE" else OVERWRITES[action]
    await ben.says(reading(NEW, f"{OLD} steak"), ruled={NEW: ruling})
    (waiting,) = await world.memory.pending(user_id=ben.name)
    assert (waiting.guard, waiting.needs_human) == ("human_word", True)
    text = waiting.fact.text
    again = reading("Ben had a steak again.", f"{OLD} steak again")
    await ben.says(again, ruled={again["text"]: Ruling("KEEP", (text,))})
    facts = await ben.facts()
    assert (facts[OLD]["status"], facts[text]["status"]) == ("active", "pending_confirmation")
    refused = await ben.orders("update", facts[OLD]["fact_id"], "Ben eats fish.")
    assert (refused.status, (refused.error or "").partition(":")[0]) == ("rejected", "human_word")
    await ben.orders("confirm", waiting.fact.fact_id)
    assert (await ben.standing())[text] == "active"
    assert await world.memory.pending(user_id=ben.name) == []


async def test_what_ends_is_no_answer_from_that_very_second(world: World) -> None:
    """Nothing has to happen for that: in the tables both facts are active, and stay so until the timer comes."""
    cid, end = world.person("cid"), day(1000)
    lease, permit = "Cid rents a flat.", "Cid has a parking permit."
    await cid.says(reading(permit, "permit", valid_until=end.isoformat(), category="task_context"))
    await cid.says(reading(lease, "the flat is rented", category="task_context"))
    ends = "The lease of Cid ends."
    await cid.says(
        reading(ends, "the flat is left", action_hint="retract"), ruled={ends: Ruling("EXPIRE", ended_at=end)}
    )
    assert await cid.standing() == dict.fromkeys((permit, lease, ends), "active")

    async def told(moment: Any) -> list[set[str]]:
        async with MemoryClient(settings=world.settings, now=lambda: moment) as memory:
            facts = await memory.facts(user_id="cid")
            hits = (await memory.search("Cid flat permit", user_id="cid")).hits
            tasks = (await memory.profile(user_id="cid")).current_tasks
        return [{fact.text for fact in facts}, {hit.fact.text for hit in hits}, {task["text"] for task in tasks}]

    assert await told(end - timedelta(microseconds=1)) == [
        {permit, lease, ends},
        {permit, lease, ends},
        {permit, lease},
    ]
    assert await told(end) == [{ends}, {ends}, set()]
    result = await cid.says(reading(permit, "permit"), occurred_at=end)
    assert [memory.event for memory in result.memories] == ["ADD"]
