"""The timer on real tables: it orders what has ended to expire, once, and nothing else."""

from collections.abc import Callable
from datetime import datetime

import pytest

from mnemolog.schemas.command import MAX_ITEMS, Command, Expire, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.commands.expiry import BATCH_SIZE, CLOCK_MARGIN, REPEAT_AFTER, ExpirySweep
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.runtime.background import run_sweep
from tests.support.builders.commits import (
    ALICE,
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

APP = Scope(tenant="acme", user_id="alice", app_id="app")
TERMS = commit(
    "t1",
    added("Alice has a guest.", valid_until=day(2)),
    added("Alice has a pass.", valid_until=day(9)),
    added("Alice has a lease."),
    added("Alice has a cat."),
)
GUEST, CARD, LEASE = (fact_id_at(TERMS, ordinal) for ordinal in range(3))


@pytest.fixture
def harness(db: ProjectedDatabase) -> CommandHarness:
    return CommandHarness(db)


class TimerHarness:
    """The timer over a desk; what it publishes is kept."""

    def __init__(
        self, desk: CommandHarness, *, batch: int = BATCH_SIZE, mine: Callable[[Scope], bool] = lambda _: True
    ) -> None:
        self.desk = desk
        self.commands: list[Command] = []
        self.expiry = ExpirySweep(desk.known, publish=self.publish, owns_scope=mine, batch_size=batch)

    async def publish(self, command: Command) -> None:
        self.commands.append(command)

    async def sweep(self, now: datetime) -> list[Command]:
        """The commands of one round, as often as there are pages."""
        self.commands.clear()
        await self.expiry.sweep(now)
        while self.expiry.has_more:
            await self.expiry.sweep(now)
        return list(self.commands)

    async def execute(self) -> list[Commit]:
        made = [await self.desk.decide(command, command.issued_at) for command in self.commands]
        await self.desk.stored.apply(*made)
        return made


def fact_ids(command: Command) -> list[object]:
    assert isinstance(command.order, Expire)
    return list(command.order.fact_ids)


async def test_what_has_ended_gets_an_expire_command_and_expires(harness: CommandHarness) -> None:
    announced = commit("t2", retracted(LEASE, ended_at=day(3), text="The lease ends."), at=day(1))
    await harness.stored.apply(TERMS, announced)
    timer = TimerHarness(harness)
    assert await timer.sweep(day(1)) == []
    (command,) = await timer.sweep(day(4))
    assert (command.scope, fact_ids(command), command.issued_at) == (ALICE, [GUEST, LEASE], day(4))
    await timer.execute()
    assert await harness.statuses(GUEST, LEASE, CARD) == ["expired", "expired", "active"]
    assert await TimerHarness(harness).sweep(day(5)) == []


async def test_the_clock_of_another_may_be_behind(harness: CommandHarness) -> None:
    await harness.stored.apply(TERMS)
    assert await TimerHarness(harness).sweep(day(2) + CLOCK_MARGIN / 2) == []
    assert len(await TimerHarness(harness).sweep(day(2) + CLOCK_MARGIN)) == 1


async def test_the_same_command_has_the_same_id_whoever_issues_it(harness: CommandHarness) -> None:
    await harness.stored.apply(TERMS)
    one, other = TimerHarness(harness), TimerHarness(harness)
    (first,), (second,) = await one.sweep(day(3)), await other.sweep(day(3) + CLOCK_MARGIN)
    assert first.command_id == second.command_id
    await one.execute()
    await other.execute()
    assert await harness.stored.rows("SELECT reason FROM rejections") == [("duplicate_source",)]
    assert await harness.statuses(GUEST) == ["expired"]


async def test_a_command_refused_by_a_slow_clock_is_issued_again_the_next_day(harness: CommandHarness) -> None:
    await harness.stored.apply(TERMS)
    (command,) = await TimerHarness(harness).sweep(day(2) + CLOCK_MARGIN)
    await harness.stored.apply(await harness.decide(command, day(2) - CLOCK_MARGIN))
    assert await harness.statuses(GUEST) == ["active"]
    timer = TimerHarness(harness)
    await timer.sweep(day(3))
    await timer.execute()
    assert await harness.statuses(GUEST) == ["expired"]


async def test_an_end_that_is_announced_after_one_was_taken_back_comes(harness: CommandHarness) -> None:
    await harness.stored.apply(
        TERMS, commit("t2", retracted(LEASE, ended_at=day(1), text="The lease ends."), at=day(0))
    )
    timer = TimerHarness(harness)
    await timer.sweep(day(1) + CLOCK_MARGIN)
    await timer.execute()
    await harness.execute("c1", Undo(source_id="t2", cascade=True), at=day(4))
    await harness.stored.apply(commit("t3", retracted(LEASE, ended_at=day(7), text="The lease ends later."), at=day(6)))
    assert [fact_ids(command) for command in await timer.sweep(day(8))] == [[GUEST, LEASE]]


async def test_a_command_is_issued_again_after_a_while(harness: CommandHarness) -> None:
    await harness.stored.apply(TERMS)
    timer = TimerHarness(harness)
    (first,) = await timer.sweep(day(3))
    assert await timer.sweep(day(3) + REPEAT_AFTER / 2) == []
    (again,) = await timer.sweep(day(3) + REPEAT_AFTER)
    assert again.command_id == first.command_id


async def test_what_was_taken_back_does_not_expire_again(harness: CommandHarness) -> None:
    await harness.stored.apply(TERMS)
    timer = TimerHarness(harness)
    await timer.sweep(day(3))
    (made,) = await timer.execute()
    await harness.execute("u1", Undo(event_id=event_id_at(made)), at=day(4))
    assert await harness.statuses(GUEST) == ["active"]
    assert await TimerHarness(harness).sweep(day(5)) == []


async def test_each_scope_gets_commands_of_up_to_a_hundred_facts(harness: CommandHarness) -> None:
    many = [
        added(f"Pass {number}.", valid_until=day(2), vector=pseudo_random_vector(number, 3)) for number in range(130)
    ]
    scopes = (ALICE, BOB, APP)
    await harness.stored.apply(*(commit(f"m-{scope.key!r}", *many, scope=scope) for scope in scopes))
    commands = await TimerHarness(harness).sweep(day(3))
    assert len(commands) == 2 * len(scopes)
    named = [fact_id for command in commands for fact_id in fact_ids(command)]
    assert (len(named), len(set(named))) == (390, 390)
    assert {len(fact_ids(command)) for command in commands} == {MAX_ITEMS, 30}
    assert {command.scope for command in commands} == set(scopes)
    assert len({command.command_id for command in commands}) == len(commands)


async def test_a_sweep_is_bounded_and_the_next_goes_on_from_there(harness: CommandHarness) -> None:
    many = [
        added(f"Pass {number}.", valid_until=day(1 + number % 2), vector=pseudo_random_vector(number, 3))
        for number in range(25)
    ]
    await harness.stored.apply(commit("m", *many))
    timer = TimerHarness(harness, batch=10)
    counts = [await timer.expiry.sweep(day(3)) for _ in range(4)]
    assert counts == [10, 10, 5, 0]
    assert len({fact_id for command in timer.commands for fact_id in fact_ids(command)}) == 25


async def test_a_worker_issues_commands_for_its_own_scopes_only(harness: CommandHarness) -> None:
    await harness.stored.apply(TERMS, commit("b1", added("Bob has a guest.", valid_until=day(2)), scope=BOB))
    timer = TimerHarness(harness, mine=lambda scope: scope == BOB)
    assert [command.scope for command in await timer.sweep(day(3))] == [BOB]


async def test_a_command_that_was_not_sent_is_sent_by_a_later_sweep(harness: CommandHarness) -> None:
    await harness.stored.apply(TERMS)
    tries = 0

    async def publish(_: Command) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise RecordTooLarge("it does not fit")

    sweep = ExpirySweep(harness.known, publish=publish)
    for _ in range(3):
        await run_sweep(sweep, day(3))
    assert tries == 2
