"""How many records a stage may end as failed before one of the same kind of work succeeds."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from mnemolog.projections.logs import get_logger
from mnemolog.projections.retry import growing_delay
from mnemolog.streams import metrics

MAX_FAILURES_IN_A_ROW: Final = 20
"""So many records in a row are not all at fault: it is the program, or its model. At a failure rate of 50 % that many
come in a row once in a million records."""
FIRST_DELAY_SECONDS: Final = 1.0
MAX_DELAY_SECONDS: Final = 60.0

log = get_logger(__name__)


class FailureBudget:
    """Lets so many records end as failed; then holds every further failure back until a record succeeds.

    Of the records that are held, one is tried again after each pause, and all once a record succeeds. A budget outlives
    restarts of its stage, so that a stage that crashes again and again does not get a new one each time.
    """

    def __init__(self, stage: str, *, jitter: Callable[[], float] = random.random) -> None:
        self._stage = stage
        self._delay = growing_delay(FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, jitter=jitter)
        self._left = MAX_FAILURES_IN_A_ROW
        self._tries = 0
        self._held = metrics.STAGE_HELD.labels(stage=stage)
        self._turn = asyncio.Lock()
        self._refilled = asyncio.Event()

    def record_success(self) -> None:
        """A record of the same kind of work succeeded."""
        if self._left == MAX_FAILURES_IN_A_ROW:
            return
        if not self._left:
            log.info("stage_failures_released", stage=self._stage)
        self._left, self._tries = MAX_FAILURES_IN_A_ROW, 0
        self._refilled.set()

    async def spend(self) -> bool:
        """Whether the record may end as failed. If not, this waits until the record is to be tried again."""
        if self._left:
            self._left -= 1
            if not self._left:
                self._refilled.clear()
                log.error("stage_failures_held", stage=self._stage, failures=MAX_FAILURES_IN_A_ROW)
            return True
        self._held.inc()
        try:
            async with self._turn:
                await self._wait_for_success()
        finally:
            self._held.dec()
        return False

    async def _wait_for_success(self) -> None:
        """Wait for a success, or for a pause that grows with each record that was tried in vain."""
        if self._left:
            return
        self._tries += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(self._delay(self._tries)):
                await self._refilled.wait()


class FailureBudgets:
    """The budgets of a process: one for each stage and kind of source."""

    def __init__(self) -> None:
        self._budgets: dict[tuple[str, str], FailureBudget] = {}

    def of(self, stage: str, source_kind: str) -> FailureBudget:
        """The budget of a kind of work; the same one at each call."""
        key = (stage, source_kind)
        if key not in self._budgets:
            self._budgets[key] = FailureBudget(stage)
        return self._budgets[key]
