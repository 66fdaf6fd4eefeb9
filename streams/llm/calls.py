"""Calls of one kind to one server: retries, concurrency limit and pauses; counts of time, tokens and money."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Final, Literal, TypeVar

from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay
from mnemolog.common.suspicion import Suspicion
from mnemolog.schemas.costs import ModelUsage, PriceTable
from mnemolog.streams import metrics
from mnemolog.streams.llm.ports import BatchSuspectError, PromptRefusedError, Usage

T = TypeVar("T")
_log = get_logger(__name__)


def record_call(purpose: str, model: str, started: float, usage: Usage, prices: PriceTable, *, turns: int = 1) -> float:
    """Count a call that asks about so many turns, and its cost; gives its milliseconds."""
    seconds = perf_counter() - started
    if purpose == "extract":
        metrics.CALL_TURNS.observe(turns)
    metrics.MODEL_CALLS.labels(purpose=purpose, model=model).inc()
    metrics.MODEL_SECONDS.labels(purpose=purpose, model=model).observe(seconds)
    for direction, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
        metrics.MODEL_TOKENS.labels(purpose=purpose, model=model, direction=direction).inc(tokens)
    if usage.cached_tokens is not None:
        fresh = usage.input_tokens - usage.cached_tokens
        for result, tokens in (("cached", usage.cached_tokens), ("fresh", fresh)):
            metrics.PROMPT_TOKENS.labels(purpose=purpose, model=model, result=result).inc(tokens)
    took = ModelUsage(
        model=model,
        day=datetime.now(UTC).date(),
        input_tokens=usage.input_tokens,
        cached_tokens=min(usage.cached_tokens or 0, usage.input_tokens),
        output_tokens=usage.output_tokens,
        uncounted=int(not usage.input_tokens and not usage.output_tokens),
    )
    amount = prices.cost([took]).amount
    if amount is None:
        metrics.UNPRICED_CALLS.labels(purpose=purpose, model=model).inc()
    else:
        metrics.MODEL_COST.labels(purpose=purpose, model=model).inc(float(amount))
    return round(seconds * 1000, 3)


FAILURES_TO_TELL: Final = 2
"""An attempt and the probe after it: since then a server that fails is named to whoever waits."""
_ADVICE: Final[Mapping[str, str]] = {
    "http_401": "the server refuses the key: correct MNEMOLOG_API_KEY",
    "http_403": "the server does not allow this key what is asked: correct MNEMOLOG_API_KEY or the model",
    "http_402": "the account at the server has no money left: pay, or name another server by MNEMOLOG_BASE_URL",
    "http_404": "the server knows no such address or model: correct MNEMOLOG_BASE_URL or the name of the model",
    "http_429": "the quota of the account, or its rate, is used up: raise the limit at the provider, or name another "
    "server by MNEMOLOG_BASE_URL",
    "http_400": "the server refuses what is asked: its words are in the log; MNEMOLOG_LEAVE_OUT leaves parameters out",
    "http_501": "the server lacks what is asked: start it in another way, or ask another one",
    "too_long": "what is asked is longer than the context of the model: start the server with a longer one",
    "connection": "no server answers, or its answers break off: start it, or correct MNEMOLOG_BASE_URL",
    "timeout": "the server does not answer in time: raise MNEMOLOG_LLM_TIMEOUT or MNEMOLOG_EMBEDDING_TIMEOUT",
    "not_json": "what answers is no server of a model: correct MNEMOLOG_BASE_URL, which often ends in /v1",
    "model_refusal": "the model refuses all that it is asked: choose another one",
    "content_filter": "the filter of the server stops all replies: change its settings, or choose another model",
    "wrong_dimensions": "their size is another one: correct MNEMOLOG_EMBEDDING_MODEL or MNEMOLOG_EMBEDDING_DIMENSIONS",
    "wrong_count": "the server does not give one vector a text: correct MNEMOLOG_EMBEDDING_MODEL",
    "other_model": "a fallback embeds once it gives the same vector for the same text as the first server",
    "bad_embedding": "the vectors have no length or no numbers: correct MNEMOLOG_EMBEDDING_MODEL",
}
_SAME_ADVICE: Final[Mapping[str, str]] = {
    "http_422": "http_400",
    "unexpected_reply": "not_json",
    "no_choices": "not_json",
}
_CONTEXT: Final = re.compile(r"\bcontext (?:length|size|window)|prompt is too long|maximum length", re.IGNORECASE)
"""In the message of a server whose model reads less than it was asked."""
_QUOTABLE: Final = frozenset(
    {"connection", "timeout", "http_402", "http_404", "http_429", "http_501", "wrong_dimensions", "wrong_count"}
)
"""Failures whose details are about the server and the account alone."""
FAILURES_TO_WARN: Final = 5
"""So many failures in a row are logged, some seconds after the first: one call alone takes minutes to pause all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailure:
    """Why an attempt brought no result.

    `unavailable`: no usable answer; the next attempt waits longer and longer.
    `refused`: the server says that this very request is wrong; waiting is no use, so the next attempt comes soon.
    Both count alike. `code` has few values (it becomes a label), `retry_after` is in seconds, from `failed_at` on.
    `refuses` is a parameter of the request that the server names, `is_too_long` whether it says that a text is too
    long. `is_of_probe`: it was about a greeting, so that no word of a user is in `detail`.
    """

    kind: Literal["unavailable", "refused"] = "unavailable"
    code: str
    detail: str = ""
    retry_after: float | None = None
    failed_at: datetime = field(default_factory=partial(datetime.now, UTC), compare=False)
    refuses: str | None = None
    is_too_long: bool = False
    is_of_probe: bool = False

    @property
    def advice(self) -> str:
        """What it means, and what to do, in a sentence that has no key and no word of a user."""
        is_quotable = self.code in _QUOTABLE or (self.is_of_probe and self.code in ("http_400", "http_422"))
        said = f": {self.detail}" if self.detail and is_quotable else ""
        until = self.failed_at + timedelta(seconds=self.retry_after or 0)
        wait = f"; it asks for no call before {until:%Y-%m-%d %H:%M:%S} UTC" if self.retry_after else ""
        kind = "too_long" if _CONTEXT.search(self.detail) else _SAME_ADVICE.get(self.code, self.code)
        advice = _ADVICE.get(kind, "the server fails: see its log")
        return f"{advice} ({self.code}{said}{wait})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """Times in seconds. Waits are drawn evenly from 0 to `initial_delay` * 2^n, at most `max_delay` (full jitter).

    A server that names a longer wait often recovers much sooner: it is asked again after `max_delay`, too.
    `failures_to_pause` failures in a row, of any calls and probes, pause all calls. At a failure rate of 50 % that many
    come in a row once in a million attempts.
    """

    max_concurrent: int = 32
    initial_delay: float = 0.5
    max_delay: float = 30.0
    failures_to_pause: int = 20


class CallSlots:
    """Bounds the attempts at once; repeats of failed attempts get at most half, so that first attempts go on."""

    def __init__(self, max_concurrent: int) -> None:
        self.all = asyncio.Semaphore(max_concurrent)
        self.repeats = asyncio.Semaphore(max(1, max_concurrent // 2))


class CallRetrier:
    """Runs the calls of one kind, and knows the server by the outcomes of all of them and of probes.

    `probe` is a small call. `on_pause` gets True when all calls are paused, after many failures in a row, and False
    when they go on. Retriers that share `slots` share one limit. `problems` has, under `name`, why all calls fail at
    the moment.
    """

    def __init__(
        self,
        settings: RetrySettings,
        *,
        name: str,
        probe: Callable[[], Awaitable[object]],
        slots: CallSlots | None = None,
        on_pause: Callable[[bool], None] = lambda _paused: None,
        problems: MutableMapping[str, str] | None = None,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.name = name
        self.paused = False
        """Whether all calls wait until a probe succeeds."""
        self._settings = settings
        self._probe = probe
        self._slots = slots or CallSlots(settings.max_concurrent)
        self._on_pause = on_pause
        self._problems = {} if problems is None else problems
        self._uniform = uniform
        self._longest_delay = growing_delay(settings.initial_delay, settings.max_delay)
        self._probing = asyncio.Lock()
        self._resumed = asyncio.Event()
        self._failures_in_a_row = self._failed_probes = self._probes = 0
        self._paused_at = self._next_probe = 0.0
        self.outcomes = (0, 0)
        """How many calls and probes have succeeded and failed."""

    async def call(
        self, attempt: Callable[[], Awaitable[T | CallFailure]], *, divisible: bool = False, overridden: bool = False
    ) -> T:
        """Repeat `attempt` until it brings a result, for as long as other calls fail as well.

        Raises `PromptRefusedError` when the evidence says that this call is at fault. A `divisible` call raises
        `BatchSuspectError` instead, at the first failure while others succeed. An `overridden` call differs from the
        others by a choice of its own (another model, another timeout): it is compared with the others, but neither its
        outcomes nor its pauses concern them.
        """
        suspicion, failures = Suspicion(), 0
        while True:
            outcome, before = await self._run(attempt, repeats=failures > 0 or overridden, apart=overridden)
            if not isinstance(outcome, CallFailure):
                return outcome
            failures += 1
            await self.probe_unless_others_succeed(before)
            successes, failed = (now - then for now, then in zip(self.outcomes, before, strict=True))
            suspicion.add_failure(successes=successes, failures=failed)
            if suspicion.is_conclusive:
                raise PromptRefusedError(outcome.code, outcome.detail)
            if successes > 0 and divisible:
                raise BatchSuspectError(f"{outcome.code}: {outcome.detail}")
            await asyncio.sleep(self._growing_delay(1 if outcome.kind == "refused" else failures, outcome))

    async def _run(
        self, attempt: Callable[[], Awaitable[T | CallFailure]], *, repeats: bool, apart: bool
    ) -> tuple[T | CallFailure, tuple[int, int]]:
        """The outcome of an attempt, and how many others there were before it; its own failure is none of others."""
        async with self._slots.repeats if repeats else nullcontext():
            while True:
                while self.paused and not apart:  # of all that wait, one sends the probes
                    async with self._probing:
                        try:
                            async with asyncio.timeout_at(self._next_probe):
                                await self._resumed.wait()
                        except TimeoutError:
                            await self._run_probe()
                async with self._slots.all:
                    if self.paused and not apart:
                        continue  # paused while this call waited for its slot
                    before = self.outcomes
                    outcome = await attempt()
                    if not apart:
                        self._record(outcome)
                        before = (before[0], before[1] + 1)
                    return outcome, before

    def _growing_delay(self, failures: int, failure: CallFailure) -> float:
        settings = self._settings
        if failure.retry_after is not None:
            # the jitter keeps all callers from coming back in the same moment
            return min(failure.retry_after, settings.max_delay) + self._uniform(0, settings.initial_delay)
        return self._uniform(0, self._longest_delay(failures))

    def _record(self, outcome: object) -> None:
        succeeded, failed = self.outcomes
        if not isinstance(outcome, CallFailure):
            self.outcomes = (succeeded + 1, failed)
            self._failures_in_a_row = 0
            self._problems.pop(self.name, None)
            if self.paused:
                self.paused = False
                self._resumed.set()
                self._on_pause(False)
                seconds = asyncio.get_running_loop().time() - self._paused_at
                _log.info("provider_available", provider=self.name, paused_seconds=seconds)
            return
        self.outcomes = (succeeded, failed + 1)
        self._failures_in_a_row += 1
        # What a probe was answered may be quoted; a call that fails in the same way says no more.
        if self._failures_in_a_row >= FAILURES_TO_TELL and (
            outcome.is_of_probe or f"({outcome.code}" not in self._problems.get(self.name, "")
        ):
            self._problems[self.name] = outcome.advice
        if self.paused:
            return
        if self._failures_in_a_row == FAILURES_TO_WARN:
            _log.warning("provider_failing", provider=self.name, code=outcome.code, detail=outcome.detail)
        if self._failures_in_a_row >= self._settings.failures_to_pause:
            self.paused = True
            self._resumed.clear()
            self._failed_probes = 0
            self._paused_at = asyncio.get_running_loop().time()
            self._next_probe = self._paused_at + self._growing_delay(1, outcome)
            self._on_pause(True)
            _log.error("provider_unavailable", provider=self.name, code=outcome.code, failures=self._failures_in_a_row)

    async def probe_unless_others_succeed(self, before: tuple[int, int]) -> None:
        """Send a probe where nothing has succeeded since; callers that wait here at the same time share it."""
        probes = self._probes

        def needs_probe() -> bool:
            return self.outcomes[0] == before[0] and not self.paused

        if needs_probe():
            async with self._probing:
                if needs_probe() and self._probes == probes:
                    await self._run_probe()

    async def _run_probe(self) -> None:
        outcome = await self._probe()
        if isinstance(outcome, CallFailure):
            outcome = replace(outcome, is_of_probe=True)
        self._probes += 1
        self._record(outcome)
        if self.paused and isinstance(outcome, CallFailure):
            self._failed_probes += 1
            self._next_probe = asyncio.get_running_loop().time() + self._growing_delay(self._failed_probes, outcome)
