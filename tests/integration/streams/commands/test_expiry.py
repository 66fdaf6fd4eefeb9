"""The timer on real tables: which facts it finds, and what their expire commands do there."""

import pytest

from mnemolog.schemas.command import Command, Expire, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.streams.commands.expiry import CLOCK_MARGIN, ExpirySweep
from tests.support.builders.commits import (
    BOB,
    added,
    commit,
    day,
    event_id_at,
    fact_id_at,
    pseudo_random_vector,
    retracted,
)
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

TERMS = commit(
    "t1",
    added("Alice has a guest.", valid_until=day(2)),
    added("Alice has a pass.", valid_until=day(9)),
    added("Alice has a lease."),
    added("Alice has a cat."),
)
GUEST, CARD, LEASE = (fact_id_at(TERMS, ordinal) for ordinal in range(3))


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(TERMS)
    return CommandHarness(db)


async def swept(harness: CommandHarness, day_number: float, batch_size: int = 500) -> list[Command]:
    """The commands of a timer that begins on that day."""
    commands: list[Command] = []

    async def publish(command: Command) -> None:
        commands.append(command)

    sweep = ExpirySweep(harness.known, publish=publish, batch_size=batch_size)
    await sweep.sweep(day(day_number))
    while sweep.has_more:
        await sweep.sweep(day(day_number))
    return commands


async def carry_out(harness: CommandHarness, *commands: Command) -> list[Commit]:
    made = [await harness.decide(command, command.issued_at) for command in commands]
    await harness.stored.apply(*made)
    return made


def fact_ids(command: Command) -> list[object]:
    assert isinstance(command.order, Expire)
    return list(command.order.fact_ids)


async def test_what_has_ended_expires_once_and_again_after_no_undo(harness: CommandHarness) -> None:
    await harness.stored.apply(commit("t2", retracted(LEASE, ended_at=day(3), text="The lease ends."), at=day(1)))
    assert await swept(harness, 1) == []
    first, again = await swept(harness, 4), await swept(harness, 4)
    (command,) = first
    assert fact_ids(command) == [GUEST, LEASE]
    made, _ = await carry_out(harness, *first, *again)
    assert await harness.statuses(GUEST, LEASE, CARD) == ["expired", "expired", "active"]
    assert await harness.stored.rows("SELECT reason FROM rejections") == [("duplicate_source",)]
    assert await swept(harness, 5) == []
    await harness.execute("u1", Undo(event_id=event_id_at(made)), at=day(5))
    assert await harness.statuses(GUEST, LEASE) == ["active", "expired"]
    assert await swept(harness, 6) == []


async def test_a_command_refused_by_a_slow_clock_is_issued_again_the_next_day(harness: CommandHarness) -> None:
    (command,) = await swept(harness, 2.5)
    await harness.stored.apply(await harness.decide(command, day(2) - CLOCK_MARGIN))
    assert await harness.statuses(GUEST) == ["active"]
    await carry_out(harness, *await swept(harness, 3))
    assert await harness.statuses(GUEST) == ["expired"]


async def test_an_end_that_is_announced_after_one_was_taken_back_comes(harness: CommandHarness) -> None:
    await harness.stored.apply(commit("t2", retracted(LEASE, ended_at=day(1), text="The lease ends."), at=day(0)))
    await carry_out(harness, *await swept(harness, 1.5))
    await harness.execute("c1", Undo(source_id="t2", cascade=True), at=day(4))
    await harness.stored.apply(commit("t3", retracted(LEASE, ended_at=day(7), text="The lease ends later."), at=day(6)))
    assert [fact_ids(command) for command in await swept(harness, 8)] == [[GUEST, LEASE]]


async def test_pages_of_all_scopes_follow_each_other(harness: CommandHarness) -> None:
    many = [
        added(f"Pass {number}.", valid_until=day(1 + number % 2), vector=pseudo_random_vector(number, 3))
        for number in range(25)
    ]
    await harness.stored.apply(commit("m", *many), commit("b", *many, scope=BOB))
    commands = await swept(harness, 1.5, batch_size=7)
    assert {command.scope.user_id for command in commands} == {"alice", "bob"}
    found = [fact_id for command in commands for fact_id in fact_ids(command)]
    assert len(found) == len(set(found)) == 26
