"""The timer on real tables: it orders what has ended to expire, once, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime

import pytest

from mnemolog.schemas.command import MAX_ITEMS, Command, Expire, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.expiry import BATCH, MARGIN, PATIENCE, Expiry
from tests.builders import ALICE, BOB, added, commit, day, event_of, fact_of, noise, retracted
from tests.desk import Desk
from tests.stored import Stored

pytestmark = pytest.mark.postgres

APP = Scope(tenant="acme", user_id="alice", app_id="app")
TERMS = commit(
    "t1",
    added("Alice has a guest.", valid_until=day(2)),
    added("Alice has a pass.", valid_until=day(9)),
    added("Alice has a lease."),
    added("Alice has a cat."),
)
GUEST, CARD, LEASE = (fact_of(TERMS, ordinal) for ordinal in range(3))


@pytest.fixture
async def desk(database: str) -> AsyncIterator[Desk]:
    async with Stored.open(database) as stored:
        yield Desk(stored)


class Timer:
    """The timer over a desk; what it publishes is kept."""

    def __init__(self, desk: Desk, *, batch: int = BATCH, mine: Callable[[Scope], bool] = lambda _: True) -> None:
        self.desk = desk
        self.commands: list[Command] = []
        self.expiry = Expiry(desk.known, publish=self.publish, mine=mine, batch=batch)

    async def publish(self, command: Command) -> None:
        self.commands.append(command)

    async def sweep(self, now: datetime) -> list[Command]:
        """The commands of one round, as often as there are pages."""
        self.commands.clear()
        await self.expiry.sweep(now)
        while self.expiry.has_more:
            await self.expiry.sweep(now)
        return list(self.commands)

    async def carry_out(self) -> list[Commit]:
        made = [await self.desk.commit(command, command.issued_at) for command in self.commands]
        await self.desk.stored.apply(*made)
        return made


def fact_ids(command: Command) -> list[object]:
    assert isinstance(command.order, Expire)
    return list(command.order.fact_ids)


async def test_what_has_ended_is_ordered_to_expire_and_does(desk: Desk) -> None:
    announced = commit("t2", retracted(LEASE, ended_at=day(3), text="The lease ends."), at=day(1))
    await desk.stored.apply(TERMS, announced)
    timer = Timer(desk)
    assert await timer.sweep(day(1)) == []
    (command,) = await timer.sweep(day(4))
    assert (command.scope, fact_ids(command), command.issued_at) == (ALICE, [GUEST, LEASE], day(4))
    await timer.carry_out()
    assert await desk.statuses(GUEST, LEASE, CARD) == ["expired", "expired", "active"]
    assert await Timer(desk).sweep(day(5)) == []


async def test_the_clock_of_another_may_be_behind(desk: Desk) -> None:
    await desk.stored.apply(TERMS)
    assert await Timer(desk).sweep(day(2) + MARGIN / 2) == []
    assert len(await Timer(desk).sweep(day(2) + MARGIN)) == 1


async def test_the_same_order_has_the_same_id_whoever_gives_it(desk: Desk) -> None:
    await desk.stored.apply(TERMS)
    one, other = Timer(desk), Timer(desk)
    (first,), (second,) = await one.sweep(day(3)), await other.sweep(day(3) + MARGIN)
    assert first.command_id == second.command_id
    await one.carry_out()
    await other.carry_out()
    assert await desk.stored.rows("SELECT reason FROM rejections") == [("duplicate_source",)]
    assert await desk.statuses(GUEST) == ["expired"]


async def test_an_order_that_a_clock_behind_made_nothing_of_is_given_again_the_next_day(desk: Desk) -> None:
    await desk.stored.apply(TERMS)
    (command,) = await Timer(desk).sweep(day(2) + MARGIN)
    await desk.stored.apply(await desk.commit(command, day(2) - MARGIN))
    assert await desk.statuses(GUEST) == ["active"]
    timer = Timer(desk)
    await timer.sweep(day(3))
    await timer.carry_out()
    assert await desk.statuses(GUEST) == ["expired"]


async def test_an_end_that_is_announced_after_one_was_taken_back_comes(desk: Desk) -> None:
    await desk.stored.apply(TERMS, commit("t2", retracted(LEASE, ended_at=day(1), text="The lease ends."), at=day(0)))
    timer = Timer(desk)
    await timer.sweep(day(1) + MARGIN)
    await timer.carry_out()
    await desk.give("c1", Undo(source_id="t2", cascade=True), at=day(4))
    await desk.stored.apply(commit("t3", retracted(LEASE, ended_at=day(7), text="The lease ends later."), at=day(6)))
    assert [fact_ids(command) for command in await timer.sweep(day(8))] == [[GUEST, LEASE]]


async def test_an_order_is_given_again_after_some_patience(desk: Desk) -> None:
    await desk.stored.apply(TERMS)
    timer = Timer(desk)
    (first,) = await timer.sweep(day(3))
    assert await timer.sweep(day(3) + PATIENCE / 2) == []
    (again,) = await timer.sweep(day(3) + PATIENCE)
    assert again.command_id == first.command_id


async def test_what_was_taken_back_does_not_expire_again(desk: Desk) -> None:
    await desk.stored.apply(TERMS)
    timer = Timer(desk)
    await timer.sweep(day(3))
    (made,) = await timer.carry_out()
    await desk.give("u1", Undo(event_id=event_of(made)), at=day(4))
    assert await desk.statuses(GUEST) == ["active"]
    assert await Timer(desk).sweep(day(5)) == []


async def test_each_scope_has_its_orders_of_up_to_a_hundred_facts(desk: Desk) -> None:
    many = [added(f"Pass {number}.", valid_until=day(2), vector=noise(number, 3)) for number in range(130)]
    scopes = (ALICE, BOB, APP)
    await desk.stored.apply(*(commit(f"m-{scope.key!r}", *many, scope=scope) for scope in scopes))
    commands = await Timer(desk).sweep(day(3))
    assert len(commands) == 2 * len(scopes)
    named = [fact_id for command in commands for fact_id in fact_ids(command)]
    assert (len(named), len(set(named))) == (390, 390)
    assert {len(fact_ids(command)) for command in commands} == {MAX_ITEMS, 30}
    assert {command.scope for command in commands} == set(scopes)
    assert len({command.command_id for command in commands}) == len(commands)


async def test_a_sweep_is_bounded_and_the_next_goes_on_from_there(desk: Desk) -> None:
    many = [added(f"Pass {number}.", valid_until=day(1 + number % 2), vector=noise(number, 3)) for number in range(25)]
    await desk.stored.apply(commit("m", *many))
    timer = Timer(desk, batch=10)
    counts = [await timer.expiry.sweep(day(3)) for _ in range(4)]
    assert counts == [10, 10, 5, 0]
    assert len({fact_id for command in timer.commands for fact_id in fact_ids(command)}) == 25


async def test_a_worker_orders_for_its_own_scopes_only(desk: Desk) -> None:
    await desk.stored.apply(TERMS, commit("b1", added("Bob has a guest.", valid_until=day(2)), scope=BOB))
    timer = Timer(desk, mine=lambda scope: scope == BOB)
    assert [command.scope for command in await timer.sweep(day(3))] == [BOB]


async def test_it_runs_until_it_is_stopped_and_outlives_a_failure(desk: Desk) -> None:
    await desk.stored.apply(TERMS)
    stop, tries = asyncio.Event(), 0

    async def publish(_: Command) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise RecordTooLarge("it does not fit")
        stop.set()

    expiry = Expiry(desk.known, publish=publish)
    await asyncio.wait_for(expiry.run(stop, interval=0.01, clock=lambda: day(3)), timeout=20)
    assert tries == 2


async def test_a_stopped_timer_does_not_wait_for_its_interval(desk: Desk) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(Timer(desk).expiry.run(stop, interval=3600, clock=lambda: day(3)))
    stop.set()
    await asyncio.wait_for(running, timeout=20)
