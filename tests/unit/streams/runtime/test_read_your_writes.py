import asyncio
from collections import Counter

import pytest

from mnemolog.streams.errors import LogMismatch
from mnemolog.streams.runtime import read_your_writes
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites, Watermark
from tests.support.polling import eventually


class FakeLog:
    """The ends of the log and how far it is projected, both set by the test."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        self.projected: dict[int, int] = {}
        self.epoch = 0
        self.asked: Counter[int] = Counter()
        self.fails = False

    async def end(self, partition: int) -> int:
        self.asked[partition] += 1
        if self.fails:
            raise ConnectionError("the broker is away")
        return self.ends.get(partition, 0)

    async def read(self) -> dict[int, int]:
        return dict(self.projected)

    def read_your_writes(self) -> ReadYourWrites:
        return ReadYourWrites(Watermark(self.read, interval=0.001), self.end, lambda: self.epoch)


async def is_waiting(task: "asyncio.Task[None]") -> bool:
    await asyncio.sleep(0.02)
    return not task.done()


async def test_after_a_start_it_waits_for_the_end_that_the_log_had() -> None:
    log = FakeLog()
    log.ends = {3: 5}
    task = asyncio.create_task(log.read_your_writes().wait_until_projected("default/mira", 3))
    assert await is_waiting(task)
    log.projected = {3: 5}
    await asyncio.wait_for(task, 5)


async def test_an_owner_waits_for_its_own_commit_and_others_go_on() -> None:
    log = FakeLog()
    fresh = log.read_your_writes()
    await fresh.wait_until_projected("default/mira", 0)
    fresh.record_commit("default/mira", 0, 7)
    task = asyncio.create_task(fresh.wait_until_projected("default/mira", 0))
    await asyncio.wait_for(fresh.wait_until_projected("default/jonas", 0), 5)
    assert await is_waiting(task)
    log.projected = {0: 7}
    assert await is_waiting(task)
    log.projected = {0: 8}
    await asyncio.wait_for(task, 5)


async def test_after_a_rebalance_the_end_is_asked_again_and_only_once() -> None:
    log = FakeLog()
    fresh = log.read_your_writes()
    await fresh.wait_until_projected("default/mira", 0)
    log.epoch, log.ends = 1, {0: 9}
    tasks = [
        asyncio.create_task(fresh.wait_until_projected(f"default/{name}", 0)) for name in ("mira", "jonas", "priya")
    ]
    assert await is_waiting(tasks[0])
    log.projected = {0: 9}
    await asyncio.wait_for(asyncio.gather(*tasks), 5)
    assert log.asked[0] == 2


async def test_an_end_that_could_not_be_asked_is_asked_again() -> None:
    log = FakeLog()
    fresh = log.read_your_writes()
    log.fails = True
    with pytest.raises(ConnectionError):
        await fresh.wait_until_projected("default/mira", 0)
    log.fails = False
    await asyncio.wait_for(fresh.wait_until_projected("default/mira", 0), 5)


async def test_forgotten_owners_are_waited_for_by_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_your_writes, "MAX_REMEMBERED_OWNERS", 2)
    log = FakeLog()
    fresh = log.read_your_writes()
    for offset, name in enumerate(("mira", "jonas", "priya")):
        fresh.record_commit(f"default/{name}", 0, offset)
    task = asyncio.create_task(fresh.wait_until_projected("default/somebody", 0))
    assert await is_waiting(task)
    log.projected = {0: 3}
    await eventually(task.done)


async def test_a_commit_that_others_see_in_the_tables_first_is_no_sign_of_a_lost_log() -> None:
    log = FakeLog()
    log.ends = log.projected = {0: 5}
    fresh = log.read_your_writes()
    await fresh.wait_until_projected("default/mira", 0)
    log.projected = {0: 6}  # her commit is in the tables before its acknowledgement is handled
    await fresh.wait_until_projected("default/jonas", 0)
    fresh.record_commit("default/mira", 0, 5)


async def test_a_commit_at_an_offset_that_the_log_had_before_it_was_decided_shows_a_lost_log() -> None:
    log = FakeLog()
    log.ends = log.projected = {0: 5}
    fresh = log.read_your_writes()
    await fresh.wait_until_projected("default/mira", 0)
    with pytest.raises(LogMismatch):
        fresh.record_commit("default/mira", 0, 3)


async def test_a_log_that_loses_its_end_within_an_epoch_is_noticed_before_the_next_decision() -> None:
    log, now = FakeLog(), [0.0]
    fresh = ReadYourWrites(Watermark(log.read, interval=0.001), log.end, lambda: 0, clock=lambda: now[0])
    await fresh.wait_until_projected("default/mira", 0)
    await fresh.wait_until_projected("default/mira", 0)
    assert log.asked[0] == 1
    now[0] += read_your_writes.RECHECK_SECONDS + 1
    log.fails = True
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await fresh.wait_until_projected("default/mira", 0)
    log.fails = False
    await fresh.wait_until_projected("default/jonas", 0)
    assert log.asked[0] == 4


async def test_what_others_commit_meanwhile_is_not_waited_for() -> None:
    log, now = FakeLog(), [0.0]
    log.projected = {0: 0}
    fresh = ReadYourWrites(Watermark(log.read, interval=0.001), log.end, lambda: 0, clock=lambda: now[0])
    await fresh.wait_until_projected("default/mira", 0)
    now[0] += read_your_writes.RECHECK_SECONDS + 1
    log.ends = {0: 1_000}
    await asyncio.wait_for(fresh.wait_until_projected("default/mira", 0), 5)
