"""Invalid replies of the model: one re-prompt with what is wrong; then both facts stay until somebody resolves it."""

from typing import Any, Final

import pytest

from mnemolog.projections.queries.results import Result
from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json, facts_reply
from tests.support.harnesses.pipeline_harness import PipelineHarness, day

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

OLD: Final = "Hal never rides his 3 bikes with Tom."
NEW: Final = "Hal rides his bikes on Sundays."


def decision_reply(action: str, *known: int, new: int = 1, **fields: Any) -> str:
    return decisions_reply(decision_json(new, action, *known, **fields))


FAULTS: Final[dict[str, tuple[str, str]]] = {
    "a fact that was not offered": (decision_reply("REPLACE", 2), "N1 has no answer about K1"),
    "another form": ('{"actions": []}', "the answer is not one complete JSON object"),
}
"""One of each kind; `test_resolve_parser.py` has them all."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_faulty_ruling_is_told_once_and_then_both_facts_stand(harness: PipelineHarness, fault: str) -> None:
    answer, complaint = FAULTS[fault]
    hal = harness.person("Hal" + "abc"[list(FAULTS).index(fault)])
    old, new, answer = (text.replace("Hal", hal.name) for text in (OLD, NEW, answer))
    await hal.say(fact_json(old, "bikes"))
    result = await hal.say(fact_json(new, "bikes"), answers=[answer])
    repairs = harness.model.repair_messages(new)
    assert (len(harness.model.requests_about(new)), len(repairs)) == (2, 1)
    assert all(complaint in one for one in repairs), repairs
    assert result.trace is not None
    assert {stage.stage: stage.reprompts for stage in result.stages if stage.reprompts} == {"resolve": 1}
    assert all(complaint in reprompt.complaint for reprompt in result.trace.reprompts)
    (memory,) = result.changes
    assert (memory.event, memory.unresolved, result.llm_calls) == ("fact_added", True, 3)
    facts = await hal.facts()
    assert [(row["status"], row["unresolved"]) for row in facts.values()] == [("active", False), ("active", True)]
    assert (facts[old]["mention_count"], facts[old]["true_to"], facts[old]["superseded_by"]) == (1, None, None)


async def test_a_turn_that_failed_is_asked_about_anew_when_it_is_published_again(harness: PipelineHarness) -> None:
    noa, said = harness.person("noa"), fact_json("Noa keeps goats.")
    harness.model.extractions["noa-0"] = "Noa hält Ziegen."
    failed = await noa.say(said)
    assert (failed.status, failed.attempt, failed.llm_calls) == ("failed", 1, 2)
    harness.model.extractions["noa-0"] = facts_reply(said)
    message = {"role": "user", "content": said["excerpt"]}
    await harness.memory.add([message], turn_id="noa-0", occurred_at=day(0), speaker="Noa", **noa.scope)
    second = await harness.memory.wait("noa-0", user_id="noa", attempt=2)
    assert (second.status, second.attempt, second.llm_calls) == ("stored", 2, 1)
    await harness.memory.add([message], turn_id="noa-0", occurred_at=day(0), speaker="Noa", **noa.scope)
    await noa.say(fact_json("Noa has a barn."))
    assert (await harness.memory.wait("noa-0", user_id="noa")).attempt == 2
    assert await noa.statuses() == {"Noa keeps goats.": "active", "Noa has a barn.": "active"}


async def test_what_no_model_could_read_is_kept_as_it_was_said_until_it_can_be_read(harness: PipelineHarness) -> None:
    """The policy says so. What was said again since then stays, for another turn rests on it."""
    una, memory = harness.person("una", tenant="unread"), harness.memory
    issued = await memory.admin.set_policy({"when_unread": "raw"}, tenant="unread")
    assert (await memory.wait(issued.turn_id, tenant="unread")).success
    sentences = ["Una keeps goats.", "Una has a barn.", "Una is happy."]
    messages = [{"role": "user", "content": text} for text in (sentences[0], " ".join(sentences[1:]))]

    async def publish(attempt: int, reply: str) -> Result:
        harness.model.extractions["unread"] = reply
        await memory.add(messages, turn_id="unread", occurred_at=day(0), speaker="Una", **una.scope)
        return await memory.wait("unread", user_id="una", tenant="unread", attempt=attempt)

    failed = await publish(1, "Una hält Ziegen.")
    assert (failed.status, [one.event for one in failed.changes]) == ("failed", ["fact_added"] * 3)
    assert failed.conflicts == 0
    words = (await memory.explain(failed.added[0].fact_id, tenant="unread")).words
    assert "It was stored as it was given, without a model (explicit, confidence 0.95)." in words
    reason = "invalid_reply: no model could read the turn, so what was said is kept as it is"
    assert {one.reason for one in failed.changes} == {reason}
    decisions = await harness.rows("SELECT decided_by FROM memory_events WHERE source_id = 'unread' ORDER BY ordinal")
    assert [row["decided_by"] for row in decisions if row["decided_by"]] == ["rule"] * 3
    assert await una.statuses() == dict.fromkeys(sentences, "active")
    raw = await una.facts()
    await una.say(fact_json("Una has a barn."))
    again = await publish(2, "Immer noch nicht.")
    assert (again.status, again.changes) == ("failed", ())
    goats, happy = fact_json("Una keeps goats."), fact_json("Una feels happy.", excerpt="Una is happy.")
    read = await publish(3, facts_reply(goats, happy))
    assert (read.status, [one.event for one in read.changes]) == ("stored", ["fact_added"] * 2 + ["fact_retracted"])
    facts = await memory.facts(user_id="una", tenant="unread")
    assert [fact.text for fact in facts] == ["Una has a barn.", "Una keeps goats.", "Una feels happy."]
    assert not {fact.id for fact in facts} & {raw["Una keeps goats."]["fact_id"], raw["Una is happy."]["fact_id"]}


async def test_a_turn_that_is_read_and_states_nothing_leaves_no_raw_fact(harness: PipelineHarness) -> None:
    ivo, memory = harness.person("ivo", tenant="unread-2"), harness.memory
    issued = await memory.admin.set_policy({"when_unread": "raw"}, tenant="unread-2")
    assert (await memory.wait(issued.turn_id, tenant="unread-2")).success
    for attempt, (reply, status) in enumerate((("nonsense", "failed"), ('{"facts": []}', "nothing_stored")), start=1):
        harness.model.extractions["said-once"] = reply
        await memory.add("Hm, well.", turn_id="said-once", occurred_at=day(0), speaker="Ivo", **ivo.scope)
        end = await memory.wait("said-once", attempt=attempt, user_id="ivo", tenant="unread-2")
        assert end.status == status
        assert len(await memory.facts(user_id="ivo", tenant="unread-2")) == 2 - attempt
