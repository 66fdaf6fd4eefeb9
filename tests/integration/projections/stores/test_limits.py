"""Limits hold by themselves at each level, under any number of publishers, and never by one too many or too few."""

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from mnemolog.projections.database import open_pool
from mnemolog.projections.stores.turns import LimitReservations
from mnemolog.schemas.command import DeleteAll, Import, ImportedFact
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import LEVELS, EffectivePolicy, Level, LimitHit, LimitName, Limits, Policy, TurnUsage
from mnemolog.schemas.provenance import Origin, Step
from mnemolog.schemas.scope import Scope
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
    replaced,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

PUBLISHERS = 200
WORKERS = 2
MINUTE = timedelta(minutes=1)


@pytest.fixture
def limit_store(db: ProjectedDatabase) -> LimitEnforcer:
    return LimitEnforcer(LimitReservations(db.pool))


@pytest.fixture
def limits_without_database(db: ProjectedDatabase) -> LimitEnforcer:
    """Fails where it asks the database."""
    return LimitEnforcer(LimitReservations(open_pool(db.url, min_size=0, max_size=1, application_name="never-opened")))


def rules(level: Level = "tenant", /, **limits: Any) -> EffectivePolicy:
    return EffectivePolicy().overlaid_by(Policy(limits=Limits(**limits)), level)


def matched_envelope(source_id: str, scope: Scope = ALICE, *, at: datetime = START_TIME, **fields: Any) -> MatchedFacts:
    origin = Origin(topic="conversation_turns", partition=0, offset=0)
    given: dict[str, Any] = {"source_id": source_id, "scope": scope, "origin": origin}
    given |= {"occurred_at": at, "published_at": at}
    return MatchedFacts(**given | fields)


def token_step(tokens: int) -> Step:
    return Step(stage="extract", milliseconds=1, input_tokens=tokens - 1, output_tokens=1)


async def check_limits(
    limits: LimitEnforcer,
    turn: MatchedFacts,
    rules: EffectivePolicy,
    *,
    added: int = 1,
    ended: int = 0,
    tokens: int = 100,
) -> LimitHit | None:
    return await limits.exceeded_limit(turn, rules, facts=added - ended, tokens=tokens)


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
        hit = await check_limits(limiting, matched_envelope("t1", scope), holding, added=2)
        if hit is None and number % 2:
            async with log:
                await db.apply(
                    commit("t1", added("one"), added("two"), scope=scope, at=START_TIME, steps=[token_step(100)])
                )
        return hit

    async with AsyncExitStack() as stack:
        workers = [
            LimitEnforcer(
                LimitReservations(
                    await stack.enter_async_context(
                        open_pool(db.url, min_size=1, max_size=20, application_name=f"worker{number}", autocommit=True)
                    )
                )
            )
            for number in range(WORKERS)
        ]
        hits = await asyncio.gather(*(publish(workers[number % WORKERS], number) for number in range(PUBLISHERS)))
    assert hits.count(None) == allowed
    refusals = {hit for hit in hits if hit is not None}
    assert {(hit.level, hit.name) for hit in refusals} == {("tenant", *limits)}
    assert all(hit.count > hit.limit for hit in refusals)


async def test_a_scope_s_limit_counts_what_is_projected(db: ProjectedDatabase, limit_store: LimitEnforcer) -> None:
    first = commit("t1", added("one"), added("two"))
    await db.apply(first, commit("t2", added("elsewhere"), scope=BOB))
    holding = rules("scope", active_facts=3)
    assert await check_limits(limit_store, matched_envelope("t3"), holding, added=1) is None
    hit = await check_limits(limit_store, matched_envelope("t3"), holding, added=2)
    assert hit == LimitHit(name="active_facts", level="scope", count=4, limit=3)
    assert str(hit) == "active facts of the scope: 4 of 3"
    assert await check_limits(limit_store, matched_envelope("t3", BOB), holding, added=2) is None


