"""Waits until earlier commits of an owner are projected, so that each decision sees them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import AsyncConnection, Error, OperationalError
from psycopg.sql import SQL, Identifier

from mnemolog.common.cancellation import cancel_all
from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay
from mnemolog.projections.database import connection_settings
from mnemolog.projections.write.projector import NOTICE_CHANNEL
from mnemolog.streams.errors import LogMismatch

PROOF_SECONDS: Final = 5.0
ROUND_SECONDS: Final = 300.0
"""A connection that is broken unnoticed is replaced after so long."""
READ_SECONDS: Final = 1.0  # what arrives is mostly a notice, which takes no time to read
_PROOF: Final = "proof"
_LISTEN: Final = SQL("LISTEN {}").format(Identifier(NOTICE_CHANNEL))
_NOTIFY: Final = "SELECT pg_notify(%s, %s)"

log = get_logger(__name__)


@dataclass(slots=True)
class ProjectionNotices:
    """Calls `on_notice` at each announcement of a projector. Notices are hints: a lost one costs time, nothing else.

    Where notices cannot be heard, that is logged once, and tried again after each `round_seconds`.
    """

    postgres: str
    on_notice: Callable[[], None]
    proof_seconds: float = PROOF_SECONDS
    round_seconds: float = ROUND_SECONDS
    _is_deaf: bool = field(default=False, init=False)

    async def listen(self) -> None:
        """Listen for `round_seconds`, or wait so long where nothing can be heard.

        Raises `psycopg.OperationalError` when the connection is lost.
        """
        settings = connection_settings(self.postgres, application_name="mnemolog-notices")
        async with await AsyncConnection.connect(self.postgres, autocommit=True, **settings) as connection:
            fault = await self._fault(connection)
            if fault is None:
                self._is_deaf = False
                self.on_notice()  # what was announced before went unheard
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.round_seconds):
                        while True:
                            await _wait_for_data(connection)
                            async for _ in connection.notifies(timeout=READ_SECONDS, stop_after=1):
                                self.on_notice()
                return
        if not self._is_deaf:
            self._is_deaf = True
            log.warning("projection_notices_unheard", error=fault, instead="offsets are read with growing pauses")
        await asyncio.sleep(self.round_seconds)

    async def _fault(self, connection: AsyncConnection[Any]) -> str | None:
        """Why this connection hears nothing; None where it hears what another one announces.

        A pooler that gives each transaction another connection takes a LISTEN, and delivers nothing.
        """
        try:
            await connection.execute(_LISTEN)
            settings = connection_settings(self.postgres, application_name="mnemolog-notices-proof")
            async with await AsyncConnection.connect(self.postgres, autocommit=True, **settings) as other:
                await other.execute(_NOTIFY, (NOTICE_CHANNEL, _PROOF))
        except OperationalError:
            raise
        except Error as error:
            return str(error).strip()
        async for notice in connection.notifies(timeout=self.proof_seconds):
            if notice.payload == _PROOF:
                return None
        return f"LISTEN works and nothing arrives within {self.proof_seconds:g} s, as behind a pooler of transactions"


async def _wait_for_data(connection: AsyncConnection[Any]) -> None:
    """Wait until there is something to read; psycopg's own waiting wakes ten times a second."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()

    def on_data() -> None:
        if not arrived.done():
            arrived.set_result(None)

    loop.add_reader(connection.fileno(), on_data)
    try:
        await arrived
    finally:
        loop.remove_reader(connection.fileno())


MAX_REMEMBERED_OWNERS: Final = 100_000
RECHECK_SECONDS: Final = 2.0
"""A broker that lost its end in a power cut is away for longer."""
MIN_DELAY_SECONDS: Final = 0.1
MAX_DELAY_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 0.25
"""So late a decision can be where no projector could tell that it has written."""


