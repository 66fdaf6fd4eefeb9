"""Budgets of a day over real servers: turns wait without delaying others, and come again; or are stored as they are."""

import asyncio
from collections import Counter
from typing import Final

import pytest

from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.policy import WAITS_FOR_BUDGET, WhenSpent
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS, user_turn
from tests.support.servers.kafka_client import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

TURNS: Final = 40


async def set_budget(harness: PipelineHarness, tenant: str, tokens: int, when_spent: WhenSpent) -> None:
    """The tokens of a day of a tenant, and what becomes of turns then."""
    policy = {"limits": {"tokens_per_day": tokens}, "when_spent": when_spent}
    issued = await harness.memory.set_policy(policy, tenant=tenant)
    assert (await harness.memory.wait(issued.command_id, tenant=tenant)).success


async def test_turns_over_a_budget_wait_and_come_again_in_their_order(harness: PipelineHarness) -> None:
    """Other tenants go on meanwhile, and so do the commands of this one; when the budget is raised, nothing is lost."""
    await set_budget(harness, "thrifty", 0, "wait")
    ilse, jon = harness.person("ilse", tenant="thrifty"), harness.person("jon", tenant="lavish")
    asked = harness.server.requests["chat"]
    first = await ilse.say(fact_json("Ilse lives in Oslo.", key="home_city", value="Oslo"))
    second = await ilse.say(fact_json("Ilse owns a kayak."))
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
            end.turn_id, user_id="ilse", tenant="thrifty", attempt=2, timeout=OUTCOME_SECONDS
        )
        assert (again.status, again.attempt) == ("facts", 2)
        assert any(stage.stage == "extract" and stage.tokens.total > 0 for stage in again.stages)

    async def none_waits() -> bool:
        return await harness.rows(waiting) == []

    await wait_until(none_waits)
    assert await ilse.statuses() == {"Ilse lives in Oslo.": "active", "Ilse owns a kayak.": "active"}
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


async def test_many_turns_at_once_go_over_a_budget_by_what_is_under_way_and_none_is_lost(
    harness: PipelineHarness,
) -> None:
    """Each ends: as facts, where the budget was not spent yet, or waiting; and once there is room, as facts, once."""
    await set_budget(harness, "rush", 1, "wait")
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
    first = Counter(end.status for end in ends)
    assert first["facts"] + first["rejected"] == TURNS
    assert first["facts"] >= 1
    assert all(end.limit is not None and end.llm_calls == 0 for end in ends if end.status == "rejected")
    later = user_turn("rush-later", "Parcel 99 has arrived.", scope=Scope(tenant="rush", user_id="late"))
    await harness.memory.add_many([later])
    assert (await wait_for_end(harness, later)).status == "rejected"
    await set_budget(harness, "rush", 10_000_000, "wait")
    for turn, end in zip((*turns, later), (*ends, None), strict=True):
        if end is None or end.status == "rejected":
            harness.model.extractions[turn.turn_id] = facts_reply(fact_json(turn.messages[0].content))
            assert (await wait_for_end(harness, turn, attempt=2)).status == "facts"
    facts = await harness.rows("SELECT text, count(*) AS n FROM facts WHERE tenant = 'rush' GROUP BY text")
    assert [row["n"] for row in facts] == [1] * (TURNS + 1)
    assert await harness.rows("SELECT * FROM waiting_turns WHERE tenant = 'rush'") == []


async def wait_for_end(harness: PipelineHarness, turn: Turn, attempt: int = 1) -> WriteResult:
    return await harness.memory.wait(
        turn.turn_id, user_id=turn.scope.user_id, tenant="rush", attempt=attempt, timeout=OUTCOME_SECONDS
    )
