"""Limits hold by themselves at each level, under any number of publishers, and never by one too many or too few."""

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from mnemolog.client.connections import LimitPrecheck, ReadPool
from mnemolog.errors import LimitExceededError
from mnemolog.projections.database import open_pool
from mnemolog.projections.stores.turns import LimitReservations
from mnemolog.schemas.command import DeleteAll, Import, ImportedFact
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.costs import ModelPrice, PriceTable
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import LEVELS, EffectivePolicy, Level, LimitHit, Limits, Policy, WhenSpent
from mnemolog.schemas.provenance import Origin, Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.resolution.limits import LimitEnforcer
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    added,
    command_commit,
    commit,
    day,
    fact_id_at,
    pending,
    policy_set,
    replaced,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

PUBLISHERS = 100
WORKERS = 2
MINUTE = timedelta(minutes=1)
TWO_FACTS = commit("t1", added("one"), added("two"))
PRICES = PriceTable((ModelPrice(model="m1", input=Decimal(1), output=Decimal(1)),))


@pytest.fixture
def enforcer(db: ProjectedDatabase) -> LimitEnforcer:
    return LimitEnforcer(LimitReservations(db.pool, PRICES))


def rules(level: Level = "tenant", when_spent: WhenSpent = "reject", /, **limits: Any) -> EffectivePolicy:
    return EffectivePolicy().overlaid_by(Policy(limits=Limits(**limits), when_spent=when_spent), level)


async def admit(
    enforcer: LimitEnforcer,
    source_id: str,
    rules: EffectivePolicy,
    *,
    scope: Scope = ALICE,
    at: datetime = START_TIME,
    facts: int = 1,
    tokens: int = 100,
    **fields: Any,
) -> LimitHit | None:
    """The limit that refuses a turn just before its commit, if one does; else the turn is reserved."""
    origin = Origin(topic="conversation_turns", partition=0, offset=0)
    given: dict[str, Any] = {"source_id": source_id, "scope": scope, "origin": origin}
    envelope = MatchedFacts(**given | {"occurred_at": at, "published_at": at} | fields)
    return await enforcer.exceeded_limit(envelope, rules, facts=facts, tokens=tokens)


def token_step(tokens: int) -> Step:
    return Step(stage="extract", milliseconds=1, input_tokens=tokens - 1, output_tokens=1)


def refusal(source_id: str, hit: LimitHit, attempt: int = 1, tokens: int = 100) -> Commit:
    steps = [token_step(tokens)] if tokens else []
    return commit(source_id, outcome="rejected", reason="limit", limit=hit, attempt=attempt, steps=steps)


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [({"active_facts": 51}, 25), ({"turns_per_minute": 40}, 40), ({"tokens_per_day": 3_099}, 30)],
)
async def test_many_publishers_at_once_use_a_tenant_s_limit_up_and_no_more(
    db: ProjectedDatabase, limits: dict[str, int], allowed: int
) -> None:
    """Two workers with connections of their own; what is let through is projected while others decide."""
    log, holding = asyncio.Lock(), rules(**limits)

    async def publish(limiting: LimitEnforcer, number: int) -> LimitHit | None:
        scope = Scope(user_id=f"user{number}")
        hit = await admit(limiting, "t1", holding, scope=scope, facts=2)
        if hit is None and number % 2:
            async with log:
                await db.apply(
                    commit("t1", added("one"), added("two"), scope=scope, at=START_TIME, steps=[token_step(100)])
                )
        return hit

    async with AsyncExitStack() as stack:
        pools = [
            open_pool(db.url, min_size=1, max_size=20, application_name=f"worker{number}", autocommit=True)
            for number in range(WORKERS)
        ]
        workers = [LimitEnforcer(LimitReservations(await stack.enter_async_context(pool))) for pool in pools]
        hits = await asyncio.gather(*(publish(workers[number % WORKERS], number) for number in range(PUBLISHERS)))
    assert hits.count(None) == allowed
    refusals = {hit for hit in hits if hit is not None}
    assert {(hit.level, hit.name) for hit in refusals} == {("tenant", *limits)}
    assert all(hit.count > hit.limit for hit in refusals)


