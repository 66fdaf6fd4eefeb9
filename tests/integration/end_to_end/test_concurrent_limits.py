"""Limits under two hundred publishers at once: refusals name the count and the limit, and never one turn too many."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, get_args

import pytest
import pytest_asyncio

from mnemolog.client.inputs import ScopeArgs
from mnemolog.errors import LimitExceededError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.policy import Level, LimitHit, LimitName
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS, user_turn
from tests.support.polling import until_grown
from tests.support.servers.kafka_client import producer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

PUBLISHERS: Final = 200
PRODUCERS: Final = 10
USERS: Final = 40
LIMIT: Final = 30
LEVELS: Final[list[Level]] = ["scope", "tenant"]
Case = tuple[Level, LimitName]
CASES: Final[list[Case]] = [
    (level, name) for level in LEVELS for name in get_args(LimitName) if name in ("active_facts", "turns_per_minute")
]


def tenant_of(case: Case) -> str:
    return "-".join(case)


def turns_of_case(level: Level, name: LimitName) -> list[Turn]:
    """One turn of each publisher: of one user where a scope is limited, else of many. Each brings a new fact."""
    users = 1 if level == "scope" else USERS
    return [
        user_turn(
            f"t{number}",
            f"Parcel {number} has arrived.",
            infer=False,
            scope=Scope(tenant=tenant_of((level, name)), user_id=f"user{number % users}"),
        )
        for number in range(PUBLISHERS)
    ]


async def publish_at_once(harness: PipelineHarness, turns: Iterable[Turn]) -> None:
    """Each turn by a publisher of its own, some of whom share a connection; none looks at the limits."""
    topic = topic_name(CONVERSATION_TURNS, harness.settings.topic_prefix)
    shares: list[list[Turn]] = [[] for _ in range(PRODUCERS)]
    for number, each in enumerate(turns):
        shares[number % PRODUCERS].append(each)

    async def publish(share: list[Turn]) -> None:
        async with producer(harness.settings.kafka or "") as client:
            await asyncio.gather(
                *(client.send_and_wait(topic, key=one.scope.key, value=one.to_bytes()) for one in share)
            )

    await asyncio.gather(*map(publish, shares))


async def set_limit(harness: PipelineHarness, case: Case, most: int, tenant: str | None = None) -> None:
    """Set one limit of a tenant, or of its first user."""
    level, name = case
    whose: ScopeArgs = {"tenant": tenant or tenant_of(case), **({"user_id": "user0"} if level == "scope" else {})}
    issued = await harness.memory.set_policy({"limits": {name: most}}, **whose)
    assert (await harness.memory.wait(issued.command_id, tenant=whose["tenant"])).success


async def wait_for_end(harness: PipelineHarness, turn: Turn, attempt: int = 1) -> WriteResult:
    scope = turn.scope
    return await harness.memory.wait(
        turn.turn_id, user_id=scope.user_id, tenant=scope.tenant, attempt=attempt, timeout=OUTCOME_SECONDS
    )


@dataclass(frozen=True, slots=True)
class PublishResult:
    """Two hundred publishers at once: the ends of their turns, and the active facts."""

    tenant: str
    turns: list[Turn]
    ends: list[dict[str, Any]]
    active: int

    @property
    def refused(self) -> list[Turn]:
        names = {row["source_id"] for row in self.ends if row["outcome"] == "rejected"}
        return [turn for turn in self.turns if turn.turn_id in names]


PublishResults = dict[Case, PublishResult]


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def publish_results(harness: PipelineHarness) -> PublishResults:
    """All publishers of all cases at once, and then a look at the tables."""
    published = {case: turns_of_case(*case) for case in CASES}
    await asyncio.gather(*(set_limit(harness, case, LIMIT) for case in CASES))
    await publish_at_once(harness, chain.from_iterable(zip(*published.values(), strict=True)))

    async def ended() -> int:
        query = "SELECT count(*) AS n FROM commits WHERE source_kind = 'turn' AND tenant = ANY(%s)"
        (row,) = await harness.rows(query, list(map(tenant_of, CASES)))
        return int(row["n"])

    await until_grown(ended, PUBLISHERS * len(CASES))
    query = "SELECT * FROM commits WHERE tenant = %s AND source_kind = 'turn'"
    return {
        case: PublishResult(
            tenant_of(case), turns, await harness.rows(query, tenant_of(case)), await active_fact_count(harness, case)
        )
        for case, turns in published.items()
    }


async def active_fact_count(harness: PipelineHarness, case: Case) -> int:
    (row,) = await harness.rows(
        "SELECT count(*) AS n FROM facts WHERE tenant = %s AND status = 'active'", tenant_of(case)
    )
    return int(row["n"])


@pytest.mark.parametrize("case", CASES, ids="-".join)
async def test_two_hundred_publishers_at_once_never_exceed_a_limit(publish_results: PublishResults, case: Case) -> None:
    level, name = case
    publishers = publish_results[case]
    minutes = Counter(row["published_at"].replace(second=0, microsecond=0) for row in publishers.ends)
    allowed = sum(min(LIMIT, count) for count in minutes.values()) if name == "turns_per_minute" else LIMIT
    assert Counter(row["outcome"] for row in publishers.ends) == {
        "facts": allowed,
        "rejected": PUBLISHERS - allowed,
    }
    assert publishers.active == allowed
    refusals = [row["limit_hit"] for row in publishers.ends if row["outcome"] == "rejected"]
    assert {(hit["name"], hit["level"], hit["limit"]) for hit in refusals} == {(name, level, LIMIT)}
    assert {hit["count"] for hit in refusals} <= {LIMIT, LIMIT + 1}


@pytest.mark.parametrize("case", CASES, ids="-".join)
async def test_with_a_higher_limit_the_very_same_turns_go_through(
    harness: PipelineHarness, publish_results: PublishResults, case: Case
) -> None:
    """And not one more than it allows; what was let through before is not counted twice."""
    publishers, more = publish_results[case], 5
    known = [one for one in publishers.turns if one not in publishers.refused][:1]
    await set_limit(harness, case, publishers.active + more)
    again = publishers.refused[: 2 * more]
    await publish_at_once(harness, known)
    await publish_at_once(harness, again)
    results = await asyncio.gather(*(wait_for_end(harness, one, attempt=2) for one in again))
    through = [result for result in results if result.status == "facts"]
    if case[1] == "active_facts":
        assert len(through) == more
        refused = {result.limit.limit for result in results if result.limit is not None}
        assert refused == {publishers.active + more}
    assert await active_fact_count(harness, case) == publishers.active + len(through)
    assert {result.attempt for result in results} == {2}
    assert (await wait_for_end(harness, known[0])).attempt == 1
    assert await harness.rows("SELECT * FROM rejections WHERE owner LIKE %s", f"{publishers.tenant}/%") == []


@pytest.mark.parametrize("level", LEVELS)
async def test_the_precheck_refuses_before_anything_is_published(harness: PipelineHarness, level: Level) -> None:
    case: Case = (level, "bytes_per_turn")
    await set_limit(harness, case, 400)
    whose: dict[str, Any] = {"tenant": tenant_of(case), "user_id": "user0", "turn_id": "long"}
    with pytest.raises(LimitExceededError, match=f"bytes per turn of the {level}") as refusal:
        await harness.memory.add("A long text. " * 40, **whose, infer=False)
    assert (refusal.value.hit.name, refusal.value.hit.limit, refusal.value.hit.count > 400) == (case[1], 400, True)
    assert refusal.value.turn_id == "long"
    long = user_turn("long", "A long text. " * 40, scope=Scope(tenant=whose["tenant"], user_id="user0"), infer=False)
    await publish_at_once(harness, [long])
    result = await wait_for_end(harness, long)
    assert (result.status, result.limit) == (
        "rejected",
        LimitHit(name=case[1], level=level, count=len(long.to_bytes()), limit=400),
    )
    await set_limit(harness, case, 4000)
    await harness.memory.add("A long text. " * 40, **whose, infer=False)
    assert (await wait_for_end(harness, long, attempt=2)).status == "facts"


async def test_no_model_is_asked_once_a_days_tokens_are_used_up(harness: PipelineHarness) -> None:
    case: Case = ("tenant", "tokens_per_day")
    await set_limit(harness, case, 1)
    lou = user_turn("t1", "I live in Rome.", scope=Scope(tenant=tenant_of(case), user_id="lou"))
    asked = harness.server.requests["chat"]
    await publish_at_once(harness, [lou])
    first = await wait_for_end(harness, lou)
    assert (first.status, first.limit is not None and first.limit.count > 1) == ("rejected", True)
    late = lou.model_copy(update={"turn_id": "t2"})
    await publish_at_once(harness, [late])
    second = await wait_for_end(harness, late)
    assert (second.status, second.tokens.total, second.llm_calls) == ("rejected", 0, 0)
    assert harness.server.requests["chat"] == asked + 1
