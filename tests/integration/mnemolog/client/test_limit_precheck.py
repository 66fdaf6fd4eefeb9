"""The quick answer about limits, before a turn is published."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from mnemolog.client.connections import LimitPrecheck, ReadPool
from mnemolog.errors import LimitExceededError
from mnemolog.schemas.policy import LimitHit, Limits, Policy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.support.builders.commits import ALICE, START_TIME, added, commit, policy_set
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"
SECOND = timedelta(seconds=1)


@pytest_asyncio.fixture
async def reader(db: ProjectedDatabase) -> AsyncIterator[ReadPool]:
    reader = ReadPool(db.url, size=2, statement_timeout=5.0)
    yield reader
    await reader.close()


def turn(text: str = "I moved to Bern.") -> Turn:
    said = (Message(role="user", content=text),)
    return Turn(turn_id="t9", scope=ALICE, messages=said, occurred_at=START_TIME)


async def test_a_turn_over_a_limit_is_told_the_count_and_what_to_do_until_the_limit_is_raised(
    db: ProjectedDatabase, reader: ReadPool
) -> None:
    await LimitPrecheck().check(reader, turn(), START_TIME)
    await db.apply(commit("p0", policy_set(Policy(add_only=True))))
    await LimitPrecheck().check(reader, turn(), START_TIME)
    await db.apply(commit("p1", policy_set(Policy(limits=Limits(active_facts=1, bytes_per_turn=1000)))))
    await LimitPrecheck().check(reader, turn(), START_TIME)
    await db.apply(commit("t1", added("one")))
    precheck = LimitPrecheck()
    to_do = r"turn t9 .* active facts of the scope: 1 of 1; .* delete facts"
    with pytest.raises(LimitExceededError, match=to_do) as full:
        await precheck.check(reader, turn(), START_TIME)
    assert full.value.hit == LimitHit(name="active_facts", level="scope", count=1, limit=1)
    with pytest.raises(LimitExceededError, match=r"bytes per turn of the scope: \d+ of 1000; .* smaller parts"):
        await precheck.check(reader, turn("a" * 1000), START_TIME)
    await db.apply(commit("p2", policy_set(Policy(limits=Limits(active_facts=2)))))
    await precheck.check(reader, turn(), START_TIME)


async def test_that_a_tenant_has_no_limits_is_remembered_for_a_second(db: ProjectedDatabase, reader: ReadPool) -> None:
    precheck = LimitPrecheck()
    await precheck.check(reader, turn(), START_TIME)
    await db.apply(commit("p1", policy_set(Policy(limits=Limits(active_facts=1)))), commit("t1", added("one")))
    with capture_logs() as logs:
        await precheck.check(ReadPool(NOWHERE, size=2, statement_timeout=5.0), turn(), START_TIME + 0.5 * SECOND)
    assert logs == []  # no database was asked
    await precheck.check(reader, turn(), START_TIME + 0.9 * SECOND)
    for late in (START_TIME - SECOND, START_TIME + SECOND):
        with pytest.raises(LimitExceededError):
            await precheck.check(reader, turn(), late)


async def test_a_second_copy_of_a_turn_is_let_through_unless_the_first_was_refused(
    db: ProjectedDatabase, reader: ReadPool
) -> None:
    full = commit("p1", policy_set(Policy(limits=Limits(active_facts=1))))
    await db.apply(full, commit("t1", added("one")))
    await db.journal_turns("t9")
    await LimitPrecheck().check(reader, turn(), START_TIME)
    hit = LimitHit(name="active_facts", level="scope", count=2, limit=1)
    await db.apply(commit("t9", outcome="rejected", reason="limit", limit=hit))
    with pytest.raises(LimitExceededError):
        await LimitPrecheck().check(reader, turn(), START_TIME)
    await db.apply(commit("t9", outcome="failed", reason="invalid_reply", attempt=2))
    with pytest.raises(LimitExceededError):
        await LimitPrecheck().check(reader, turn(), START_TIME)
    await db.apply(commit("t9", added("two"), attempt=3))
    await LimitPrecheck().check(reader, turn(), START_TIME)


async def test_one_limit_among_very_many_policies_is_found(db: ProjectedDatabase, reader: ReadPool) -> None:
    def some_scope(number: int) -> Scope:
        return Scope(user_id=f"user{number:03}")

    policies = [commit(f"p{n}", policy_set(Policy(add_only=True)), scope=some_scope(n)) for n in range(101)]
    full = commit("p", policy_set(Policy(limits=Limits(active_facts=0))), scope=some_scope(999))
    await db.apply(*policies, full)
    other_turn = turn().model_copy(update={"scope": some_scope(999)})
    with pytest.raises(LimitExceededError):
        await LimitPrecheck().check(reader, other_turn, START_TIME)


async def test_without_the_database_or_its_tables_every_turn_is_let_through(empty_database: str) -> None:
    for url in (NOWHERE, empty_database):
        reader = ReadPool(url, size=2, statement_timeout=5.0)
        await LimitPrecheck().check(reader, turn(), START_TIME)
        await reader.close()