async def test_a_scope_s_limit_counts_what_is_projected(db: ProjectedDatabase, enforcer: LimitEnforcer) -> None:
    await db.apply(TWO_FACTS, commit("t2", added("elsewhere"), scope=BOB))
    holding = rules("scope", active_facts=3)
    assert await admit(enforcer, "t3", holding) is None
    hit = await admit(enforcer, "t3", holding, facts=2)
    assert hit == LimitHit(name="active_facts", level="scope", count=4, limit=3)
    assert str(hit) == "active facts of the scope: 4 of 3"
    assert await admit(enforcer, "t3", holding, scope=BOB, facts=2) is None


async def test_a_reserved_import_takes_no_turn_of_its_minute(enforcer: LimitEnforcer) -> None:
    holding = rules(active_facts=9, turns_per_minute=1)
    order = Import(fact=ImportedFact(text="one"))
    for number in range(3):
        assert await admit(enforcer, f"i{number}", holding, source_kind="command", order=order) is None
    hit = await admit(enforcer, "t1", holding, facts=7)
    assert hit == LimitHit(name="active_facts", level="tenant", count=10, limit=9)
    assert await admit(enforcer, "t1", holding) is None


async def test_what_passes_the_precheck_may_still_be_refused_before_its_commit(
    db: ProjectedDatabase, enforcer: LimitEnforcer
) -> None:
    """Two turns come past it together, and there is room for one."""
    for level in LEVELS:
        holding, owner = rules(level, active_facts=1), Scope(tenant=level, user_id="kim")
        for _ in range(2):
            assert await enforcer.precheck(owner, holding, 10, START_TIME) is None
        assert await admit(enforcer, "t1", holding, scope=owner) is None
        await db.apply(commit("t1", added("one"), scope=owner))
        hit = LimitHit(name="active_facts", level=level, count=2, limit=1)
        assert await admit(enforcer, "t2", holding, scope=owner) == hit
        late = LimitHit(name="active_facts", level=level, count=1, limit=1)
        assert await enforcer.precheck(owner, holding, 10, START_TIME) == late


async def test_pending_facts_count_and_ended_ones_and_turns_that_add_none_do_not(
    db: ProjectedDatabase, enforcer: LimitEnforcer
) -> None:
    held = pending("four", fact_id_at(TWO_FACTS, 1))
    await db.apply(TWO_FACTS, commit("t2", replaced("three", fact_id_at(TWO_FACTS)), held, at=day(1)))
    for level in LEVELS:
        assert await admit(enforcer, "t3", rules(level, active_facts=4)) is None
        hit = await admit(enforcer, "t3", rules(level, active_facts=3))
        assert hit == LimitHit(name="active_facts", level=level, count=4, limit=3)
        assert await admit(enforcer, "t4", rules(level, active_facts=0), facts=0) is None


async def test_a_minute_and_a_day_are_those_of_the_broker_s_clock(
    db: ProjectedDatabase, enforcer: LimitEnforcer
) -> None:
    late = START_TIME.replace(hour=23, minute=59, second=58)
    await db.apply(commit("t1", at=late, steps=[token_step(900)]))  # published at 23:59:59
    for level in LEVELS:
        for at, is_over in ((late - 58 * timedelta(seconds=1), True), (late - MINUTE, False), (late + MINUTE, False)):
            hit = await admit(enforcer, "t2", rules(level, turns_per_minute=1), at=at)
            assert (hit is not None) == is_over, (level, at)
        far_west = late.astimezone(timezone(timedelta(hours=-12)))  # where a day began twelve hours later
        times = ((late, True), (far_west, True), (late - timedelta(hours=23), True), (late + MINUTE, False))
        for at, is_over in times:
            hit = await admit(enforcer, "t2", rules(level, tokens_per_day=1000), at=at, tokens=101)
            assert (hit is not None) == is_over, (level, at)


