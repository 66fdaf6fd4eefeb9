"""Process the items of many callers in one call."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from mnemolog.common.cancellation import cancel_all
from mnemolog.streams.errors import BatcherClosedError, ResultCountMismatch

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class _BatchItem(Generic[T, R]):
    item: T
    result: asyncio.Future[R]
    call: "_Call[T, R] | None" = None


@dataclass(slots=True, eq=False)
class _Call(Generic[T, R]):
    """A call that is under way, and the items that wait for it."""

    tickets: Sequence[_BatchItem[T, R]]
    task: "asyncio.Task[None] | None" = None

    def cancel_if_abandoned(self) -> None:
        if self.task is not None and all(ticket.result.done() for ticket in self.tickets):
            self.task.cancel()


class MicroBatcher(Generic[T, R]):
    """Collects the items of many callers for one call: up to `max_items`, or what came within `max_wait` seconds.

    An item that comes more than `max_wait` after the one before it is not kept waiting: hardly another would join it.
    `run` gets the items in order and returns one result for each. What it raises reaches the callers of that batch
    only. After an error of `isolate_on` the batch is divided into `max_concurrent` parts, at least two, that run side
    by side, and so on, until each item that causes it is alone; lone items of a divided batch go to `run_alone`.
    So another item of a batch of n waits for at most log n further calls, to the base `max_concurrent`. A call that no
    caller waits for any more is cancelled. At most `max_concurrent` batches run at once, not counting their parts;
    meanwhile items wait in a queue, at most `max_queued` of them.
    """

    def __init__(
        self,
        run: Callable[[list[T]], Awaitable[list[R]]],
        *,
        run_alone: Callable[[T], Awaitable[R]] | None = None,
        max_items: int = 256,
        max_wait: float = 0.010,
        max_concurrent: int = 2,
        max_queued: int = 4096,
        isolate_on: tuple[type[Exception], ...] = (),
    ) -> None:
        async def run_lone(items: list[T]) -> list[R]:
            return [await run_alone(items[0])] if run_alone else await run(items)

        self._run = run
        self._run_lone = run_lone if run_alone else None
        self._max_items = max_items
        self._max_wait = max_wait
        self._isolate_on = isolate_on
        self._parts = max(2, max_concurrent)
        self._slots = asyncio.Semaphore(max_concurrent)
        self._queue: asyncio.Queue[_BatchItem[T, R]] = asyncio.Queue(max_queued)
        self._calls: set[asyncio.Task[None]] = set()
        self._dispatcher: asyncio.Task[None] | None = None
        self._last_submitted = -math.inf
        self._wait = 0.0
        self._closed = False

    async def submit(self, item: T) -> R:
        """Return this item's result; block while the queue is full.

        Raises what `run` raised for its batch, `ResultCountMismatch` or `BatcherClosedError`.
        """
        ticket: _BatchItem[T, R] = _BatchItem(item, asyncio.get_running_loop().create_future())
        if not self._closed:
            self._dispatcher = self._dispatcher or asyncio.create_task(self._dispatch_batches())
            now = asyncio.get_running_loop().time()
            self._wait = self._max_wait if now - self._last_submitted <= self._max_wait else 0.0
            self._last_submitted = now
            await self._queue.put(ticket)
        if self._closed:
            _fail_as_closed([ticket])
        try:
            return await ticket.result
        except asyncio.CancelledError:
            if ticket.call is not None:
                ticket.call.cancel_if_abandoned()
            raise

    async def close(self) -> None:
        """Cancel running calls and refuse waiting items; their callers get `BatcherClosedError`."""
        self._closed = True
        tasks = [] if self._dispatcher is None else [self._dispatcher]
        while tasks := [*tasks, *self._calls]:
            await cancel_all(tasks)
            tasks = []
        while not self._queue.empty():
            _fail_as_closed([self._queue.get_nowait()])
            await asyncio.sleep(0)  # lets in a caller that the full queue held back

    async def _dispatch_batches(self) -> None:
        while True:
            await self._slots.acquire()
            tickets: list[_BatchItem[T, R]] = []
            try:
                tickets.append(await self._queue.get())
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._wait):
                        while len(tickets) < self._max_items:
                            tickets.append(await self._queue.get())
            except asyncio.CancelledError:
                _fail_as_closed(tickets)
                raise
            self._start(tickets, self._run).add_done_callback(lambda _: self._slots.release())

    def _start(
        self, tickets: Sequence[_BatchItem[T, R]], run: Callable[[list[T]], Awaitable[list[R]]]
    ) -> asyncio.Task[None]:
        call = _Call(tickets)
        for ticket in tickets:
            ticket.call = call
        call.task = task = asyncio.create_task(self._run_batch(tickets, run))
        self._calls.add(task)

        def finish(done: asyncio.Task[None]) -> None:
            self._calls.discard(done)
            if done.cancelled() or self._closed:
                _fail_as_closed(tickets)

        task.add_done_callback(finish)
        return task

    async def _run_batch(
        self, tickets: Sequence[_BatchItem[T, R]], run: Callable[[list[T]], Awaitable[list[R]]]
    ) -> None:
        wanted = [ticket for ticket in tickets if not ticket.result.done()]
        if not wanted:
            return
        try:
            results = await run([ticket.item for ticket in wanted])
        except Exception as error:  # noqa: BLE001 -- handed to those who asked
            left = [ticket for ticket in wanted if not ticket.result.done()]
            may_run_alone = self._run_lone is not None and run is not self._run_lone
            if not isinstance(error, self._isolate_on) or (len(left) == 1 and not may_run_alone):
                _fail_pending(wanted, error)
                return
            # The parts have no slot of their own: an item that fails for long is to hold up no batch.
            size = max(1, -(-len(left) // self._parts))
            for start in range(0, len(left), size):
                part = left[start : start + size]
                self._start(part, self._run if len(part) > 1 else self._run_lone or self._run)
            return
        if len(results) != len(wanted):
            _fail_pending(wanted, ResultCountMismatch(f"{len(wanted)} items gave {len(results)} results"))
            return
        for ticket, result in zip(wanted, results, strict=True):
            if not ticket.result.done():
                ticket.result.set_result(result)


def _fail_pending(tickets: Sequence[_BatchItem[T, R]], error: Exception) -> None:
    for ticket in tickets:
        if not ticket.result.done():
            ticket.result.set_exception(error)


def _fail_as_closed(tickets: Sequence[_BatchItem[T, R]]) -> None:
    _fail_pending(tickets, BatcherClosedError("the batcher was closed before it had this item's result"))
