"""What counts as a conflict and how it is decided, from a turn to the tables, with a scripted model."""

from typing import Any, Final

import pytest

from mnemolog.schemas.policy import Policy
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import Person, PipelineHarness
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


async def test_a_policy_says_which_further_keys_hold_one_value(harness: PipelineHarness) -> None:
    ana = harness.person("ana-policy")
    await ana.run_command("set_policy", Policy(single_valued=("outlook",)))
    assert (await unlike(ana, "outlook"))[0] == {BERLIN: "superseded", VESUVIUS: "active"}


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