async def test_what_needs_no_count_asks_no_database(db: ProjectedDatabase) -> None:
    never_opened = open_pool(db.url, min_size=0, max_size=1, application_name="never-opened")
    enforcer = LimitEnforcer(LimitReservations(never_opened))
    for unlimited in (EffectivePolicy(), rules("tenant"), rules("scope")):
        assert await admit(enforcer, "t1", unlimited) is None
        assert await enforcer.precheck(ALICE, unlimited, 1_000_000, START_TIME) is None
    holding = rules("scope", bytes_per_turn=100)
    assert await admit(enforcer, "t1", holding, size=100) is None
    hit = LimitHit(name="bytes_per_turn", level="scope", count=101, limit=100)
    assert await admit(enforcer, "t1", holding, size=101) == hit
    assert await enforcer.precheck(ALICE, holding, 101, START_TIME) == hit


async def test_commands_are_not_limited_and_are_no_turns(enforcer: LimitEnforcer, db: ProjectedDatabase) -> None:
    none = rules(active_facts=0, turns_per_minute=0, tokens_per_day=0, bytes_per_turn=0)
    assert await admit(enforcer, "c1", none, source_kind="command", order=DeleteAll(), size=10) is None
    await db.apply(commit("t1", added("one")), command_commit("c1", DeleteAll(key="home_city")))
    for level in LEVELS:
        assert await admit(enforcer, "t2", rules(level, turns_per_minute=1)) is not None
        assert await admit(enforcer, "t2", rules(level, turns_per_minute=2)) is None


async def test_a_turn_that_is_decided_again_replaces_its_reservation_until_its_commit_is_projected(
    db: ProjectedDatabase, enforcer: LimitEnforcer
) -> None:
    holding, three = rules(active_facts=3, turns_per_minute=1), rules(active_facts=3)
    for facts in (3, 2):
        assert await admit(enforcer, "t1", holding, facts=facts) is None
    assert await db.rows("SELECT source_id, attempt, facts FROM limit_reservations") == [("t1", 1, 2)]
    hit = await admit(enforcer, "t2", three, scope=BOB, facts=2)
    assert hit == LimitHit(name="active_facts", level="tenant", count=4, limit=3)
    await db.apply(commit("t1", added("only one in the end")))
    assert await admit(enforcer, "t2", three, scope=BOB, facts=2) is None
    assert await db.rows("SELECT owner, source_id FROM limit_reservations") == [("default/bob", "t2")]


async def test_other_tenants_are_not_counted(db: ProjectedDatabase, enforcer: LimitEnforcer) -> None:
    await db.apply(commit("t1", added("one"), scope=Scope(tenant="acme", user_id="alice"), steps=[token_step(100)]))
    holding = rules(active_facts=1, turns_per_minute=1, tokens_per_day=100)
    for scope in (ALICE, Scope(tenant="other", user_id="alice")):
        assert await admit(enforcer, "t1", holding, scope=scope) is None


@pytest.mark.parametrize("level", LEVELS)
async def test_with_a_higher_limit_a_refused_turn_goes_through(
    db: ProjectedDatabase, enforcer: LimitEnforcer, level: Level
) -> None:
    """It was no turn of its minute. It gets its stored replies, so its tokens, which were used once, count once."""

    async def hit(source_id: str, tokens_per_day: int, tokens: int = 100) -> LimitHit | None:
        return await admit(
            enforcer, source_id, rules(level, turns_per_minute=2, tokens_per_day=tokens_per_day), tokens=tokens
        )

    def over(count: int, limit: int) -> LimitHit:
        return LimitHit(name="tokens_per_day", level=level, count=count, limit=limit)

    await db.apply(commit("t1", steps=[token_step(100)]))
    assert await hit("t2", 150) == over(200, 150)
    await db.apply(refusal("t2", over(200, 150)))
    assert await hit("t3", 200) == over(300, 200)  # the tokens of t2 were used
    assert await hit("t2", 200, tokens=1) == over(201, 200)
    assert await hit("t2", 200, tokens=0) is None
    await db.apply(commit("t2", attempt=2))
    holding = {limit: rules(level, tokens_per_day=limit) for limit in (200, 300)}
    assert await admit(enforcer, "t3", holding[200]) == over(300, 200)
    assert await admit(enforcer, "t3", holding[300]) is None


