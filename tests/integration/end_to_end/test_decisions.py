"""What counts as a conflict and how it is decided, from a turn to the tables, with a scripted model."""

from typing import Any, Final

import pytest

from mnemolog.schemas.policy import Policy
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import Person, PipelineHarness, day
from tests.support.servers.scripted_model import ScriptedDecision

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

BERLIN: Final = "Ana lives in Berlin."
VESUVIUS: Final = "Ana has settled at the foot of a volcano."


async def unlike(ana: Person, key: str, *, single: bool = False, **second: Any) -> tuple[dict[str, str], float]:
    """Two facts of a key without a common word, for which the model decides REPLACE; their statuses and similarity."""
    same = {"key": key, "single_valued": single}
    await ana.say(fact_json(BERLIN, "berlin flat", **same))
    decided = {VESUVIUS: ScriptedDecision("REPLACE", (BERLIN,))}
    result = await ana.say(fact_json(VESUVIUS, "volcano", **same | second), decisions=decided)
    assert result.trace is not None
    retrieved = result.trace.decisions[0].retrieved
    return await ana.statuses(), retrieved[0].similarity if retrieved else 0.0


@pytest.mark.parametrize(("key", "single"), [("home_city", False), ("favourite_view", False), ("lookout", True)])
async def test_facts_of_a_key_with_one_value_meet_however_unlike_they_are(
    harness: PipelineHarness, key: str, *, single: bool
) -> None:
    ana = harness.person(f"ana-{key}")
    statuses, similarity = await unlike(ana, key, single=single)
    assert statuses == {BERLIN: "superseded", VESUVIUS: "active"}
    assert similarity < 0.2


async def test_a_policy_says_which_further_keys_hold_one_value(harness: PipelineHarness) -> None:
    ana = harness.person("ana-policy")
    await ana.run_command("set_policy", Policy(single_valued=("outlook",)))
    assert (await unlike(ana, "outlook"))[0] == {BERLIN: "superseded", VESUVIUS: "active"}


@pytest.mark.parametrize(("key", "second"), [("allergy", {}), ("home_city", {"subject": "Ana's brother"})])
async def test_facts_of_other_keys_or_subjects_do_not_meet(
    harness: PipelineHarness, key: str, second: dict[str, str]
) -> None:
    ana = harness.person(f"ana-{key}-apart")
    same = {"key": key, "subject": "Ana"}
    await ana.say(fact_json(BERLIN, "berlin flat", **same))
    result = await ana.say(fact_json(VESUVIUS, "volcano", **same | second))
    assert await ana.statuses() == {BERLIN: "active", VESUVIUS: "active"}
    assert result.llm_calls == 1


DIFFERENT: Final = {
    "negation": ("Bo is allergic to nuts.", "Bo is not allergic to nuts."),
    "number": ("Bo meets the team at 10.", "Bo meets the team at 11."),
    "written number": ("Bo has two sisters.", "Bo has three sisters."),
    "date": ("Bo moves on 2026-05-01.", "Bo moves on 2026-06-01."),
    "weekday": ("Bo swims on Mondays.", "Bo swims on Tuesdays."),
    "unit": ("Bo lifts 40 kg.", "Bo lifts 40 lb."),
    "name": ("Bo sails with Tom.", "Bo sails with Tim."),
    "German": ("Bo ist gegen Nüsse allergisch.", "Bo ist nicht gegen Nüsse allergisch."),
    "French": ("Bo mange des noix.", "Bo ne mange pas de noix."),
    "Spanish": ("Bo come nueces.", "Bo no come nueces."),
}


@pytest.mark.parametrize("kind", DIFFERENT)
async def test_what_differs_in_what_matters_is_never_skipped_unseen(harness: PipelineHarness, kind: str) -> None:
    """The vectors are equal: they say that it is a duplicate."""
    bo = harness.person(f"bo-{kind}")
    one, other = DIFFERENT[kind]
    await bo.say(fact_json(one, "the same"))
    result = await bo.say(fact_json(other, "the same"), decisions={other: ScriptedDecision("ADD")})
    assert result.trace is not None
    (decided,) = result.trace.decisions
    assert (decided.by, decided.verdict, decided.retrieved[0].similarity) == ("model", "ADD", 1.0)
    assert await bo.statuses() == {one: "active", other: "active"}


async def test_what_differs_in_nothing_that_matters_is_skipped_unseen(harness: PipelineHarness) -> None:
    bo = harness.person("bo-same")
    await bo.say(fact_json("Bo is allergic to nuts.", "the same"))
    for text in ("bo is  allergic to nuts", "Bo is allergic to the nuts."):
        result = await bo.say(fact_json(text, "the same"))
        assert (result.skipped, result.llm_calls) == (1, 1)
    assert (await bo.facts())["Bo is allergic to nuts."]["mention_count"] == 3


async def test_one_call_decides_for_a_whole_turn_about_the_most_similar_of_each(harness: PipelineHarness) -> None:
    cleo = harness.person("cleo")
    words = ["red", "orange", "yellow", "green", "blue", "indigo", "violet", "black", "white", "grey", "brown", "pink"]
    many = [fact_json(f"Cleo owns {word} paint.", f"paint in a tin {word}") for word in words]
    await cleo.say(*many, overrides={"conflict": 0.0, "ending": 0.0, "near_duplicate": 1.0, "add_only": True})
    near = [fact_json(f"Cleo sold {word} paint.", f"paint in a tin {word} sold") for word in words[:3]]
    decided = {
        one["text"]: ScriptedDecision("REPLACE", (known["text"],)) for one, known in zip(near, many, strict=False)
    }
    result = await cleo.say(*near, decisions=decided, overrides={"conflict": 0.1, "ending": 0.1})
    assert (result.llm_calls, result.facts_updated) == (2, 3)
    (question,) = cleo.questions_about(near[0]["text"])
    assert set(question.new.values()) == {one["text"] for one in near}
    for number, word in enumerate(words[:3], start=1):
        offered = question.candidates[number]
        assert question.known[offered[0]] == f"Cleo owns {word} paint."
        assert len(offered) <= 8
    statuses = await cleo.statuses()
    assert [text for text, status in statuses.items() if status == "superseded"] == [one["text"] for one in many[:3]]


