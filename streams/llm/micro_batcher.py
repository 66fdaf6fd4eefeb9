"""Process the items of many callers in one call."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from mnemolog.streams.errors import BatcherClosedError, ResultCountMismatch

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class _BatchItem(Generic[T, R]):
    item: T
    result: asyncio.Future[R]


class MicroBatcher(Generic[T, R]):
    """Collects the items of many callers for one call: up to `max_items`, or what came within `max_wait` seconds.

    `run` gets the items in order and returns one result for each. What it raises reaches the callers of that batch
    only; an error of `isolate_on` reaches only the caller whose item, run alone, raises it. At most `max_concurrent`
    calls run at once; meanwhile items wait in a queue, at most `max_queued` of them.
    """

    def __init__(
        self,
        run: Callable[[list[T]], Awaitable[list[R]]],
        *,
        max_items: int = 256,
        max_wait: float = 0.010,
        max_concurrent: int = 2,
        max_queued: int = 4096,
        isolate_on: tuple[type[Exception], ...] = (),
    ) -> None:
        self._run = run
        self._max_items = max_items
        self._max_wait = max_wait
        self._isolate_on = isolate_on
        self._slots = asyncio.Semaphore(max_concurrent)
        self._queue: asyncio.Queue[_BatchItem[T, R]] = asyncio.Queue(max_queued)
        self._calls: set[asyncio.Task[None]] = set()
        self._dispatcher: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, item: T) -> R:
        """Return this item's result; block while the queue is full.

        Raises what `run` raised for its batch, `ResultCountMismatch` or `BatcherClosedError`.
        """
        ticket: _BatchItem[T, R] = _BatchItem(item, asyncio.get_running_loop().create_future())
        if not self._closed:
            self._dispatcher = self._dispatcher or asyncio.create_task(self._dispatch_batches())
            await self._queue.put(ticket)
        if self._closed:
            _fail_as_closed([ticket])
        return await ticket.result

    async def close(self) -> None:
        """Cancel running calls and refuse waiting items; their callers get `BatcherClosedError`."""
        self._closed = True
        tasks = [task for task in (self._dispatcher, *self._calls) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while not self._queue.empty():
            _fail_as_closed([self._queue.get_nowait()])
            await asyncio.sleep(0)  # lets in a caller that the full queue held back

    async def _dispatch_batches(self) -> None:
        while True:
            await self._slots.acquire()
            tickets: list[_BatchItem[T, R]] = []
            try:
                await self._collect_batch(tickets)
            except asyncio.CancelledError:
                _fail_as_closed(tickets)
                raise
            call = asyncio.create_task(self._run_batch(tickets))
            self._calls.add(call)
            call.add_done_callback(partial(self._on_batch_done, tickets))

    async def _collect_batch(self, tickets: list[_BatchItem[T, R]]) -> None:
        tickets.append(await self._queue.get())
        try:
            async with asyncio.timeout(self._max_wait):
                while len(tickets) < self._max_items:
                    tickets.append(await self._queue.get())
        except TimeoutError:
            pass

    async def _run_batch(self, tickets: Sequence[_BatchItem[T, R]]) -> None:
        wanted = [ticket for ticket in tickets if not ticket.result.done()]
        if not wanted:
            return
        try:
            results = await self._checked_results([ticket.item for ticket in wanted])
        except Exception as error:  # noqa: BLE001 -- handed to those who asked
            if len(wanted) > 1 and isinstance(error, self._isolate_on):
                for ticket in wanted:
                    await self._run_batch([ticket])
            _fail_pending(wanted, error)
            return
        for ticket, result in zip(wanted, results, strict=True):
            if not ticket.result.done():
                ticket.result.set_result(result)

    async def _checked_results(self, items: list[T]) -> list[R]:
        results = await self._run(items)
        if len(results) != len(items):
            raise ResultCountMismatch(f"{len(items)} items gave {len(results)} results")
        return results

    def _on_batch_done(self, tickets: Sequence[_BatchItem[T, R]], call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._slots.release()
        _fail_as_closed(tickets)  # those of a cancelled call; the others have their result


def _fail_pending(tickets: Sequence[_BatchItem[T, R]], error: Exception) -> None:
    for ticket in tickets:
        if not ticket.result.done():
            ticket.result.set_exception(error)


def _fail_as_closed(tickets: Sequence[_BatchItem[T, R]]) -> None:
    _fail_pending(tickets, BatcherClosedError("the batcher was closed before it had this item's result"))
