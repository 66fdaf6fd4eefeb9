"""Limits under many publishers at once: refusals name the count and the limit, and never one turn too many."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pytest

from mnemolog.client.inputs import ScopeArgs
from mnemolog.projections.queries.results import Result
from mnemolog.schemas.policy import Level, LimitName
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS, user_turn
from tests.support.polling import until_grown
from tests.support.servers.kafka_client import producer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

PUBLISHERS: Final = 60
PRODUCERS: Final = 10
USERS: Final = 20
LIMIT: Final = 12


async def publish_at_once(harness: PipelineHarness, turns: Sequence[Turn]) -> None:
    """Each turn by a publisher of its own, some of whom share a connection; none looks at the limits."""
    topic = topic_name(CONVERSATION_TURNS, harness.settings.topic_prefix)

    async def publish(share: Sequence[Turn]) -> None:
        async with producer(harness.settings.kafka or "") as client:
            sending = (client.send_and_wait(topic, key=one.scope.key, value=one.to_bytes()) for one in share)
            await asyncio.gather(*sending)

    await asyncio.gather(*(publish(turns[number::PRODUCERS]) for number in range(PRODUCERS)))


async def set_limit(harness: PipelineHarness, level: Level, name: LimitName, most: int) -> None:
    """Set one limit of a tenant, or of its first user."""
    whose: ScopeArgs = {"tenant": name, **({"user_id": "user0"} if level == "scope" else {})}
    issued = await harness.memory.admin.set_policy({"limits": {name: most}}, **whose)
    assert (await harness.memory.wait(issued.turn_id, tenant=name)).success


async def active_facts(harness: PipelineHarness, tenant: str) -> int:
    (row,) = await harness.rows("SELECT count(*) AS n FROM facts WHERE tenant = %s AND status = 'active'", tenant)
    return int(row["n"])


@pytest.mark.parametrize(("level", "name"), [("scope", "turns_per_minute"), ("tenant", "active_facts")])
async def test_publishers_at_once_never_exceed_a_limit_and_with_a_higher_one_the_same_turns_go_through(
    harness: PipelineHarness, level: Level, name: LimitName
) -> None:
    """Turns are of one user where a scope is limited, else of many. Each brings a new fact."""
    users = 1 if level == "scope" else USERS
    turns = [
        user_turn(
            f"t{number}",
            f"Parcel {number} has arrived.",
            infer=False,
            scope=Scope(tenant=name, user_id=f"user{number % users}"),
        )
        for number in range(PUBLISHERS)
    ]
    await set_limit(harness, level, name, LIMIT)
    await publish_at_once(harness, turns)
    query = "SELECT * FROM commits WHERE source_kind = 'turn' AND tenant = %s"

    async def ended() -> int:
        return len(await harness.rows(query, name))

    await until_grown(ended, PUBLISHERS)
    ends: list[dict[str, Any]] = await harness.rows(query, name)
    minutes = Counter(row["published_at"].replace(second=0, microsecond=0) for row in ends)
    allowed = sum(min(LIMIT, count) for count in minutes.values()) if name == "turns_per_minute" else LIMIT
    assert Counter(row["outcome"] for row in ends) == {"stored": allowed, "rejected": PUBLISHERS - allowed}
    assert await active_facts(harness, name) == allowed
    hits = [row["limit_hit"] for row in ends if row["outcome"] == "rejected"]
    assert {(hit["name"], hit["level"], hit["limit"]) for hit in hits} == {(name, level, LIMIT)}
    assert {hit["count"] for hit in hits} <= {LIMIT, LIMIT + 1}

    # And not one more than it allows; what was let through before is not counted twice.
    more, refused = 5, {row["source_id"] for row in ends if row["outcome"] == "rejected"}
    known = next(one for one in turns if one.turn_id not in refused)
    again = [one for one in turns if one.turn_id in refused][: 2 * more]
    await set_limit(harness, level, name, allowed + more)
    await publish_at_once(harness, [known])
    await publish_at_once(harness, again)
    results = await asyncio.gather(*(wait_for_end(harness, one, attempt=2) for one in again))
    through = [result for result in results if result.status == "stored"]
    if name == "active_facts":
        assert len(through) == more
        assert {result.limit.limit for result in results if result.limit is not None} == {allowed + more}
    assert await active_facts(harness, name) == allowed + len(through)
    assert {result.attempt for result in results} == {2}
    assert (await wait_for_end(harness, known)).attempt == 1
    assert await harness.rows("SELECT * FROM rejections WHERE owner LIKE %s", f"{name}/%") == []


async def wait_for_end(harness: PipelineHarness, turn: Turn, attempt: int = 1) -> Result:
    scope = turn.scope
    return await harness.memory.wait(
        turn.turn_id, user_id=scope.user_id, tenant=scope.tenant, attempt=attempt, timeout=OUTCOME_SECONDS
    )
