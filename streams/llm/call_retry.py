"""Retries, concurrency limit and circuit breaker of the calls to one server.

Nothing here knows what is called. An attempt answers with its result, or with a `CallFailure` that says what
may be done about it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from mnemolog.projections.logs import get_logger
from mnemolog.projections.retry import growing_delay
from mnemolog.streams.llm.errors import PromptRefusedError

T = TypeVar("T")
FailureKind = Literal["unavailable", "suspect", "faulty", "refused"]
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailure:
    """Why an attempt brought no result.

    `unavailable`: the server cannot answer now; tried again without limit.
    `suspect`: it may be the server or this call (a timeout); counts against the call only while other calls succeed.
    `faulty`: the server answered, with something unusable; tried again a few times.
    `refused`: this call can never succeed.
    `code` has few values (it becomes a label), `retry_after` is in seconds.
    """

    kind: FailureKind
    code: str
    detail: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """Times in seconds. Waits are drawn evenly from 0 to `initial_delay` * 2^n, at most `max_delay` (full jitter)."""

    max_concurrent: int = 32
    initial_delay: float = 0.5
    max_delay: float = 30.0
    max_retry_after: float = 3600.0
    failures_to_open: int = 5
    max_call_failures: int = 3


class CallRetrier:
    """Runs the attempts of one client."""

    def __init__(
        self,
        settings: RetrySettings,
        *,
        name: str,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._settings = settings
        self._uniform = uniform
        self._longest_delay = growing_delay(settings.initial_delay, settings.max_delay)
        self._slots = asyncio.Semaphore(settings.max_concurrent)
        self._breaker = _CircuitBreaker(self._retry_delay, settings.failures_to_open, name=name)

    @property
    def paused(self) -> bool:
        """Whether all calls wait behind one probe."""
        return self._breaker.is_open

    async def call(self, attempt: Callable[[], Awaitable[T | CallFailure]]) -> T:
        """Repeat `attempt` until it brings a result, for as long as the server is unavailable.

        Raises `PromptRefusedError` where this call can never succeed: at once when it is refused, else after
        `RetrySettings.max_call_failures` faulty replies, or as many timeouts during each of which another call
        succeeded.
        """
        strikes = failures = 0
        while True:
            async with self._slots:
                outcome, others_succeed = await self._breaker.run(attempt)
            if not isinstance(outcome, CallFailure):
                return outcome
            failures += 1
            strikes += outcome.kind == "faulty" or (outcome.kind == "suspect" and others_succeed)
            if outcome.kind == "refused" or strikes >= self._settings.max_call_failures:
                raise PromptRefusedError(outcome.code, outcome.detail)
            await asyncio.sleep(self._retry_delay(failures, outcome))

    def _retry_delay(self, failures: int, fault: CallFailure) -> float:
        """Seconds to wait after the n-th failure in a row."""
        settings = self._settings
        if fault.retry_after is not None:
            # the jitter keeps all callers from coming back in the same moment
            return min(fault.retry_after, settings.max_retry_after) + self._uniform(0, settings.initial_delay)
        return self._uniform(0, self._longest_delay(failures))


class _CircuitBreaker:
    """Closed: everybody may call. Open: one probe at a time, until one brings a result."""

    def __init__(self, wait: Callable[[int, CallFailure], float], failures_to_open: int, *, name: str) -> None:
        self._wait = wait
        self._failures_to_open = failures_to_open
        self._name = name
        self._probing = asyncio.Lock()
        self._failures = 0
        self._successes = 0
        self._opened_at = self._next_probe = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self._failures_to_open

    async def run(self, attempt: Callable[[], Awaitable[T | CallFailure]]) -> tuple[T | CallFailure, bool]:
        """The outcome of `attempt`, and whether another call succeeded while it ran."""
        if self.is_open:
            async with self._probing:
                if self.is_open:  # else the probe before this one closed it
                    await asyncio.sleep(self._next_probe - time.monotonic())
                    return await self._run_attempt(attempt, probe=True)
        return await self._run_attempt(attempt, probe=False)

    async def _run_attempt(
        self, attempt: Callable[[], Awaitable[T | CallFailure]], *, probe: bool
    ) -> tuple[T | CallFailure, bool]:
        before = self._successes
        outcome = await attempt()
        others_succeed = self._successes > before
        if not isinstance(outcome, CallFailure):
            self._on_success()
        elif outcome.kind in {"unavailable", "suspect"} and (probe or not self.is_open):
            # calls that were under way when it opened tell nothing new: they must not prolong the pause
            self._on_failure(outcome)
        return outcome, others_succeed

    def _on_success(self) -> None:
        if self.is_open:
            _log.info("provider_available", provider=self._name, paused_seconds=time.monotonic() - self._opened_at)
        self._failures = 0
        self._successes += 1

    def _on_failure(self, fault: CallFailure) -> None:
        self._failures += 1
        if self._failures == self._failures_to_open:
            self._opened_at = time.monotonic()
            _log.error("provider_unavailable", provider=self._name, code=fault.code, failures=self._failures)
        probes = self._failures - self._failures_to_open
        self._next_probe = time.monotonic() + self._wait(max(1, probes + 1), fault)
