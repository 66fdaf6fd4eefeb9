"""Budgets of a day where turns share calls, over real servers: all attempts together paid what the server counted."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from mnemolog.projections.queries.results import Result
from mnemolog.schemas.policy import WhenSpent
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.backlog import BACKLOG, Backlog
from tests.support.harnesses.pipeline_harness import START, PipelineHarness
from tests.support.servers.kafka_client import wait_until
from tests.support.servers.scripted_model import ScriptedDecision

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

PLENTY: Final = 10_000_000
KNOWN: Final = "The boat is red."
CONFLICT_PROMPT: Final = "keep a long-term memory consistent"


@pytest.fixture(autouse=True)
def quick_again(harness: PipelineHarness) -> Iterator[None]:
    yield
    harness.server.latency = 0.0
    harness.server.failures.clear()


async def set_budget(harness: PipelineHarness, tenant: str, when_spent: WhenSpent, **limits: Any) -> None:
    policy = {"limits": limits, "when_spent": when_spent}
    issued = await harness.memory.admin.set_policy(policy, tenant=tenant)
    assert (await harness.memory.wait(issued.turn_id, tenant=tenant)).success


async def counted(harness: PipelineHarness, tenant: str) -> int:
    """The tokens of the chat model that the tables have of a tenant."""
    query = """
        SELECT coalesce(sum(input_tokens + output_tokens), 0)::bigint AS tokens FROM daily_usage
        WHERE tenant = %s AND user_id || agent_id = '' AND model = %s
    """
    ((tokens,),) = [row.values() for row in await harness.rows(query, tenant, harness.settings.chat_model)]
    return int(tokens)


def tokens_of(ends: Sequence[Result]) -> int:
    """What the extractions of these attempts took."""
    return sum(stage.tokens.total for end in ends for stage in end.stages if stage.stage == "extract")


async def test_with_reject_no_turn_gets_past_the_budget_though_its_part_is_paid_for(harness: PipelineHarness) -> None:
    """The first turns fit, each with its share. Published again with room, the others get their parts for nothing."""
    free = Backlog(harness, "max", tenant="open")
    await free.run()
    costs = [end.tokens.total for end in await free.ends()]
    budget, before = sum(costs[: BACKLOG // 2]), harness.server.chat_tokens
    await set_budget(harness, "strict", "reject", tokens_per_day=budget)
    backlog = Backlog(harness, "ben", tenant="strict")
    await backlog.run()
    ends = await backlog.ends()
    paid, passed = [end.tokens.total for end in ends], sum(end.status == "stored" for end in ends)
    assert [end.status for end in ends] == ["stored"] * passed + ["rejected"] * (BACKLOG + 1 - passed)
    assert sum(paid[:passed]) <= budget < sum(paid[: passed + 1])
    assert tokens_of(ends) == await counted(harness, "strict") == harness.server.chat_tokens - before
    await set_budget(harness, "strict", "reject", tokens_per_day=PLENTY)
    await harness.memory.add_many(backlog.turns[passed:])
    again = await backlog.ends(2, backlog.turns[passed:])
    assert [end.status for end in again] == ["stored"] * (BACKLOG + 1 - passed)
    assert tokens_of([end for end, tokens in zip(again, paid[passed:], strict=True) if tokens]) == 0
    assert tokens_of([*ends, *again]) == await counted(harness, "strict") == harness.server.chat_tokens - before
    assert await backlog.facts() == backlog.texts


async def test_turns_that_a_budget_let_through_together_are_finished_and_later_ones_are_not_asked_about(
    harness: PipelineHarness,
) -> None:
    """The first commit, which spends it, comes when all of them were asked about."""
    tenant, before = "under-way", harness.server.chat_tokens
    backlog = with_conflict(Backlog(harness, "ida", tenant=tenant, turns=7))
    known = await ask_about_all(backlog, "raw")
    harness.server.failures.clear()
    ends = [known, *await backlog.ends()]
    assert [end.status for end in ends] == ["stored"] * 9
    asked = harness.server.requests["chat"]
    late = await harness.person(backlog.name, tenant=tenant).say(fact_json("Ida likes rye bread."), turn_id="late")
    assert (late.llm_calls, late.status) == (0, "stored")
    assert harness.server.requests["chat"] == asked
    assert await counted(harness, tenant) == harness.server.chat_tokens - before


def with_conflict(backlog: Backlog) -> Backlog:
    """The first turn contradicts what is known."""
    model, turn, new = backlog.harness.model, backlog.turns[0], fact_json("The boat is blue.", "boat")
    model.extractions[turn.turn_id] = facts_reply(new)
    model.decisions[new["text"]] = ScriptedDecision("REPLACE", (KNOWN,))
    message = turn.messages[0].model_copy(update={"content": new["excerpt"]})
    backlog.turns[0] = turn.model_copy(update={"messages": (message,)})
    return backlog


async def ask_about_all(backlog: Backlog, when_spent: WhenSpent) -> Result:
    """Have all turns asked about before the first one is decided, and the next commit spend the budget of their tenant.

    That first one's conflict gets no answer until the failures of the server are cleared. Gives what is known before.
    """
    harness, server = backlog.harness, backlog.harness.server
    person = harness.person(backlog.name, tenant=backlog.tenant)
    known = await person.say(fact_json(KNOWN, "boat"), turn_id=f"{backlog.name}-known", occurred_at=START)
    await set_budget(harness, backlog.tenant, when_spent, tokens_per_day=known.tokens.total + 1)
    server.fail(mode="hang", times=None, path="chat", containing=CONFLICT_PROMPT)
    server.latency, before = 1.0, server.requests["chat"]

    async def is_asked() -> bool:
        return server.requests["chat"] > before

    async def are_answered() -> bool:
        kept = """
            SELECT count(DISTINCT source_id) AS turns FROM mnemolog_journal.model_replies
            WHERE owner = %s AND source_id = ANY (%s) AND stage = 'extract' AND input_tokens > 0
        """
        ids = [turn.turn_id for turn in backlog.turns]
        ((turns,),) = [row.values() for row in await harness.rows(kept, f"{backlog.tenant}/{backlog.name}", ids)]
        return int(turns) == len(ids) and server.requests["chat"] > before + 2

    await harness.memory.add_many(backlog.turns[:1])
    await wait_until(is_asked)
    await harness.memory.add_many(backlog.turns[1:])
    server.latency = 0.0
    await wait_until(are_answered)
    return known
