"""Which call is blamed, repeated or paused, in virtual time; and what calls cost."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import structlog
from prometheus_client import REGISTRY

from mnemolog.common.suspicion import MAX_CHANCE, MIN_SHARE
from mnemolog.schemas.costs import ModelPrice, PriceTable
from mnemolog.streams.llm.calls import CallFailure, CallRetrier, CallSlots, RetrySettings, record_call
from mnemolog.streams.llm.ports import BatchSuspectError, PromptRefusedError, Usage
from tests.support.virtual_time import in_virtual_time

FAILED = CallFailure(kind="unavailable", code="http_503")
REFUSED = CallFailure(kind="refused", code="http_400", detail="context too long")
Attempt = Callable[[], Awaitable[str | CallFailure]]


QUOTA = (
    "the quota of the account, or its rate, is used up: raise the limit at the provider, or name another server by "
    "MNEMOLOG_BASE_URL (http_429: no credits)"
)


class ScriptedServer:
    """Answers after a second: what `failure` gives at that moment, else "ok"."""

    def __init__(self, failure: Callable[[], CallFailure | None] = lambda: None) -> None:
        self.failure = failure
        self.calls = self.running = self.most = 0

    async def __call__(self) -> str | CallFailure:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(1)
        finally:
            self.running -= 1
        return self.failure() or "ok"


def retrier(probe: Attempt, **settings: Any) -> CallRetrier:
    return CallRetrier(RetrySettings(**settings), name="test", probe=probe, uniform=random.Random(7).uniform)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("code", "detail", "problem"),
    [
        ("http_401", "key sk-123", "the server refuses the key: correct MNEMOLOG_API_KEY (http_401)"),
        ("http_429", "no credits", QUOTA),
        ("http_500", "said: my salary", "the server fails: see its log (http_500)"),
    ],
)
@in_virtual_time
async def test_who_waits_is_told_why_all_calls_fail_until_one_succeeds(code: str, detail: str, problem: str) -> None:
    failures = [CallFailure(kind="unavailable", code=code, detail=detail)] * 3
    server, problems = ScriptedServer(lambda: failures.pop() if failures else None), dict[str, str]()
    calls = CallRetrier(RetrySettings(), name="extract m", probe=server, problems=problems)
    waiting = asyncio.create_task(calls.call(server))
    await asyncio.sleep(3.5)
    assert problems == {"extract m": problem}
    assert await waiting == "ok"
    assert problems == {}


@pytest.mark.parametrize("failure", [FAILED, REFUSED], ids=lambda one: str(one.kind))
@in_virtual_time
async def test_a_failing_call_that_is_alone_is_compared_with_probes(failure: CallFailure) -> None:
    probe, poison, calls_paused = ScriptedServer(), ScriptedServer(lambda: failure), list[bool]()
    calls = CallRetrier(RetrySettings(failures_to_pause=3), name="test", probe=probe, on_pause=calls_paused.append)
    with pytest.raises(PromptRefusedError):
        await calls.call(poison)
    assert poison.calls == probe.calls == 20
    assert calls_paused == []
    assert now() < 600


@in_virtual_time
async def test_while_paused_only_probes_are_sent_one_at_a_time() -> None:
    server = ScriptedServer(lambda: FAILED if now() < 300 else None)
    probe = ScriptedServer(server.failure)
    paused: list[bool] = []
    calls = CallRetrier(RetrySettings(failures_to_pause=5), name="test", probe=probe, on_pause=paused.append)
    waiting = [asyncio.create_task(calls.call(server)) for _ in range(50)]
    await asyncio.sleep(10)
    assert calls.paused
    sent = server.calls
    await asyncio.sleep(280)
    assert server.calls == sent
    assert probe.most == 1
    assert await asyncio.gather(*waiting) == ["ok"] * 50
    assert paused == [True, False]


@in_virtual_time
async def test_a_success_of_a_call_under_way_ends_the_pause() -> None:
    async def slow() -> str:
        await asyncio.sleep(50)
        return "ok"

    server = ScriptedServer(lambda: FAILED if now() < 49 else None)
    calls = retrier(server, failures_to_pause=3, initial_delay=1000, max_delay=1000)
    first = asyncio.create_task(calls.call(slow))
    waiting = [asyncio.create_task(calls.call(server)) for _ in range(10)]
    await first
    assert not calls.paused
    assert await calls.call(server) == "ok"
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@in_virtual_time
async def test_a_cancelled_probe_leaves_the_next_one_free() -> None:
    probes = 0

    async def probe() -> str | CallFailure:
        nonlocal probes
        probes += 1
        if probes == 1:
            await asyncio.Event().wait()
        return "ok"

    failing = ScriptedServer(lambda: FAILED)
    calls = retrier(probe)
    first, second = asyncio.create_task(calls.call(failing)), asyncio.create_task(calls.call(failing))
    await asyncio.sleep(2)
    first.cancel()
    with pytest.raises(PromptRefusedError):
        await second


@in_virtual_time
async def test_an_overridden_call_is_compared_with_the_others_and_does_not_concern_them() -> None:
    paused: list[bool] = []
    server = ScriptedServer()
    calls = CallRetrier(RetrySettings(failures_to_pause=3), name="test", probe=server, on_pause=paused.append)
    missing = [ScriptedServer(lambda: CallFailure(kind="unavailable", code="http_404")) for _ in range(30)]
    ends = await asyncio.gather(*(calls.call(one, overridden=True) for one in missing), return_exceptions=True)
    assert {type(end) for end in ends} == {PromptRefusedError}
    assert max(one.calls for one in missing) <= 20
    assert paused == []


@in_virtual_time
async def test_a_divisible_call_is_given_back_at_its_first_failure_while_others_succeed() -> None:
    batch = ScriptedServer(lambda: FAILED)
    with pytest.raises(BatchSuspectError):
        await retrier(ScriptedServer()).call(batch, divisible=True)
    assert batch.calls == 1
    outage = ScriptedServer(lambda: FAILED if now() < 100 else None)
    assert await retrier(outage).call(outage, divisible=True) == "ok"


@in_virtual_time
async def test_waits_double_up_to_the_longest_and_are_drawn_from_zero() -> None:
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return 0.0

    async def fail(failure: CallFailure) -> None:
        outcomes = iter([failure] * 5)
        settings = RetrySettings(initial_delay=1, max_delay=5, failures_to_pause=99)
        calls = CallRetrier(settings, name="test", probe=ScriptedServer(), uniform=uniform)
        await calls.call(ScriptedServer(lambda: next(outcomes, None)))

    await fail(FAILED)
    assert drawn == [(0, 1), (0, 2), (0, 4), (0, 5), (0, 5)]
    drawn.clear()
    await fail(REFUSED)
    assert drawn == [(0, 1)] * 5


@pytest.mark.parametrize(("named", "least"), [(7, 7), (3600, 30)])
@pytest.mark.parametrize("probe_fails", [False, True])
@in_virtual_time
async def test_a_named_wait_is_kept_up_to_the_longest_delay_and_told(
    *, probe_fails: bool, named: float, least: int
) -> None:
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    asked = CallFailure(kind="unavailable", code="http_429", retry_after=named, failed_at=at)
    assert f"; it asks for no call before {at + timedelta(seconds=named):%Y-%m-%d %H:%M:%S} UTC)" in asked.advice
    outcomes = iter([asked])
    probe = ScriptedServer(lambda: FAILED if probe_fails else None)
    await retrier(probe).call(ScriptedServer(lambda: next(outcomes, None)))
    assert least <= now() <= least + 5


@in_virtual_time
async def test_at_most_so_many_attempts_at_once_and_half_of_them_repeat() -> None:
    server, failing = ScriptedServer(), ScriptedServer(lambda: FAILED)
    slots = CallSlots(6)
    both = [CallRetrier(RetrySettings(), name=name, probe=ScriptedServer(), slots=slots) for name in "ab"]
    repeated = [asyncio.create_task(calls.call(failing)) for calls in both for _ in range(9)]
    await asyncio.sleep(60)
    failing.most = 0
    await asyncio.gather(*(calls.call(server) for calls in both for _ in range(20)))
    assert failing.most <= 3
    assert server.most <= 6
    for task in repeated:
        task.cancel()
    await asyncio.gather(*repeated, return_exceptions=True)


@in_virtual_time
async def test_only_changes_of_state_are_logged() -> None:
    server = ScriptedServer(lambda: FAILED if now() < 200 else None)
    with structlog.testing.capture_logs() as logs:
        await asyncio.gather(*(calls.call(server) for calls in [retrier(server)] * 30))
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("provider_failing", "warning"),
        ("provider_unavailable", "error"),
        ("provider_available", "info"),
    ]
    assert logs[0]["code"] == logs[1]["code"] == "http_503"


def test_the_thresholds_are_those_of_the_page() -> None:
    assert pytest.approx(1e-6) == MAX_CHANCE
    assert pytest.approx(0.1) == MIN_SHARE


PRICES = PriceTable((ModelPrice(model="priced-*", input=Decimal(2), cached_input=Decimal(1), output=Decimal(8)),))


def counted(name: str, model: str) -> float:
    return REGISTRY.get_sample_value(f"mnemolog_{name}_total", {"purpose": "extract", "model": model}) or 0.0


def test_money_of_a_call_is_counted() -> None:
    took = Usage(input_tokens=100_000, output_tokens=10_000, cached_tokens=50_000)
    record_call("extract", "priced-1", 0.0, took, PRICES)
    assert counted("model_cost", "priced-1") == 0.23
    assert counted("model_unpriced_calls", "priced-1") == 0


def test_a_call_without_a_price_or_without_tokens_is_counted_as_unknown() -> None:
    record_call("extract", "other", 0.0, Usage(input_tokens=5), PRICES)
    record_call("extract", "priced-2", 0.0, Usage(), PRICES)
    assert [counted("model_unpriced_calls", model) for model in ("other", "priced-2")] == [1, 1]
    assert [counted("model_cost", model) for model in ("other", "priced-2")] == [0, 0]
