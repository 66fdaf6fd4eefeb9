"""Limits hold by themselves at each level, under any number of publishers, and never by one too many or too few."""

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

import pytest

from mnemolog.projections.limits import LEVELS, Reservations
from mnemolog.projections.pools import open_pool
from mnemolog.schemas.command import DeleteAll
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import Level, LimitHit, LimitName, Limits, Policy, Rules
from mnemolog.schemas.provenance import Origin, Step
from mnemolog.schemas.scope import Scope
from mnemolog.streams.stages.limiting import Limiting
from tests.builders import ALICE, BOB, START, added, commit, day, fact_of, pending, replaced
from tests.stored import Stored

pytestmark = pytest.mark.postgres

PUBLISHERS = 200
WORKERS = 2
MINUTE = timedelta(minutes=1)


@pytest.fixture
def limiting(db: Stored) -> Limiting:
    return Limiting(Reservations(db.pool))


@pytest.fixture
def unasked(db: Stored) -> Limiting:
    """Fails where it asks the database."""
    return Limiting(Reservations(open_pool(db.url, min_size=0, max_size=1, application_name="never-opened")))


def rules(level: Level = "tenant", /, **limits: int) -> Rules:
    return Rules().under(Policy(limits=Limits(**limits)), level)


def envelope(source_id: str, scope: Scope = ALICE, *, at: datetime = START, **fields: Any) -> MatchedFacts:
    origin = Origin(topic="conversation_turns", partition=0, offset=0)
    given: dict[str, Any] = {"source_id": source_id, "scope": scope, "origin": origin}
    given |= {"occurred_at": at, "published_at": at}
    return MatchedFacts(**given | fields)


def spent(tokens: int) -> Step:
    return Step(stage="extract", milliseconds=1, input_tokens=tokens - 1, output_tokens=1)


