"""The timer: what has passed is ordered to end, by a command like any other.

Nothing waits for it: answers exclude what has ended from the very second. It only brings the log up to that.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final
from uuid import UUID

import orjson
import structlog

from mnemolog.projections.stores.facts import FactStore
from mnemolog.schemas.command import MAX_ITEMS, Command, Expire
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import DueExpiry
from mnemolog.streams.errors import StreamsError

BATCH_SIZE: Final = 500
CLOCK_MARGIN: Final = timedelta(seconds=30)
"""By so much the clock of whoever carries the order out may be behind."""
REPEAT_AFTER: Final = timedelta(minutes=15)
"""For so long an order may take its time before it is given again."""
MAX_REQUESTED: Final = 100_000

log = structlog.get_logger(__name__)


class ExpirySweep:
    """Orders ended facts to expire. `owns_scope` says for which scopes; every other worker asks for its own.

    `publish` returns when the broker has the command. An order that is given twice on a day has the same id, so it is
    carried out once. The next day it has another: who carried it out may have been behind by more than `CLOCK_MARGIN`.
    """

    def __init__(
        self,
        known: FactStore,
        *,
        publish: Callable[[Command], Awaitable[object]],
        owns_scope: Callable[[Scope], bool] = lambda _: True,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        self._known = known
        self._publish = publish
        self._owns_scope = owns_scope
        self._batch = batch_size
        self._after: DueExpiry | None = None
        self._requested: dict[UUID, datetime] = {}

    @property
    def has_more(self) -> bool:
        """Whether the last sweep left off before the end; the next one goes on from there."""
        return self._after is not None

    async def sweep(self, now: datetime) -> int:
        """Look at the next facts that have ended; give the number of those that were ordered to expire now."""
        self._requested = {fact_id: asked for fact_id, asked in self._requested.items() if asked > now - REPEAT_AFTER}
        if len(self._requested) >= MAX_REQUESTED:
            self._after = None
            return 0
        page = await self._known.due_expiries(now - CLOCK_MARGIN, after=self._after, limit=self._batch)
        due = [ending for ending in page if ending.fact_id not in self._requested and self._owns_scope(ending.scope)]
        await asyncio.gather(*(self._publish(command) for command in expire_commands(due, now)))
        self._requested |= dict.fromkeys((ending.fact_id for ending in due), now)
        self._after = page[-1] if len(page) == self._batch else None
        return len(due)

    async def run(self, stop: asyncio.Event, *, interval: float, clock: Callable[[], datetime]) -> None:
        """Sweep every `interval` seconds until `stop` is set; what was not sent is ordered the next time."""
        while not stop.is_set():
            try:
                count = await self.sweep(clock())
            except StreamsError as error:
                log.warning("expiry_not_ordered", error=str(error))
            else:
                if count:
                    log.info("expiry_ordered", facts=count)
                if self.has_more:
                    continue
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), interval)


def expire_commands(due: Sequence[DueExpiry], now: datetime) -> Iterator[Command]:
    """One command for up to a hundred facts of a scope. Its id follows from the facts, their ends and the day."""
    for scope, endings in groupby(sorted(due, key=_by_scope), key=lambda ending: ending.scope):
        of_scope = list(endings)
        for start in range(0, len(of_scope), MAX_ITEMS):
            share = of_scope[start : start + MAX_ITEMS]
            order = Expire(fact_ids=tuple(ending.fact_id for ending in share))
            yield Command(command_id=_command_id(scope, share, now), scope=scope, issued_at=now, order=order)


def _by_scope(ending: DueExpiry) -> tuple[tuple[str, ...], datetime, UUID]:
    return tuple(ending.scope.columns.values()), ending.ends_at, ending.fact_id


def _command_id(scope: Scope, endings: Sequence[DueExpiry], now: datetime) -> str:
    named = [
        scope.columns,
        f"{now.astimezone(UTC):%Y-%m-%d}",
        *((str(ending.fact_id), ending.ends_at.isoformat()) for ending in endings),
    ]
    return f"expire-{hashlib.sha256(orjson.dumps(named)).hexdigest()[:32]}"
