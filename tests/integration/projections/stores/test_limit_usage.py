"""What counts against a limit, and what does not: commands, what is freed, and days of other zones."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from mnemolog.projections.stores.turns import LimitReservations
from mnemolog.schemas.command import DeleteAll
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.policy import EffectivePolicy, Level, LimitHit, Limits, Policy, TurnUsage
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, BOB, START_TIME, added, command_commit, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


def limit_rules(level: Level, **limits: Any) -> EffectivePolicy:
    return EffectivePolicy().overlaid_by(Policy(limits=Limits(**limits)), level)


def reservation(source_id: str, scope: Scope = ALICE, *, at: datetime = START_TIME, facts: int = 1) -> TurnUsage:
    return TurnUsage(owner=scope.owner, source_id=source_id, scope=scope, published_at=at, facts=facts, tokens=1)


@pytest.mark.parametrize("level", ["scope", "tenant"])
async def test_a_command_is_no_turn_of_its_minute(database: str, level: Level) -> None:
    async with ProjectedDatabase.open(database) as stored:
        reservations = LimitReservations(stored.pool)
        await stored.apply(commit("t1", added("one")), command_commit("c1", DeleteAll(key="home_city")))
        assert await reservations.reserve(reservation("t2"), limit_rules(level, turns_per_minute=2)) is None
        assert await reservations.reserve(reservation("t2"), limit_rules(level, turns_per_minute=1)) is not None


async def test_what_a_turn_frees_reserves_nothing_and_is_not_given_away_before_it_is_free(database: str) -> None:
    async with ProjectedDatabase.open(database) as stored:
        reservations, holding = LimitReservations(stored.pool), limit_rules("tenant", active_facts=3)
        await stored.apply(commit("t1", added("one"), added("two")))
        assert await reservations.reserve(reservation("t2", facts=-1), holding) is None
        assert await reservations.reserve(reservation("t1", BOB, facts=2), holding) is not None
        assert await reservations.reserve(reservation("t1", BOB, facts=1), holding) is None


def limit_rejection(source_id: str) -> Commit:
    hit = LimitHit(name="active_facts", level="tenant", count=2, limit=1)
    return commit(source_id, outcome="rejected", reason="limit", limit=hit)


async def test_a_turn_published_again_counts_as_its_next_attempt_until_that_is_projected(database: str) -> None:
    async with ProjectedDatabase.open(database) as stored:
        reservations, holding = LimitReservations(stored.pool), limit_rules("tenant", active_facts=2)
        await stored.apply(limit_rejection("t1"))
        assert await reservations.reserve(reservation("t1", facts=2), holding) is None
        for _ in range(2):  # each also clears away what is projected
            assert await reservations.reserve(reservation("t1", BOB), holding) is not None
        await stored.apply(commit("t1", added("one"), attempt=2))
        assert await reservations.reserve(reservation("t2"), holding) is None
        await stored.apply(commit("t2"))
        assert await reservations.reserve(reservation("t1", BOB), holding) is None


async def test_a_day_is_one_of_utc_wherever_the_clock_stands(database: str) -> None:
    async with ProjectedDatabase.open(database) as stored:
        step = Step(stage="extract", milliseconds=1, input_tokens=5)
        await stored.apply(commit("t1", added("one"), at=day(1), steps=[step]))
        far_west = (day(1) + timedelta(hours=10)).astimezone(timezone(timedelta(hours=-12)))
        assert far_west.replace(hour=0) > day(1)
        hit = await LimitReservations(stored.pool).reserve(
            reservation("t2", at=far_west), limit_rules("tenant", tokens_per_day=5)
        )
        assert hit is not None