class Watermark:
    """Waits until partitions are projected up to an offset.

    `read` gives the next offset to project per partition; a partition it does not name is at 0. It is called for all
    waiters together and only while there are any: when one comes, at each `wake`, and otherwise after pauses that grow
    from `interval` seconds to `MAX_PAUSE_SECONDS`. A waiter is answered by a reading that
    began after it asked: an earlier one is no proof, because a failover or a restored backup moves the tables back.
    While reading fails, waiters go on waiting, so that no decision is made on old facts.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Mapping[int, int]]],
        interval: float = 0.005,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._read = read
        self._pause = growing_delay(interval, max(interval, MAX_PAUSE_SECONDS))
        self._awake = asyncio.Event()
        self._delay = growing_delay(max(2 * interval, MIN_DELAY_SECONDS), MAX_DELAY_SECONDS)
        self._sleep = sleep
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []  # partition, offset, what wakes the waiter
        self._poller: asyncio.Task[None] | None = None

    async def wait_for_offset(self, partition: int, offset: int) -> None:
        """Return when the projection's next offset of `partition` is at least `offset`."""
        if offset <= 0:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((partition, offset, reached))
        self.wake()
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        await reached

    def wake(self) -> None:
        """Read now: a projector has written."""
        self._awake.set()

    async def close(self) -> None:
        """Stop polling and cancel whoever still waits."""
        if self._poller is not None:
            await cancel_all([self._poller])
        for _, _, reached in self._waiting:
            reached.cancel()
        self._waiting.clear()

    async def _poll(self) -> None:
        failures = pauses = 0
        while self._waiting:
            asked = len(self._waiting)
            self._awake.clear()
            try:
                offsets = await self._read()
            except Exception as error:  # noqa: BLE001 -- whatever the store raises, waiting is the answer
                failures += 1
                log.warning("projected_offsets_unavailable", failures=failures, error=repr(error))
            else:
                failures = 0
                for partition, offset, reached in self._waiting[:asked]:
                    if not reached.done() and offsets.get(partition, 0) >= offset:
                        reached.set_result(None)
                self._waiting = [waiter for waiter in self._waiting if not waiter[2].done()]
            if self._waiting and failures:
                await self._sleep(self._delay(failures))
            elif self._waiting:
                pauses += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause(pauses)):
                        await self._awake.wait()
                        pauses = 0


class ReadYourWrites:
    """`end_offset` gives the next offset of a partition of the log, `period` its present period.

    A period ends where another process may commit into the partition. The end is asked again every `RECHECK_SECONDS`,
    too, because that raises `LogMismatch` for a log that has lost its end: a broker can do so within a period.
    """

    def __init__(
        self,
        watermark: Watermark,
        end_offset: Callable[[int], Coroutine[Any, Any, int]],
        period: Callable[[], Hashable],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._checks: dict[int, tuple[float, asyncio.Task[int]]] = {}
        self._watermark = watermark
        self._end_offset = end_offset
        self._period = period
        self._ends: dict[int, tuple[Hashable, asyncio.Task[int]]] = {}
        self._committed: dict[str, tuple[int, int]] = {}
        self._floors: dict[int, int] = {}

    async def wait_until_projected(self, owner: str, partition: int) -> None:
        """Wait until the projection of `partition` holds everything that was committed for `owner`."""
        period = self._period()
        asked, task = self._ends.get(partition, (None, None))
        if task is None or asked != period or _has_failed(task):
            task = self._ask_for_end(partition)
            self._ends[partition] = (period, task)  # asked once for all who wait
        end = await asyncio.shield(task)
        asked_at, check = self._checks[partition]
        if _has_failed(check) or (check.done() and self._clock() - asked_at > RECHECK_SECONDS):
            check = self._ask_for_end(partition)
        await asyncio.shield(check)
        place, committed = self._committed.get(owner, (partition, 0))
        if place != partition:
            await self._watermark.wait_for_offset(place, committed)
            committed = 0
        await self._watermark.wait_for_offset(partition, max(end, committed, self._floors.get(partition, 0)))

    def record_commit(self, owner: str, partition: int, offset: int) -> None:
        """Remember that `owner`'s newest commit lies at `offset`.

        Raises `LogMismatch` where the log held that offset already when this period began: it has lost its end since.
        """
        _, asked = self._ends.get(partition, (0, None))
        if asked is not None and asked.done() and not _has_failed(asked) and offset < asked.result():
            raise LogMismatch(partition, offset)
        self._committed[owner] = (partition, offset + 1)
        if len(self._committed) > MAX_REMEMBERED_OWNERS:
            # From now on their turns wait for whole partitions: rarely a moment longer, never too short.
            for place, end in self._committed.values():
                self._floors[place] = max(end, self._floors.get(place, 0))
            self._committed.clear()

    def _ask_for_end(self, partition: int) -> asyncio.Task[int]:
        task = asyncio.ensure_future(self._end_offset(partition))
        self._checks[partition] = (self._clock(), task)
        return task


def _has_failed(task: asyncio.Task[int]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
