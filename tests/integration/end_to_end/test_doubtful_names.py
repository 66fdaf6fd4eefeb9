"""Whom a doubtful name means is asked of a model behind HTTP: linked, explained, undone, asked once, rebuilt."""

from typing import Any

import pytest

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import Person, PipelineHarness
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


def about(who: str, said: str) -> dict[str, Any]:
    entities = [{"name": who, "type": "person", "role": "subject"}]
    return fact_json(f"{who} {said}", subject=who, entities=entities)


async def two_ritas(harness: PipelineHarness, name: str) -> Person:
    person = harness.person(name)
    await person.say(about("Rita Hill", "repairs clocks"))
    await person.say(about("Rita Stone", "breeds llamas"))
    return person


async def test_a_name_is_linked_by_the_model_explained_undone_and_rebuilt(harness: PipelineHarness) -> None:
    person, memory = await two_ritas(harness, "olga"), harness.memory
    harness.model.names["Rita"] = "Rita Stone"
    result = await person.say(about("Rita", "sold a foal"))
    assert result.llm_calls == 2
    assert "the model was asked, and it is " in result.notes[0]
    assert result.trace is not None
    (asked,) = result.trace.names
    fact_id = await person.fact_id("Rita sold a foal")
    words = (await memory.explain(fact_id)).words
    told = '"Rita" was taken for its name by the model, and not Rita Hill: as the test says'
    assert any("Rita Stone" in sentence and told in sentence for sentence in words)
    assert asked.entity_id == (await memory.entities.get("Rita Stone", user_id="olga")).entity.entity_id
    undone = await memory.undo(turn_id="olga-2", wait=OUTCOME_SECONDS, user_id="olga")
    assert undone.status == "done"
    assert len((await memory.entities.get("Rita Stone", user_id="olga")).facts) == 1
    assert harness.settings.postgres is not None
    report = await rebuild(harness.settings.postgres, TableLogSource(harness.pool), verify_only=True)
    assert report.equal
