import asyncio
from collections.abc import Callable, Iterator

import pytest
import structlog

from mnemolog.streams.llm.call_retry import CallFailure, CallRetrier, RetrySettings
from mnemolog.streams.llm.errors import PromptRefusedError
from tests.support.polling import eventually

AWAY = CallFailure(kind="unavailable", code="http_503")
TIMEOUT = CallFailure(kind="suspect", code="timeout", detail="no answer in 60 s")
QUICK = RetrySettings(initial_delay=0.001, max_delay=0.002)


class Server:
    """Answers from a script, then with "ok"; remembers how many calls ran at once."""

    def __init__(self, *script: CallFailure, seconds: float = 0.0) -> None:
        self._script: Iterator[CallFailure] = iter(script)
        self._seconds = seconds
        self.calls = self.running = self.most = 0

    async def __call__(self) -> str | CallFailure:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self._seconds)
        self.running -= 1
        return next(self._script, "ok")


async def times_out() -> str | CallFailure:
    await asyncio.sleep(0.005)
    return TIMEOUT


def pacer(
    pace: RetrySettings = QUICK, uniform: Callable[[float, float], float] = lambda _low, high: high
) -> CallRetrier:
    return CallRetrier(pace, name="test", uniform=uniform)


async def test_an_outage_is_waited_out() -> None:
    server = Server(*[AWAY] * 50)
    assert await pacer().call(server) == "ok"
    assert server.calls == 51


async def test_waits_double_up_to_the_longest_and_are_drawn_from_zero() -> None:
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return 0.0

    await pacer(RetrySettings(initial_delay=1, max_delay=5, failures_to_open=99), uniform).call(Server(*[AWAY] * 5))
    own = drawn[1::2]  # each failure draws once for the breaker and once for the caller
    assert own == [(0, 1), (0, 2), (0, 4), (0, 5), (0, 5)]


async def test_retry_after_is_honoured_and_bounded() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    asked = CallFailure(kind="unavailable", code="http_429", retry_after=0.2)
    await pacer().call(Server(asked))
    assert 0.2 <= loop.time() - start < 2
    endless = CallFailure(kind="unavailable", code="http_429", retry_after=1e9)
    await pacer(RetrySettings(initial_delay=0.001, max_retry_after=0.01)).call(Server(endless))


async def test_a_refused_call_is_given_up_at_once() -> None:
    server = Server(CallFailure(kind="refused", code="http_400", detail="context too long"))
    with pytest.raises(PromptRefusedError, match="http_400: context too long"):
        await pacer().call(server)
    assert server.calls == 1


async def test_faulty_replies_are_tried_again_a_few_times() -> None:
    faulty = CallFailure(kind="faulty", code="wrong_count")
    assert await pacer().call(Server(faulty, faulty)) == "ok"
    server = Server(*[faulty] * 9)
    with pytest.raises(PromptRefusedError, match="wrong_count"):
        await pacer().call(server)
    assert server.calls == 3


async def test_timeouts_of_one_call_are_poison_while_others_succeed() -> None:
    line = pacer()
    poison = asyncio.create_task(line.call(times_out))
    while not poison.done():
        await line.call(Server(seconds=0.001))
    with pytest.raises(PromptRefusedError, match="timeout"):
        await poison


async def test_timeouts_of_every_call_are_an_outage() -> None:
    line = pacer()
    servers = [Server(*[TIMEOUT] * 8) for _ in range(4)]
    assert await asyncio.gather(*map(line.call, servers)) == ["ok"] * 4


async def test_at_most_so_many_calls_at_once() -> None:
    server = Server(seconds=0.002)
    line = pacer(RetrySettings(max_concurrent=3))
    await asyncio.gather(*(line.call(server) for _ in range(12)))
    assert server.most == 3


async def test_an_open_breaker_lets_one_probe_through_at_a_time() -> None:
    line = pacer(RetrySettings(initial_delay=0.001, max_delay=0.002, failures_to_open=2))
    up = asyncio.Event()
    server = Server(seconds=0.001)

    async def attempt() -> str | CallFailure:
        reply = await server()
        return reply if up.is_set() else AWAY

    calls = [asyncio.create_task(line.call(attempt)) for _ in range(10)]
    await eventually(lambda: line.paused and server.running <= 1)
    server.most, seen = 0, server.calls
    await eventually(lambda: server.calls > seen + 10)
    assert server.most == 1
    up.set()
    assert await asyncio.gather(*calls) == ["ok"] * 10
    assert not line.paused


async def test_calls_under_way_when_it_opens_do_not_prolong_the_pause() -> None:
    line = pacer(RetrySettings(initial_delay=0.005, max_delay=60, failures_to_open=2))
    start = asyncio.get_running_loop().time()
    servers = [Server(AWAY, seconds=0.001) for _ in range(24)]
    await asyncio.gather(*map(line.call, servers))
    assert asyncio.get_running_loop().time() - start < 5


async def test_a_cancelled_probe_leaves_the_next_one_free() -> None:
    line = pacer(RetrySettings(initial_delay=0.001, max_delay=0.002, failures_to_open=1))
    server = Server(AWAY)

    async def hang() -> str | CallFailure:
        if server.calls:
            await asyncio.Event().wait()
        return await server()

    stuck = asyncio.create_task(line.call(hang))
    await eventually(lambda: line.paused)
    stuck.cancel()
    assert await asyncio.wait_for(line.call(Server()), 5) == "ok"


async def test_only_changes_of_state_are_logged() -> None:
    with structlog.testing.capture_logs() as logs:
        await pacer(RetrySettings(initial_delay=0.001, max_delay=0.001, failures_to_open=3)).call(Server(*[AWAY] * 20))
        await pacer().call(Server(AWAY))
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("provider_unavailable", "error"),
        ("provider_available", "info"),
    ]
    assert logs[0]["code"] == "http_503"