async def test_a_reserved_import_takes_no_turn_of_its_minute(limit_store: LimitEnforcer) -> None:
    holding = rules("tenant", active_facts=9, turns_per_minute=1)
    order = Import(fact=ImportedFact(text="one"))
    for number in range(3):
        imported = matched_envelope(f"i{number}", source_kind="command", order=order)
        assert await check_limits(limit_store, imported, holding, added=1) is None
    hit = await check_limits(limit_store, matched_envelope("t1"), holding, added=7)
    assert hit == LimitHit(name="active_facts", level="tenant", count=10, limit=9)
    assert await check_limits(limit_store, matched_envelope("t1"), holding, added=1) is None


async def test_what_passes_the_precheck_may_still_be_refused_before_its_commit(
    db: ProjectedDatabase, limit_store: LimitEnforcer
) -> None:
    """Two turns come past it together, and there is room for one."""
    for level in LEVELS:
        holding, owner = rules(level, active_facts=1), Scope(tenant=level, user_id="kim")
        for _ in range(2):
            assert await limit_store.precheck(owner, holding, 10, START_TIME) is None
        assert await check_limits(limit_store, matched_envelope("t1", owner), holding) is None
        await db.apply(commit("t1", added("one"), scope=owner))
        hit = LimitHit(name="active_facts", level=level, count=2, limit=1)
        assert await check_limits(limit_store, matched_envelope("t2", owner), holding) == hit
        late = LimitHit(name="active_facts", level=level, count=1, limit=1)
        assert await limit_store.precheck(owner, holding, 10, START_TIME) == late


async def test_pending_facts_count_and_ended_ones_do_not(db: ProjectedDatabase, limit_store: LimitEnforcer) -> None:
    first = commit("t1", added("one"), added("two"))
    second = commit("t2", replaced("three", fact_id_at(first)), pending("four", fact_id_at(first, 1)), at=day(1))
    await db.apply(first, second)
    for level in LEVELS:
        assert await check_limits(limit_store, matched_envelope("t3"), rules(level, active_facts=4), added=1) is None
        hit = await check_limits(limit_store, matched_envelope("t3"), rules(level, active_facts=3), added=1)
        assert hit == LimitHit(name="active_facts", level=level, count=4, limit=3)


async def test_what_adds_no_fact_is_never_refused_for_facts(db: ProjectedDatabase, limit_store: LimitEnforcer) -> None:
    await db.apply(commit("t1", added("one"), added("two")))
    for level in LEVELS:
        assert (
            await check_limits(limit_store, matched_envelope("t2"), rules(level, active_facts=0), added=2, ended=2)
            is None
        )
        assert await check_limits(limit_store, matched_envelope("t2"), rules(level, active_facts=0), added=0) is None


async def test_a_minute_and_a_day_are_those_of_the_broker_s_clock(
    db: ProjectedDatabase, limit_store: LimitEnforcer
) -> None:
    late = START_TIME.replace(hour=23, minute=59, second=58)
    await db.apply(commit("t1", at=late, steps=[token_step(900)]))  # published at 23:59:59
    turns, tokens = {"turns_per_minute": 1}, {"tokens_per_day": 1000}
    for level in LEVELS:
        for at, over in ((late - 58 * timedelta(seconds=1), True), (late - MINUTE, False), (late + MINUTE, False)):
            hit = await check_limits(limit_store, matched_envelope("t2", at=at), rules(level, **turns))
            assert (hit is not None) == over, (level, at)
        for at, over in ((late, True), (late - timedelta(hours=23), True), (late + MINUTE, False)):
            hit = await check_limits(limit_store, matched_envelope("t2", at=at), rules(level, **tokens), tokens=101)
            assert (hit is not None) == over, (level, at)


async def test_a_turn_of_too_many_bytes_is_refused_without_a_question(limits_without_database: LimitEnforcer) -> None:
    holding = rules("scope", bytes_per_turn=100)
    assert await check_limits(limits_without_database, matched_envelope("t1", size=100), holding) is None
    hit = LimitHit(name="bytes_per_turn", level="scope", count=101, limit=100)
    assert await check_limits(limits_without_database, matched_envelope("t1", size=101), holding) == hit
    assert await limits_without_database.precheck(ALICE, holding, 101, START_TIME) == hit


async def test_without_limits_nothing_is_asked(limits_without_database: LimitEnforcer) -> None:
    for unlimited in (EffectivePolicy(), rules("tenant"), rules("scope")):
        assert await check_limits(limits_without_database, matched_envelope("t1"), unlimited) is None
        assert await limits_without_database.precheck(ALICE, unlimited, 1_000_000, START_TIME) is None


