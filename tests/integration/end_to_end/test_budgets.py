"""Turns over a budget of the day that are stored as they are, over real servers."""

import asyncio
from typing import Final

import pytest

from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS, user_turn

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

TURNS: Final = 40


async def set_budget(harness: PipelineHarness, tenant: str, tokens: int) -> None:
    """Limit the tokens of a day of a tenant; turns over the limit are stored as they are."""
    policy = {"limits": {"tokens_per_day": tokens}, "when_spent": "raw"}
    issued = await harness.memory.set_policy(policy, tenant=tenant)
    assert (await harness.memory.wait(issued.command_id, tenant=tenant)).success


async def test_turns_over_a_budget_are_stored_as_they_are_where_a_policy_says_so(harness: PipelineHarness) -> None:
    await set_budget(harness, "plain", 0)
    kai = harness.person("kai", tenant="plain")
    asked = harness.server.requests["chat"]
    end = await kai.say(fact_json("Kai lives in Bonn."))
    assert (end.status, end.llm_calls) == ("facts", 0)
    (note,) = end.notes
    assert note.startswith("tokens per day of the tenant: 0 of 0: each message of a user is stored as it is")
    assert harness.server.requests["chat"] == asked
    ((text, status),) = (await kai.statuses()).items()
    assert ("Kai lives in Bonn" in text, status) == (True, "active")


async def test_many_turns_at_once_go_over_a_budget_by_what_is_under_way_and_none_is_lost(
    harness: PipelineHarness,
) -> None:
    """Each ends as one fact: by a model, where the budget was not spent yet, or as it is."""
    await set_budget(harness, "rush", 1)
    turns = [
        user_turn(
            f"rush-{number}", f"Parcel {number} has arrived.", scope=Scope(tenant="rush", user_id=f"user{number}")
        )
        for number in range(TURNS)
    ]
    for turn in turns:
        harness.model.extractions[turn.turn_id] = facts_reply(fact_json(turn.messages[0].content))
    await asyncio.gather(*(harness.memory.add_many([turn]) for turn in turns))
    ends = await asyncio.gather(*(wait_for_end(harness, turn) for turn in turns))
    assert {end.status for end in ends} == {"facts"}
    assert not all(map(is_stored_raw, ends))
    assert all(end.llm_calls == 0 for end in ends if is_stored_raw(end))
    later = user_turn("rush-later", "Parcel 99 has arrived.", scope=Scope(tenant="rush", user_id="late"))
    await harness.memory.add_many([later])
    assert is_stored_raw(await wait_for_end(harness, later))
    facts = await harness.rows("SELECT text, count(*) AS n FROM facts WHERE tenant = 'rush' GROUP BY text")
    assert [row["n"] for row in facts] == [1] * (TURNS + 1)


def is_stored_raw(end: WriteResult) -> bool:
    return any(note.startswith("tokens per day of the tenant") for note in end.notes)


async def wait_for_end(harness: PipelineHarness, turn: Turn) -> WriteResult:
    return await harness.memory.wait(
        turn.turn_id, user_id=turn.scope.user_id, tenant="rush", verbose=True, timeout=OUTCOME_SECONDS
    )