@pytest.mark.parametrize("level", LEVELS)
async def test_before_a_model_is_asked_only_what_is_used_up_counts(
    db: ProjectedDatabase, enforcer: LimitEnforcer, level: Level
) -> None:
    await db.apply(commit("t1", added("one"), added("two"), steps=[token_step(100)]))
    used: dict[Any, int] = {"active_facts": 2, "turns_per_minute": 1, "tokens_per_day": 100}
    for name, count in used.items():
        full, free = rules(level, **{name: count}), rules(level, **{name: count + 1})
        hit = LimitHit(name=name, level=level, count=count, limit=count)
        assert await enforcer.precheck(ALICE, full, 10, START_TIME) == hit
        assert await enforcer.precheck(ALICE, free, 10, START_TIME) is None
        assert (await enforcer.precheck(BOB, full, 10, START_TIME) is None) == (level == "scope")


async def test_a_scope_s_limit_comes_before_its_tenant_s(db: ProjectedDatabase, enforcer: LimitEnforcer) -> None:
    await db.apply(commit("t1", added("one")))
    policy = Policy(limits=Limits(active_facts=1))
    both = EffectivePolicy().overlaid_by(policy, "tenant").overlaid_by(policy, "scope")
    for hit in (await admit(enforcer, "t2", both), await enforcer.precheck(ALICE, both, 1, START_TIME)):
        assert hit is not None
        assert hit.level == "scope"
    assert await db.rows("SELECT * FROM limit_reservations") == []


async def test_what_a_turn_frees_reserves_nothing_and_is_not_given_away_before_it_is_free(
    db: ProjectedDatabase, enforcer: LimitEnforcer
) -> None:
    holding = rules(active_facts=3)
    await db.apply(TWO_FACTS)
    assert await admit(enforcer, "t2", holding, facts=-1) is None
    assert await admit(enforcer, "t1", holding, scope=BOB, facts=2) is not None
    assert await admit(enforcer, "t1", holding, scope=BOB) is None


async def test_a_turn_published_again_counts_as_its_next_attempt_until_that_is_projected(
    db: ProjectedDatabase, enforcer: LimitEnforcer
) -> None:
    holding = rules(active_facts=2)
    await db.apply(refusal("t1", LimitHit(name="active_facts", level="tenant", count=2, limit=1)))
    assert await admit(enforcer, "t1", holding, facts=2) is None
    for _ in range(2):  # each also clears away what is projected
        assert await admit(enforcer, "t1", holding, scope=BOB) is not None
    await db.apply(commit("t1", added("one"), attempt=2))
    assert await admit(enforcer, "t2", holding) is None
    await db.apply(commit("t2"))
    assert await admit(enforcer, "t1", holding, scope=BOB) is None