async def test_commands_are_not_limited(limit_store: LimitEnforcer, db: ProjectedDatabase) -> None:
    holding = rules(active_facts=0, turns_per_minute=0, tokens_per_day=0, bytes_per_turn=0)
    order = matched_envelope("c1", source_kind="command", order=DeleteAll(), size=10)
    assert await check_limits(limit_store, order, holding) is None
    await db.apply(commit("c1", outcome="done", source_kind="command"))
    assert await check_limits(limit_store, matched_envelope("t1"), rules(turns_per_minute=1)) is None


async def test_a_turn_that_is_decided_again_replaces_its_reservation(
    db: ProjectedDatabase, limit_store: LimitEnforcer
) -> None:
    holding = rules(active_facts=3, turns_per_minute=1)
    assert await check_limits(limit_store, matched_envelope("t1"), holding, added=3) is None
    assert await check_limits(limit_store, matched_envelope("t1"), holding, added=2) is None
    assert await db.rows("SELECT source_id, attempt, facts FROM limit_reservations") == [("t1", 1, 2)]
    hit = await check_limits(limit_store, matched_envelope("t2", BOB), rules(active_facts=3), added=2)
    assert hit == LimitHit(name="active_facts", level="tenant", count=4, limit=3)
    assert await check_limits(limit_store, matched_envelope("t2", BOB), rules(active_facts=3), added=1) is None


async def test_a_reservation_counts_until_its_commit_is_projected(
    db: ProjectedDatabase, limit_store: LimitEnforcer
) -> None:
    holding = rules(active_facts=3)
    assert await check_limits(limit_store, matched_envelope("t1"), holding, added=3) is None
    await db.apply(commit("t1", added("only one in the end")))
    assert await check_limits(limit_store, matched_envelope("t2", BOB), holding, added=2) is None
    assert await db.rows("SELECT owner, source_id FROM limit_reservations") == [("default/bob", "t2")]


async def test_other_tenants_are_not_counted(db: ProjectedDatabase, limit_store: LimitEnforcer) -> None:
    await db.apply(commit("t1", added("one"), scope=Scope(tenant="acme", user_id="alice"), steps=[token_step(100)]))
    holding = rules(active_facts=1, turns_per_minute=1, tokens_per_day=100)
    assert await check_limits(limit_store, matched_envelope("t1"), holding) is None
    assert (
        await check_limits(limit_store, matched_envelope("t1", Scope(tenant="other", user_id="alice")), holding) is None
    )


@pytest.mark.parametrize("level", LEVELS)
async def test_with_a_higher_limit_a_refused_turn_goes_through(
    db: ProjectedDatabase, limit_store: LimitEnforcer, level: Level
) -> None:
    """It was no turn of its minute. It gets its stored replies, so its tokens, which were used once, count once."""
    low = {"turns_per_minute": 2, "tokens_per_day": 150}
    high = {"turns_per_minute": 2, "tokens_per_day": 200}
    await db.apply(commit("t1", steps=[token_step(100)]))
    hit = await check_limits(limit_store, matched_envelope("t2"), rules(level, **low))
    assert hit == LimitHit(name="tokens_per_day", level=level, count=200, limit=150)
    await db.apply(refusal("t2", hit))
    assert (
        await check_limits(limit_store, matched_envelope("t3"), rules(level, **high)) is not None
    )  # those of t2 were used
    anew = await check_limits(limit_store, matched_envelope("t2"), rules(level, **high), tokens=1)
    assert anew == LimitHit(name="tokens_per_day", level=level, count=201, limit=200)
    assert await check_limits(limit_store, matched_envelope("t2"), rules(level, **high), tokens=0) is None
    await db.apply(commit("t2", attempt=2))
    again = await check_limits(limit_store, matched_envelope("t3"), rules(level, tokens_per_day=200))
    assert again == LimitHit(name="tokens_per_day", level=level, count=300, limit=200)
    assert await check_limits(limit_store, matched_envelope("t3"), rules(level, tokens_per_day=300)) is None


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "count"), [("active_facts", 2), ("turns_per_minute", 1), ("tokens_per_day", 100)])
async def test_before_a_model_is_asked_only_what_is_used_up_counts(
    db: ProjectedDatabase, limit_store: LimitEnforcer, level: Level, name: LimitName, count: int
) -> None:
    await db.apply(commit("t1", added("one"), added("two"), steps=[token_step(100)]))
    full, free = rules(level, **{name: count}), rules(level, **{name: count + 1})
    hit = LimitHit(name=name, level=level, count=count, limit=count)
    assert await limit_store.precheck(ALICE, full, 10, START_TIME) == hit
    assert await limit_store.precheck(ALICE, free, 10, START_TIME) is None
    assert (await limit_store.precheck(BOB, full, 10, START_TIME) is None) == (level == "scope")


