"""Work done together: consecutive records of a partition, and items of many callers."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from mnemolog.streams.base_window import Entry, Partition, Window
from mnemolog.streams.errors import BatcherClosed, ResultsMissing
from mnemolog.streams.records import Record

T = TypeVar("T")
R = TypeVar("R")


class BatchWindow(Window):
    """Consecutive records of one partition together, one batch per partition at a time.

    A batch is what has arrived, at most `max_records`, and is never waited for. `process_batch` gets the records in
    offset order and returns when their effect is durable; what it raises crashes the stage. Up to `max_in_flight`
    partitions are worked on at once, the one that waits longest first.
    """

    def __init__(
        self,
        process_batch: Callable[[Sequence[Record]], Awaitable[None]],
        *,
        max_records: int = 500,
        max_in_flight: int = 4,
        max_pending: int = 2048,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process_batch = process_batch
        self._max_records = max_records
        super().__init__(max_in_flight=max_in_flight, max_pending=max_pending, clock=clock)

    def _begin(self) -> None:
        super()._begin()
        self._waiting: dict[Partition, deque[Entry]] = {}
        self._busy: set[Partition] = set()

    def _enqueue(self, entry: Entry) -> None:
        self._waiting.setdefault(entry.partition, deque()).append(entry)

    def _next(self) -> Sequence[Entry]:
        heads = [
            (entries[0].sequence, partition)
            for partition, entries in self._waiting.items()
            if entries and partition not in self._busy and self._wanted(entries[0])
        ]
        if not heads:
            return ()
        _, partition = min(heads)
        self._busy.add(partition)
        waiting = self._waiting[partition]
        return [waiting.popleft() for _ in range(min(len(waiting), self._max_records))]

    async def _work(self, entries: Sequence[Entry]) -> None:
        await self._process_batch([entry.record for entry in entries])

    def _release(self, entries: Sequence[Entry]) -> None:
        self._busy.discard(entries[0].partition)


@dataclass(slots=True, eq=False)
class _Ticket(Generic[T, R]):
    item: T
    result: asyncio.Future[R]


class MicroBatcher(Generic[T, R]):
    """Items of many callers in one call: up to `max_items`, or what came within `max_wait` seconds.

    `run` gets the items in order and returns one result for each. What it raises reaches the callers of that batch
    only. At most `max_concurrent` calls run at once; meanwhile items gather, at most `max_queued` of them.
    """

    def __init__(
        self,
        run: Callable[[list[T]], Awaitable[list[R]]],
        *,
        max_items: int = 256,
        max_wait: float = 0.010,
        max_concurrent: int = 2,
        max_queued: int = 4096,
    ) -> None:
        self._run = run
        self._max_items = max_items
        self._max_wait = max_wait
        self._slots = asyncio.Semaphore(max_concurrent)
        self._queue: asyncio.Queue[_Ticket[T, R]] = asyncio.Queue(max_queued)
        self._calls: set[asyncio.Task[None]] = set()
        self._collector: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, item: T) -> R:
        """Return this item's result; block while the queue is full.

        Raises what `run` raised for its batch, `ResultsMissing` or `BatcherClosed`.
        """
        ticket: _Ticket[T, R] = _Ticket(item, asyncio.get_running_loop().create_future())
        if not self._closed:
            self._collector = self._collector or asyncio.create_task(self._collect())
            await self._queue.put(ticket)
        if self._closed:
            _refuse([ticket])
        return await ticket.result

    async def close(self) -> None:
        """Cancel running calls and refuse waiting items; their callers get `BatcherClosed`."""
        self._closed = True
        tasks = [task for task in (self._collector, *self._calls) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while not self._queue.empty():
            _refuse([self._queue.get_nowait()])
            await asyncio.sleep(0)  # lets in a caller that the full queue held back

    async def _collect(self) -> None:
        while True:
            await self._slots.acquire()
            tickets: list[_Ticket[T, R]] = []
            try:
                await self._gather(tickets)
            except asyncio.CancelledError:
                _refuse(tickets)
                raise
            call = asyncio.create_task(self._call(tickets))
            self._calls.add(call)
            call.add_done_callback(partial(self._finished, tickets))

    async def _gather(self, tickets: list[_Ticket[T, R]]) -> None:
        tickets.append(await self._queue.get())
        try:
            async with asyncio.timeout(self._max_wait):
                while len(tickets) < self._max_items:
                    tickets.append(await self._queue.get())
        except TimeoutError:
            pass

    async def _call(self, tickets: Sequence[_Ticket[T, R]]) -> None:
        wanted = [ticket for ticket in tickets if not ticket.result.done()]
        if not wanted:
            return
        try:
            results = await self._results([ticket.item for ticket in wanted])
        except Exception as error:  # noqa: BLE001 -- handed to those who asked
            _settle(wanted, error)
            return
        for ticket, result in zip(wanted, results, strict=True):
            if not ticket.result.done():
                ticket.result.set_result(result)

    async def _results(self, items: list[T]) -> list[R]:
        results = await self._run(items)
        if len(results) != len(items):
            raise ResultsMissing(f"{len(items)} items gave {len(results)} results")
        return results

    def _finished(self, tickets: Sequence[_Ticket[T, R]], call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._slots.release()
        _refuse(tickets)  # those of a cancelled call; the others have their result


def _settle(tickets: Sequence[_Ticket[T, R]], error: Exception) -> None:
    for ticket in tickets:
        if not ticket.result.done():
            ticket.result.set_exception(error)


def _refuse(tickets: Sequence[_Ticket[T, R]]) -> None:
    _settle(tickets, BatcherClosed("the batcher was closed before it had this item's result"))
