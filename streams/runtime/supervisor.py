"""Run the apps of stages in one process: each is restarted alone when it crashes, all are stopped together."""

import asyncio
import logging
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from faust.contrib.asgi import bind_to_running_loop

from mnemolog.common.cancellation import first_of
from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay
from mnemolog.streams import metrics
from mnemolog.streams.errors import NoProgress, StartRefused
from mnemolog.streams.kafka.access import missing_right
from mnemolog.streams.kafka.app import STOP_SECONDS, StageApp

log = get_logger(__name__)

NOISY_LOGGERS: Final = ("faust", "aiokafka", "mode", "kafka", "asyncio")


FIRST_RESTART_SECONDS: Final = 1.0
MAX_RESTART_SECONDS: Final = 60.0
"""A restart waits the first, doubled with each crash up to this; once a stage has run for so long, it starts over."""
CHECK_SECONDS: Final = 1.0
START_CHECK_SECONDS: Final = 0.05  # until a stage is ready


async def run_stages(
    builders: Sequence[Callable[[], StageApp]],
    stop: asyncio.Event,
    *,
    last: Sequence[Callable[[], StageApp]] = (),
    ready: MutableMapping[str, bool] | None = None,
    stall_timeout: float = 600.0,
) -> None:
    """Run one App per builder until `stop` is set, then drain and stop them all; those of `last` when the others have.

    A builder gives a new App at each call. `ready` tells per stage whether it is a member of its group. Returns when
    every App has stopped or used up its stop timeout; the consumer thread of a crashed App can outlive it, so a process
    that ends here should end with `os._exit`.
    A window that finishes none of its pending records for `stall_timeout` seconds has its App restarted.
    An App that must not start, for a right that its account lacks among others, or crashes with `StartRefused`, is not
    restarted: all are stopped, and it is raised.
    """
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    ready = ready if ready is not None else {}
    stop_last = asyncio.Event()
    supervise = partial(_Supervisor, stop_all=stop, ready=ready, stall_timeout=stall_timeout)
    first, others = [supervise(build, stop) for build in builders], [supervise(build, stop_last) for build in last]
    async with asyncio.TaskGroup() as group:
        for supervisor in others:
            group.create_task(supervisor.run())
        async with asyncio.TaskGroup() as first_group:
            for supervisor in first:
                first_group.create_task(supervisor.run())
        await stop.wait()
        stop_last.set()
    for supervisor in (*first, *others):
        if supervisor.start_error is not None:
            raise supervisor.start_error


@dataclass(slots=True)
class _Supervisor:
    """Builds and runs one stage again and again, with growing delays after crashes."""

    build: Callable[[], StageApp]
    stop: asyncio.Event
    stop_all: asyncio.Event
    ready: MutableMapping[str, bool]
    stall_timeout: float
    start_error: StartRefused | None = None
    shown_partitions: set[int] = field(default_factory=set)

    async def run(self) -> None:
        delay_after, crashes = growing_delay(FIRST_RESTART_SECONDS, MAX_RESTART_SECONDS), 0
        while not self.stop.is_set():
            app = self.build()
            began = asyncio.get_running_loop().time()
            await self._run_once(app)
            if app.crash_reason is not None:
                self._refuse(app, app.crash_reason)
            if self.start_error is not None:
                self.stop_all.set()
                return
            if self.stop.is_set():
                return
            ran_long = asyncio.get_running_loop().time() - began > MAX_RESTART_SECONDS
            crashes = 1 if ran_long else crashes + 1
            delay = delay_after(crashes)
            metrics.STAGE_CRASHES.labels(stage=app.stage).inc()
            log.error("stage_down", stage=app.stage, restart_in=delay, reason=repr(app.crash_reason))
            await first_of(self.stop.wait(), timeout=delay)

    async def _run_once(self, app: StageApp) -> None:
        """Start the App, watch it, and stop it when it crashed or everything ends."""
        try:
            bind_to_running_loop(app)
            tables: Any = app.tables
            tables.sleep = lambda *_: asyncio.sleep(0)  # it would wait a second for tables that do not exist
            app.finalize()
            try:
                if app.check_start is not None:
                    await app.check_start()
                await app.maybe_start()
                crashed = app._crashed.wait()  # noqa: SLF001 - mode has no public name for it
                await first_of(self.stop.wait(), crashed, self._watch(app))
            # One that was started half-way is stopped as well: Faust's own helper would not.
            finally:
                async with asyncio.timeout(app.settings.drain_grace + STOP_SECONDS):
                    await app.stop()
        # An App that crashed, or found no broker, can raise anything from its start and stop.
        except Exception as error:
            if not self._refuse(app, error):
                log.exception("stage_failed", stage=app.stage, error=repr(error))
        finally:
            self._set_ready(app, ready=False)
            self._show_unfetched(app.stage, {})

    def _refuse(self, app: StageApp, error: BaseException) -> bool:
        """Whether an error is one that no restart mends."""
        if not isinstance(error, StartRefused) and (problem := missing_right(app.settings.kafka_address, error)):
            error = StartRefused(problem)
        if isinstance(error, StartRefused):
            self.start_error = error
        return isinstance(error, StartRefused)

    async def _watch(self, app: StageApp) -> None:
        while True:
            is_ready = app.is_group_member
            self._set_ready(app, ready=is_ready)
            windows = [window.progress for window in app.window.chain]
            for stage, one in zip(app.chain, windows, strict=True):
                metrics.WINDOW_RUNNING.labels(stage=stage).set(one.running)
                metrics.WINDOW_PENDING.labels(stage=stage).set(one.pending - one.handed_on)
                metrics.WINDOW_OLDEST.labels(stage=stage).set(one.oldest_age)
                metrics.WINDOW_STALLED.labels(stage=stage).set(one.stalled_for)
            self._show_unfetched(app.stage, app.unfetched_seconds())
            progress = max(windows, key=lambda one: one.stalled_for)
            if progress.stalled_for > self.stall_timeout:
                await app.crash(NoProgress(f"{progress.pending} records, none done for {progress.stalled_for:.0f} s"))
            await asyncio.sleep(CHECK_SECONDS if is_ready else START_CHECK_SECONDS)

    def _show_unfetched(self, stage: str, unfetched: Mapping[int, float]) -> None:
        for partition in self.shown_partitions - unfetched.keys():
            metrics.UNFETCHED.remove(stage, str(partition))
        self.shown_partitions = set(unfetched)
        for partition, seconds in unfetched.items():
            metrics.UNFETCHED.labels(stage=stage, partition=partition).set(seconds)

    def _set_ready(self, app: StageApp, *, ready: bool) -> None:
        for stage in app.chain:
            if self.ready.get(stage) != ready:
                log.info("stage_ready" if ready else "stage_not_ready", stage=stage)
            self.ready[stage] = ready
            metrics.STAGE_READY.labels(stage=stage).set(ready)