async def test_late_news_is_history_and_ends_nothing(harness: PipelineHarness) -> None:
    """Turns imported in reverse give the same facts as in their order."""
    dan = harness.person("dan")
    homes = ["Dan lives in Oslo.", "Dan lives in Rome.", "Dan lives in Bonn."]
    for number in (2, 1, 0):
        decided = {homes[number]: ScriptedDecision("REPLACE", (homes[2],))}
        await dan.say(
            fact_json(homes[number], "home", key="home_city"), decisions=decided, occurred_at=day(10 * number)
        )
    facts = await dan.facts()
    assert {text: row["status"] for text, row in facts.items()} == {
        homes[0]: "superseded",
        homes[1]: "superseded",
        homes[2]: "active",
    }
    assert [facts[home]["true_from"] for home in homes] == [day(0), day(10), day(20)]
    assert [facts[home]["true_to"] for home in homes] == [day(10), day(20), None]


async def test_facts_of_one_turn_that_clash_are_decided_in_their_order(harness: PipelineHarness) -> None:
    eva = harness.person("eva")
    homes = ["Eva lives in Oslo.", "Eva lives in Rome.", "Eva lives in Bonn."]
    decided = {homes[1]: ScriptedDecision("REPLACE", (homes[0],)), homes[2]: ScriptedDecision("REPLACE", (homes[1],))}
    result = await eva.say(*(fact_json(home, "home", key="home_city") for home in homes), decisions=decided)
    assert [memory.event for memory in result.memories] == ["fact_added", "fact_replaced", "fact_replaced"]
    assert await eva.statuses() == {homes[0]: "superseded", homes[1]: "superseded", homes[2]: "active"}
    (question,) = eva.questions_about(homes[2])
    assert all("said just now" in note for note in question.notes.values())


async def test_a_turn_that_clashes_with_itself_and_with_what_is_end_rules_each_fact_once(
    harness: PipelineHarness,
) -> None:
    eva = harness.person("eva-known")
    homes = ["Eva lives in Oslo.", "Eva lives in Rome.", "Eva lives in Bonn."]
    await eva.say(fact_json(homes[0], "home", key="home_city"))
    decided = {homes[1]: ScriptedDecision("REPLACE", (homes[0],)), homes[2]: ScriptedDecision("REPLACE", (homes[1],))}
    await eva.say(*(fact_json(home, "home", key="home_city") for home in homes[1:]), decisions=decided)
    facts = await eva.facts()
    assert [facts[home]["status"] for home in homes] == ["superseded", "superseded", "active"]
    assert facts[homes[0]]["superseded_by"] == facts[homes[1]]["fact_id"]
    assert facts[homes[1]]["superseded_by"] == facts[homes[2]]["fact_id"]


async def nothing_is_ended(fay: Person, **turn: Any) -> None:
    """Where only adding is allowed, nobody is asked, and equal words alone are a duplicate."""
    said = ["Fay lives in Oslo.", "Fay lives in Rome.", "fay lives in oslo"]
    for text in said:
        result = await fay.say(fact_json(text, "home", key="home_city"), **turn)
        assert result.llm_calls == 1
    assert await fay.statuses() == {said[0]: "active", said[1]: "active"}
    assert (await fay.facts())[said[0]]["mention_count"] == 2


async def test_add_only_for_a_turn(harness: PipelineHarness) -> None:
    fay = harness.person("fay")
    await nothing_is_ended(fay, overrides={"add_only": True})
    bonn = "Fay lives in Bonn."
    await fay.say(
        fact_json(bonn, "home", key="home_city"),
        decisions={bonn: ScriptedDecision("REPLACE", ("Fay lives in Rome.",))},
    )
    assert (await fay.statuses())["Fay lives in Rome."] == "superseded"


async def test_add_only_for_a_scope(harness: PipelineHarness) -> None:
    fay = harness.person("fay-scope", agent_id="archivist")
    await fay.run_command("set_policy", Policy(add_only=True))
    await nothing_is_ended(fay)
    elsewhere = harness.person("fay-scope")
    elsewhere.turns_said = 10
    for text in ("Fay lives in Oslo.", "Fay lives in Rome."):
        await elsewhere.say(fact_json(text, "home", key="home_city"), decisions={text: ScriptedDecision("REPLACE")})
    assert await elsewhere.statuses() == {"Fay lives in Oslo.": "superseded", "Fay lives in Rome.": "active"}


async def test_add_only_for_a_tenant_but_not_for_a_scope_of_it(harness: PipelineHarness) -> None:
    policy = await harness.memory.set_policy(Policy(add_only=True), tenant="archive")
    assert (await harness.memory.wait(policy.command_id, tenant="archive")).success
    await nothing_is_ended(harness.person("fay", tenant="archive"))
    gus = harness.person("gus", tenant="archive")
    await gus.run_command("set_policy", Policy(add_only=False))
    for text in ("Gus lives in Oslo.", "Gus lives in Rome."):
        await gus.say(fact_json(text, "home", key="home_city"), decisions={text: ScriptedDecision("REPLACE")})
    assert await gus.statuses() == {"Gus lives in Oslo.": "superseded", "Gus lives in Rome.": "active"}
