"""A backlog of turns shares calls, over real servers: each turn gets what it would get alone."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mnemolog.projections.queries.results import Result
from mnemolog.schemas.turn import Message
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.backlog import BACKLOG, Backlog
from tests.support.harnesses.pipeline_harness import START, PipelineHarness

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


@pytest.fixture(autouse=True)
def quick_again(harness: PipelineHarness) -> Iterator[None]:
    """The server is as quick as before, and fails no more."""
    yield
    harness.server.latency = 0.0
    harness.server.failures.clear()


async def set_policy(harness: PipelineHarness, name: str, **rules: Any) -> None:
    issued = await harness.memory.admin.set_policy(rules, user_id=name)
    assert (await harness.memory.wait(issued.turn_id, user_id=name)).success


def extractions(ends: Sequence[Result]) -> tuple[float, float]:
    """Calls of a language model, and prompt tokens, a turn."""
    stages = [stage for end in ends for stage in end.stages if stage.stage == "extract"]
    return sum(end.llm_calls for end in ends) / len(ends), sum(one.tokens.input for one in stages) / len(ends)


def shared_with(end: Result) -> int:
    assert end.trace is not None
    return next((call.turns for call in end.trace.shared_calls if call.stage == "extract"), 1)


async def test_a_backlog_of_twenty_turns_takes_a_fraction_of_the_calls_and_tokens(harness: PipelineHarness) -> None:
    await set_policy(harness, "vic", call_turns=1)
    together, one_by_one = Backlog(harness, "uma"), Backlog(harness, "vic")
    ends = await together.run()
    alone = await one_by_one.run()
    (calls, tokens), (calls_alone, tokens_alone) = extractions(ends), extractions(alone)
    assert calls < 0.2
    assert calls_alone == 1
    assert tokens < tokens_alone / 2
    assert all(end.status == "stored" for end in (*ends, *alone))
    assert [shared_with(end) for end in alone] == [1] * BACKLOG
    assert max(map(shared_with, ends)) >= BACKLOG / 2
    shared = [(end.turn_id, call) for end in ends if end.trace for call in end.trace.shared_calls]
    asked = {call.request: {*call.others, turn_id} for turn_id, call in shared}
    assert len(asked) <= 3
    assert all(len(call.others) == call.turns - 1 for _, call in shared)
    assert all({*call.others} == asked[call.request] - {turn_id} for turn_id, call in shared)
    assert await together.facts() == together.texts
    assert await one_by_one.facts() == one_by_one.texts


async def test_turns_of_a_call_tell_the_known_entities_that_it_was_shown(harness: PipelineHarness) -> None:
    await set_policy(harness, "ria", known_timeout=20)
    backlog, ria = Backlog(harness, "ria", turns=4), harness.person("ria")
    entities = [{"name": "Rosa Quill", "type": "person", "role": "subject"}]
    fact = fact_json("Rosa Quill paints", subject="Rosa Quill", entities=entities)
    await ria.say(fact, turn_id="known-rosa", occurred_at=START)
    asked_with = (Message(role="user", content=f"{backlog.texts[3]}, says Rosa Quill"),)
    backlog.turns[3] = backlog.turns[3].model_copy(update={"messages": asked_with})
    ends = await backlog.run()
    rosa = (await harness.memory.entities.get("Rosa Quill", user_id="ria")).entity.entity_id
    traces = {end.turn_id: end.trace for end in ends if end.trace is not None}
    (call,) = traces["ria-3"].shared_calls
    together = {"ria-3", *call.others}
    assert len(together) > 1
    shown = {turn_id: [one.entity_id for one in traces[turn_id].background.entities] for turn_id in together}
    assert rosa in shown["ria-3"]
    assert all(entity_ids == shown["ria-3"] for entity_ids in shown.values())
