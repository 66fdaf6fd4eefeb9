"""Budgets of a day by the commits in the tables."""

from collections.abc import AsyncIterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from mnemolog.client.connections import LimitPrecheck, ReadPool
from mnemolog.errors import LimitExceededError
from mnemolog.projections.stores.turns import LimitReservations
from mnemolog.schemas.costs import ModelPrice, PriceTable
from mnemolog.schemas.policy import (
    EffectivePolicy,
    Level,
    LimitHit,
    Limits,
    Policy,
    TurnUsage,
    WhenSpent,
)
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.resolution.limits import LimitEnforcer
from tests.support.builders.commits import ALICE, BOB, START_TIME, added, commit, day, policy_set
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
PRICES = PriceTable((ModelPrice(model="m1", input=Decimal(1), output=Decimal(1)),))
DOLLAR = Step(stage="extract", milliseconds=1, model="m1", llm_calls=1, input_tokens=900_000, output_tokens=100_000)
UNPRICED = Step(stage="embed", milliseconds=1, model="e1", embedding_calls=1, input_tokens=900_000)


def rules(level: Level = "tenant", when_spent: WhenSpent = "reject", **limits: Any) -> EffectivePolicy:
    return EffectivePolicy().overlaid_by(Policy(limits=Limits(**limits), when_spent=when_spent), level)


async def hit_of(
    db: ProjectedDatabase, rules: EffectivePolicy, scope: Scope = ALICE, at: datetime = START_TIME
) -> LimitHit | None:
    return await LimitEnforcer(LimitReservations(db.pool, PRICES)).precheck(scope, rules, 0, at)


@pytest.mark.parametrize(("level", "others_are_stopped"), [("scope", False), ("tenant", True)])
async def test_a_budget_is_spent_by_the_turns_of_its_day(
    db: ProjectedDatabase, level: Level, others_are_stopped: bool
) -> None:
    await db.apply(commit("1", added("A."), steps=[DOLLAR, UNPRICED]))
    assert await hit_of(db, rules(level, cost_per_day="1.01")) is None
    spent = rules(level, cost_per_day=1)
    assert await hit_of(db, spent) == LimitHit(name="cost_per_day", level=level, count=1.0, limit=1.0)
    assert (await hit_of(db, spent, BOB) is not None) == others_are_stopped
    assert await hit_of(db, spent, Scope(tenant="other", user_id="alice")) is None
    assert await hit_of(db, spent, at=day(1)) is None
    assert await hit_of(db, spent, at=START_TIME.replace(hour=23, minute=59)) is not None


async def test_what_has_no_price_spends_no_money(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("A."), steps=[UNPRICED]))
    assert await hit_of(db, rules(cost_per_day="0.000001")) is None
    assert await hit_of(db, rules(cost_per_day=0)) is not None


@pytest.mark.parametrize(("when_spent", "rejects"), [("reject", True), ("raw", False)])
async def test_what_is_paid_for_is_kept_unless_turns_over_a_budget_are_rejected(
    db: ProjectedDatabase, when_spent: WhenSpent, rejects: bool
) -> None:
    usage = TurnUsage(owner=ALICE.owner, source_id="1", scope=ALICE, published_at=START_TIME, facts=1, tokens=50)
    holding = rules("tenant", when_spent, tokens_per_day=10, active_facts=5)
    enforcer = LimitEnforcer(LimitReservations(db.pool, PRICES))
    envelope: Any = usage_envelope(usage)
    hit = await enforcer.exceeded_limit(envelope, holding, facts=1, tokens=50)
    assert (hit is not None) == rejects
    over = await enforcer.exceeded_limit(envelope, holding, facts=9, tokens=0)
    assert over is not None
    assert over.name == "active_facts"


def usage_envelope(usage: TurnUsage) -> object:
    class Envelope:
        source_kind, scope, owner, source_id, size = "turn", usage.scope, usage.owner, usage.source_id, 10
        published_at = usage.published_at

    return Envelope()


@pytest_asyncio.fixture
async def reader(db: ProjectedDatabase) -> AsyncIterator[ReadPool]:
    reader = ReadPool(db.url, size=2, statement_timeout=5.0)
    yield reader
    await reader.close()


@pytest.mark.parametrize(("when_spent", "refuses"), [("reject", True), ("raw", False)])
async def test_the_client_refuses_only_what_would_be_rejected(
    db: ProjectedDatabase, reader: ReadPool, when_spent: WhenSpent, refuses: bool
) -> None:
    limits = Limits(cost_per_day=Decimal(1), tokens_per_day=5)
    await db.apply(
        commit("p1", policy_set(Policy(limits=limits, when_spent=when_spent))), commit("1", added("A."), steps=[DOLLAR])
    )
    said = (Message(role="user", content="I moved to Bern."),)
    turn = Turn(turn_id="t9", scope=ALICE, messages=said, occurred_at=START_TIME)
    if refuses:
        with pytest.raises(LimitExceededError, match="tokens per day"):
            await LimitPrecheck(PRICES).check(reader, turn, START_TIME)
    else:
        await LimitPrecheck(PRICES).check(reader, turn, START_TIME)
