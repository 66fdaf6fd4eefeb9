"""The timer: it orders what has ended to expire, once, in bounded sweeps, for the scopes of its worker."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from mnemolog.schemas.command import MAX_ITEMS, Command, Expire
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import DueExpiry
from mnemolog.streams.commands.expiry import BATCH_SIZE, CLOCK_MARGIN, REPEAT_AFTER, ExpirySweep
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.runtime.loops import run_sweep
from tests.support.builders.commits import ALICE, BOB, day

APP = Scope(tenant="acme", user_id="alice", app_id="app")


class Timer:
    """The timer over facts that end; what it publishes is kept."""

    def __init__(
        self, *due: DueExpiry, batch_size: int = BATCH_SIZE, owns_scope: Callable[[Scope], bool] = lambda _: True
    ) -> None:
        self.due = sorted(due, key=lambda one: (one.ends_at, one.fact_id))
        self.commands: list[Command] = []
        self.sweep = ExpirySweep(self, publish=self.publish, owns_scope=owns_scope, batch_size=batch_size)

    async def due_expiries(self, now: datetime, *, after: DueExpiry | None, limit: int) -> list[DueExpiry]:
        first = self.due.index(after) + 1 if after else 0
        return [one for one in self.due[first:] if one.ends_at <= now][:limit]

    async def publish(self, command: Command) -> None:
        self.commands.append(command)

    async def swept(self, now: datetime) -> list[Command]:
        """The commands of one round, as often as there are pages."""
        self.commands.clear()
        await self.sweep.sweep(now)
        while self.sweep.has_more:
            await self.sweep.sweep(now)
        return list(self.commands)


DAY_2 = day(2)


def due(number: int, ends_at: datetime = DAY_2, scope: Scope = ALICE) -> DueExpiry:
    return DueExpiry(ends_at=ends_at, fact_id=UUID(int=number), scope=scope)


def fact_ids(command: Command) -> tuple[UUID, ...]:
    assert isinstance(command.order, Expire)
    return command.order.fact_ids


async def test_what_has_ended_gets_one_command_although_a_clock_is_slow() -> None:
    timer = Timer(due(1), due(2, day(3)), due(3, day(9)))
    assert await timer.swept(day(2) + CLOCK_MARGIN / 2) == []
    (command,) = await timer.swept(day(4))
    assert (command.scope, fact_ids(command), command.issued_at) == (ALICE, (UUID(int=1), UUID(int=2)), day(4))
    (sooner,) = await Timer(due(1)).swept(day(2) + CLOCK_MARGIN)
    assert fact_ids(sooner) == (UUID(int=1),)


async def test_a_command_is_issued_again_after_a_while_and_has_its_id_for_a_day_whoever_issues_it() -> None:
    timer = Timer(due(1))
    (first,) = await timer.swept(day(3))
    assert await timer.swept(day(3) + REPEAT_AFTER / 2) == []
    (again,) = await timer.swept(day(3) + REPEAT_AFTER)
    (other,) = await Timer(due(1)).swept(day(3) + CLOCK_MARGIN)
    (next_day,) = await timer.swept(day(4))
    assert first.command_id == again.command_id == other.command_id != next_day.command_id


async def test_each_scope_gets_commands_of_up_to_a_hundred_facts() -> None:
    scopes = (ALICE, BOB, APP)
    timer = Timer(*(due(number + 1000 * place, scope=one) for place, one in enumerate(scopes) for number in range(130)))
    commands = await timer.swept(day(3))
    assert sorted(len(fact_ids(command)) for command in commands) == [30] * 3 + [MAX_ITEMS] * 3
    assert len({fact_id for command in commands for fact_id in fact_ids(command)}) == 390
    assert {command.scope for command in commands} == set(scopes)
    assert len({command.command_id for command in commands}) == len(commands)


async def test_a_sweep_is_bounded_and_the_next_goes_on_from_there() -> None:
    timer = Timer(*(due(number, day(1 + number % 2)) for number in range(25)), batch_size=10)
    assert [await timer.sweep.sweep(day(3)) for _ in range(4)] == [10, 10, 5, 0]
    assert len({fact_id for command in timer.commands for fact_id in fact_ids(command)}) == 25


async def test_a_worker_issues_commands_for_its_own_scopes_only() -> None:
    timer = Timer(due(1), due(2, scope=BOB), owns_scope=lambda scope: scope == BOB)
    assert [command.scope for command in await timer.swept(day(3))] == [BOB]


async def test_a_command_that_was_not_sent_is_sent_by_a_later_sweep() -> None:
    tries = 0

    async def publish(_: Command) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise RecordTooLarge("it does not fit")

    sweep = ExpirySweep(Timer(due(1)), publish=publish)
    for _ in range(3):
        await run_sweep(sweep, day(3))
    assert tries == 2