COUNTED = "SELECT tenant, user_id, agent_id, facts FROM scopes ORDER BY 1, 2, 3"
OPEN = """
SELECT tenant, user_id, agent_id, count(*) FILTER (WHERE status IN ('active', 'pending_confirmation'))
FROM facts GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


async def test_counted_facts_are_the_open_ones(db: ProjectedDatabase) -> None:
    await db.apply(*every_decision_log())
    for one in every_decision_log(BOB):  # one after another: each in a transaction of its own
        await db.apply(one, partition=1)
    rows = await db.rows(OPEN)
    assert len(rows) == 2
    assert all(count > 0 for *_, count in rows)
    assert await db.rows(COUNTED) == rows
    tenants = await db.rows("SELECT partition, tenant, facts FROM tenant_facts ORDER BY 1")
    assert tenants == [(partition, "default", count) for partition, (*_, count) in enumerate(rows)]


@pytest.mark.parametrize("together", [True, False])
async def test_tokens_of_a_day_are_those_that_each_attempt_paid_for(db: ProjectedDatabase, together: bool) -> None:
    """A turn of yesterday counts there. The second attempt of t2 was asked anew, later ones got stored replies."""
    hit = LimitHit(name="active_facts", level="tenant", count=2, limit=1)
    log = [
        commit("t1", added("one"), steps=[token_step(7)]),
        commit("yesterday", at=START_TIME - timedelta(days=1), steps=[token_step(7)]),
        commit("free"),
        refusal("t2", hit, tokens=7),
        refusal("t2", hit, attempt=2, tokens=7),
        commit("t2", attempt=3),
        refusal("t3", hit, tokens=7),
        refusal("t3", hit, attempt=2, tokens=0),
    ]
    for part in [log] if together else [[one] for one in log]:
        await db.apply(*part)
    checking = LimitEnforcer(LimitReservations(db.pool), reserves=False)
    for level in LEVELS:
        for source_id, at, used in (("new", 0, 28), ("t2", 0, 28), ("t3", 0, 28), ("new", 1, 0)):
            over = await admit(checking, source_id, rules(level, tokens_per_day=1), at=day(at), tokens=1000)
            assert over is not None
            assert over.count == used + 1000


DOLLAR = Step(stage="extract", milliseconds=1, model="m1", llm_calls=1, input_tokens=900_000, output_tokens=100_000)
UNPRICED = Step(stage="embed", milliseconds=1, model="e1", embedding_calls=1, input_tokens=900_000)


@pytest.mark.parametrize("level", LEVELS)
async def test_a_budget_is_spent_by_the_turns_of_its_day(
    db: ProjectedDatabase, enforcer: LimitEnforcer, level: Level
) -> None:
    """What has no price spends no money."""

    async def hit(limit: str, scope: Scope = ALICE, at: datetime = START_TIME) -> LimitHit | None:
        return await enforcer.precheck(scope, rules(level, cost_per_day=limit), 0, at)

    await db.apply(commit("1", added("A."), steps=[UNPRICED]))
    assert await hit("0.000001") is None
    assert await hit("0") is not None
    await db.apply(commit("2", added("B."), steps=[DOLLAR]))
    assert await hit("1.01") is None
    assert await hit("1") == LimitHit(name="cost_per_day", level=level, count=1.0, limit=1.0)
    assert (await hit("1", BOB) is None) == (level == "scope")
    assert await hit("1", Scope(tenant="other", user_id="alice")) is None
    assert await hit("1", at=day(1)) is None
    assert await hit("1", at=START_TIME.replace(hour=23, minute=59)) is not None


@pytest.mark.parametrize(("when_spent", "rejects"), [("reject", True), ("raw", False)])
async def test_what_is_paid_for_is_kept_unless_turns_over_a_budget_are_rejected(
    db: ProjectedDatabase, enforcer: LimitEnforcer, when_spent: WhenSpent, rejects: bool
) -> None:
    """And the client refuses only what would be rejected."""
    holding = rules("tenant", when_spent, tokens_per_day=10, active_facts=5)
    assert (await admit(enforcer, "1", holding, tokens=50) is not None) == rejects
    over = await admit(enforcer, "1", holding, facts=9, tokens=0)
    assert over is not None
    assert over.name == "active_facts"

    policy = Policy(limits=Limits(cost_per_day=Decimal(1), tokens_per_day=5), when_spent=when_spent)
    await db.apply(commit("p1", policy_set(policy)), commit("1", added("A."), steps=[DOLLAR]))
    said = (Message(role="user", content="I moved to Bern."),)
    turn = Turn(turn_id="t9", scope=ALICE, messages=said, occurred_at=START_TIME)
    reader = ReadPool(db.url, size=2, statement_timeout=5.0)
    try:
        if rejects:
            with pytest.raises(LimitExceededError, match="tokens per day"):
                await LimitPrecheck(PRICES).check(reader, turn, START_TIME)
        else:
            await LimitPrecheck(PRICES).check(reader, turn, START_TIME)
    finally:
        await reader.close()