async def refused(limiting: Limiting, turn: MatchedFacts, rules: Rules, **uses: int) -> LimitHit | None:
    return await limiting.refused(turn, rules, **{"added": 1, "ended": 0, "tokens": 100} | uses)


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [({"active_facts": 51}, 25), ({"turns_per_minute": 40}, 40), ({"tokens_per_day": 3_099}, 30)],
)
async def test_many_publishers_at_once_use_a_tenant_s_limit_up_and_no_more(
    db: Stored, limits: dict[str, int], allowed: int
) -> None:
    """Two workers with connections of their own; what is let through is projected while others decide."""
    log, holding = asyncio.Lock(), rules(**limits)

    async def publish(limiting: Limiting, number: int) -> LimitHit | None:
        scope = Scope(user_id=f"user{number}")
        hit = await refused(limiting, envelope("t1", scope), holding, added=2)
        if hit is None and number % 2:
            async with log:
                await db.apply(commit("t1", added("one"), added("two"), scope=scope, at=START, steps=[spent(100)]))
        return hit

    async with AsyncExitStack() as stack:
        workers = [
            Limiting(
                Reservations(
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


async def test_a_scope_s_limit_counts_what_is_projected(db: Stored, limiting: Limiting) -> None:
    first = commit("t1", added("one"), added("two"))
    await db.apply(first, commit("t2", added("elsewhere"), scope=BOB))
    holding = rules("scope", active_facts=3)
    assert await refused(limiting, envelope("t3"), holding, added=1) is None
    hit = await refused(limiting, envelope("t3"), holding, added=2)
    assert hit == LimitHit(name="active_facts", level="scope", count=4, limit=3)
    assert str(hit) == "active facts of the scope: 4 of 3"
    assert await refused(limiting, envelope("t3", BOB), holding, added=2) is None


async def test_pending_facts_count_and_ended_ones_do_not(db: Stored, limiting: Limiting) -> None:
    first = commit("t1", added("one"), added("two"))
    second = commit("t2", replaced("three", fact_of(first)), pending("four", fact_of(first, 1)), at=day(1))
    await db.apply(first, second)
    for level in LEVELS:
        assert await refused(limiting, envelope("t3"), rules(level, active_facts=4), added=1) is None
        hit = await refused(limiting, envelope("t3"), rules(level, active_facts=3), added=1)
        assert hit == LimitHit(name="active_facts", level=level, count=4, limit=3)


async def test_what_adds_no_fact_is_never_refused_for_facts(db: Stored, limiting: Limiting) -> None:
    await db.apply(commit("t1", added("one"), added("two")))
    for level in LEVELS:
        assert await refused(limiting, envelope("t2"), rules(level, active_facts=0), added=2, ended=2) is None
        assert await refused(limiting, envelope("t2"), rules(level, active_facts=0), added=0) is None


async def test_a_minute_and_a_day_are_those_of_the_broker_s_clock(db: Stored, limiting: Limiting) -> None:
    late = START.replace(hour=23, minute=59, second=58)
    await db.apply(commit("t1", at=late, steps=[spent(900)]))  # published at 23:59:59
    turns, tokens = {"turns_per_minute": 1}, {"tokens_per_day": 1000}
    for level in LEVELS:
        for at, over in ((late - 58 * timedelta(seconds=1), True), (late - MINUTE, False), (late + MINUTE, False)):
            hit = await refused(limiting, envelope("t2", at=at), rules(level, **turns))
            assert (hit is not None) == over, (level, at)
        for at, over in ((late, True), (late - timedelta(hours=23), True), (late + MINUTE, False)):
            hit = await refused(limiting, envelope("t2", at=at), rules(level, **tokens), tokens=101)
            assert (hit is not None) == over, (level, at)


async def test_a_turn_of_too_many_bytes_is_refused_without_a_question(unasked: Limiting) -> None:
    holding = rules("scope", bytes_per_turn=100)
    assert await refused(unasked, envelope("t1", size=100), holding) is None
    hit = LimitHit(name="bytes_per_turn", level="scope", count=101, limit=100)
    assert await refused(unasked, envelope("t1", size=101), holding) == hit
    assert await unasked.precheck(ALICE, holding, 101, START) == hit


async def test_without_limits_nothing_is_asked(unasked: Limiting) -> None:
    for unlimited in (Rules(), rules("tenant"), rules("scope")):
        assert await refused(unasked, envelope("t1"), unlimited) is None
        assert await unasked.precheck(ALICE, unlimited, 1_000_000, START) is None


async def test_commands_are_not_limited(limiting: Limiting, db: Stored) -> None:
    holding = rules(active_facts=0, turns_per_minute=0, tokens_per_day=0, bytes_per_turn=0)
    order = envelope("c1", source_kind="command", order=DeleteAll(), size=10)
    assert await refused(limiting, order, holding) is None
    await db.apply(commit("c1", outcome="done", source_kind="command"))
    assert await refused(limiting, envelope("t1"), rules(turns_per_minute=1)) is None


async def test_a_turn_that_is_decided_again_replaces_its_reservation(db: Stored, limiting: Limiting) -> None:
    holding = rules(active_facts=3, turns_per_minute=1)
    assert await refused(limiting, envelope("t1"), holding, added=3) is None
    assert await refused(limiting, envelope("t1"), holding, added=2) is None
    assert await db.rows("SELECT source_id, attempt, facts FROM limit_reservations") == [("t1", 1, 2)]
    hit = await refused(limiting, envelope("t2", BOB), rules(active_facts=3), added=2)
    assert hit == LimitHit(name="active_facts", level="tenant", count=4, limit=3)
    assert await refused(limiting, envelope("t2", BOB), rules(active_facts=3), added=1) is None


async def test_a_reservation_counts_until_its_commit_is_projected(db: Stored, limiting: Limiting) -> None:
    holding = rules(active_facts=3)
    assert await refused(limiting, envelope("t1"), holding, added=3) is None
    await db.apply(commit("t1", added("only one in the end")))
    assert await refused(limiting, envelope("t2", BOB), holding, added=2) is None
    assert await db.rows("SELECT owner, source_id FROM limit_reservations") == [("default/bob", "t2")]


async def test_other_tenants_are_not_counted(db: Stored, limiting: Limiting) -> None:
    await db.apply(commit("t1", added("one"), scope=Scope(tenant="acme", user_id="alice"), steps=[spent(100)]))
    holding = rules(active_facts=1, turns_per_minute=1, tokens_per_day=100)
    assert await refused(limiting, envelope("t1"), holding) is None
    assert await refused(limiting, envelope("t1", Scope(tenant="other", user_id="alice")), holding) is None


@pytest.mark.parametrize("level", LEVELS)
async def test_with_a_higher_limit_a_refused_turn_goes_through(db: Stored, limiting: Limiting, level: Level) -> None:
    """It was no turn of its minute, and its tokens, which were used once, count once."""
    low = {"turns_per_minute": 2, "tokens_per_day": 150}
    high = {"turns_per_minute": 2, "tokens_per_day": 200}
    await db.apply(commit("t1", steps=[spent(100)]))
    hit = await refused(limiting, envelope("t2"), rules(level, **low))
    assert hit == LimitHit(name="tokens_per_day", level=level, count=200, limit=150)
    await db.apply(refusal("t2", hit))
    assert await refused(limiting, envelope("t3"), rules(level, **high)) is not None  # those of t2 were used
    assert await refused(limiting, envelope("t2"), rules(level, **high)) is None
    await db.apply(commit("t2", attempt=2, steps=[spent(100)]))
    again = await refused(limiting, envelope("t3"), rules(level, tokens_per_day=200))
    assert again == LimitHit(name="tokens_per_day", level=level, count=300, limit=200)
    assert await refused(limiting, envelope("t3"), rules(level, tokens_per_day=300)) is None


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "count"), [("active_facts", 2), ("turns_per_minute", 1), ("tokens_per_day", 100)])
async def test_before_a_model_is_asked_only_what_is_used_up_counts(
    db: Stored, limiting: Limiting, level: Level, name: LimitName, count: int
) -> None:
    await db.apply(commit("t1", added("one"), added("two"), steps=[spent(100)]))
    full, free = rules(level, **{name: count}), rules(level, **{name: count + 1})
    hit = LimitHit(name=name, level=level, count=count, limit=count)
    assert await limiting.precheck(ALICE, full, 10, START) == hit
    assert await limiting.precheck(ALICE, free, 10, START) is None
    assert (await limiting.precheck(BOB, full, 10, START) is None) == (level == "scope")


async def test_a_scope_s_limit_comes_before_its_tenant_s(db: Stored, limiting: Limiting) -> None:
    await db.apply(commit("t1", added("one")))
    tenant, scope = Policy(limits=Limits(active_facts=1)), Policy(limits=Limits(active_facts=1))
    both = Rules().under(tenant, "tenant").under(scope, "scope")
    for hit in (await refused(limiting, envelope("t2"), both), await limiting.precheck(ALICE, both, 1, START)):
        assert hit is not None
        assert hit.level == "scope"
    assert await db.rows("SELECT * FROM limit_reservations") == []


def refusal(source_id: str, hit: LimitHit) -> Commit:
    return commit(source_id, outcome="rejected", reason="limit", limit=hit, steps=[spent(100)])