async def test_a_scope_s_limit_comes_before_its_tenant_s(db: ProjectedDatabase, limit_store: LimitEnforcer) -> None:
    await db.apply(commit("t1", added("one")))
    tenant, scope = Policy(limits=Limits(active_facts=1)), Policy(limits=Limits(active_facts=1))
    both = EffectivePolicy().overlaid_by(tenant, "tenant").overlaid_by(scope, "scope")
    for hit in (
        await check_limits(limit_store, matched_envelope("t2"), both),
        await limit_store.precheck(ALICE, both, 1, START_TIME),
    ):
        assert hit is not None
        assert hit.level == "scope"
    assert await db.rows("SELECT * FROM limit_reservations") == []


def refusal(source_id: str, hit: LimitHit) -> Commit:
    return commit(source_id, outcome="rejected", reason="limit", limit=hit, steps=[token_step(100)])


def reservation(source_id: str, scope: Scope = ALICE, *, at: datetime = START_TIME, facts: int = 1) -> TurnUsage:
    return TurnUsage(owner=scope.owner, source_id=source_id, scope=scope, published_at=at, facts=facts, tokens=1)


@pytest.mark.parametrize("level", ["scope", "tenant"])
async def test_a_command_is_no_turn_of_its_minute(db: ProjectedDatabase, level: Level) -> None:
    reservations = LimitReservations(db.pool)
    await db.apply(commit("t1", added("one")), command_commit("c1", DeleteAll(key="home_city")))
    assert await reservations.reserve(reservation("t2"), rules(level, turns_per_minute=2)) is None
    assert await reservations.reserve(reservation("t2"), rules(level, turns_per_minute=1)) is not None


async def test_what_a_turn_frees_reserves_nothing_and_is_not_given_away_before_it_is_free(
    db: ProjectedDatabase,
) -> None:
    reservations, holding = LimitReservations(db.pool), rules("tenant", active_facts=3)
    await db.apply(commit("t1", added("one"), added("two")))
    assert await reservations.reserve(reservation("t2", facts=-1), holding) is None
    assert await reservations.reserve(reservation("t1", BOB, facts=2), holding) is not None
    assert await reservations.reserve(reservation("t1", BOB, facts=1), holding) is None


async def test_a_turn_published_again_counts_as_its_next_attempt_until_that_is_projected(db: ProjectedDatabase) -> None:
    reservations, holding = LimitReservations(db.pool), rules("tenant", active_facts=2)
    await db.apply(refusal("t1", LimitHit(name="active_facts", level="tenant", count=2, limit=1)))
    assert await reservations.reserve(reservation("t1", facts=2), holding) is None
    for _ in range(2):  # each also clears away what is projected
        assert await reservations.reserve(reservation("t1", BOB), holding) is not None
    await db.apply(commit("t1", added("one"), attempt=2))
    assert await reservations.reserve(reservation("t2"), holding) is None
    await db.apply(commit("t2"))
    assert await reservations.reserve(reservation("t1", BOB), holding) is None


async def test_a_day_is_one_of_utc_wherever_the_clock_stands(db: ProjectedDatabase) -> None:
    step = Step(stage="extract", milliseconds=1, input_tokens=5)
    await db.apply(commit("t1", added("one"), at=day(1), steps=[step]))
    far_west = (day(1) + timedelta(hours=10)).astimezone(timezone(timedelta(hours=-12)))
    assert far_west.replace(hour=0) > day(1)
    hit = await LimitReservations(db.pool).reserve(reservation("t2", at=far_west), rules("tenant", tokens_per_day=5))
    assert hit is not None
