"""Budgets of a day over real servers: turns wait without delaying others, and come again; or are stored as they are."""

import pytest

from mnemolog.schemas.policy import WAITS_FOR_BUDGET, WhenSpent
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS
from tests.support.servers.kafka_client import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


async def set_budget(harness: PipelineHarness, tenant: str, tokens: int, when_spent: WhenSpent) -> None:
    """The tokens of a day of a tenant, and what becomes of turns then."""
    policy = {"limits": {"tokens_per_day": tokens}, "when_spent": when_spent}
    issued = await harness.memory.set_policy(policy, tenant=tenant)
    assert (await harness.memory.wait(issued.command_id, tenant=tenant)).success


async def test_turns_over_a_budget_wait_and_come_again_in_their_order(harness: PipelineHarness) -> None:
    """Other tenants go on meanwhile, and so do the commands of this one; when the budget is raised, nothing is lost."""
    await set_budget(harness, "thrifty", 0, "wait")
    ida, jon = harness.person("ida", tenant="thrifty"), harness.person("jon", tenant="lavish")
    asked = harness.server.requests["chat"]
    first = await ida.say(fact_json("Ida lives in Oslo.", key="home_city", value="Oslo"))
    second = await ida.say(fact_json("Ida owns a kayak."))
    for end in (first, second):
        assert (end.status, end.success, end.llm_calls, end.tokens.total) == ("rejected", False, 0, 0)
        assert (end.error or "").startswith(f"{WAITS_FOR_BUDGET}: tokens per day of the tenant: 0 of 0: it waits")
    assert harness.server.requests["chat"] == asked
    assert (await jon.say(fact_json("Jon lives in Rome."))).status == "facts"
    waiting = "SELECT source_id, attempt FROM waiting_turns WHERE tenant = 'thrifty' ORDER BY published_at"
    assert [tuple(row.values()) for row in await harness.rows(waiting)] == [(first.turn_id, 1), (second.turn_id, 1)]
    await set_budget(harness, "thrifty", 10_000_000, "wait")
    for end in (first, second):
        again = await harness.memory.wait(
            end.turn_id, user_id="ida", tenant="thrifty", attempt=2, timeout=OUTCOME_SECONDS
        )
        assert (again.status, again.attempt, again.llm_calls > 0) == ("facts", 2, True)

    async def none_waits() -> bool:
        return await harness.rows(waiting) == []

    await wait_until(none_waits)
    assert await ida.statuses() == {"Ida lives in Oslo.": "active", "Ida owns a kayak.": "active"}
    decided = "SELECT source_id FROM commits WHERE tenant = 'thrifty' AND outcome = 'facts' ORDER BY log_offset"
    assert [row["source_id"] for row in await harness.rows(decided)] == [first.turn_id, second.turn_id]


async def test_turns_over_a_budget_are_stored_as_they_are_where_a_policy_says_so(harness: PipelineHarness) -> None:
    await set_budget(harness, "plain", 0, "raw")
    kai = harness.person("kai", tenant="plain")
    asked = harness.server.requests["chat"]
    end = await kai.say(fact_json("Kai lives in Bonn."))
    assert (end.status, end.llm_calls) == ("facts", 0)
    (note,) = end.notes
    assert note.startswith("tokens per day of the tenant: 0 of 0: each message of a user is stored as it is")
    assert harness.server.requests["chat"] == asked
    ((text, status),) = (await kai.statuses()).items()
    assert ("Kai lives in Bonn" in text, status) == (True, "active")
