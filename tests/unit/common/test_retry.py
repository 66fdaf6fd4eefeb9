"""Retries with growing delays: what is repeated, how long it waits, what passes through."""

import asyncio

import pytest

from mnemolog.common.retry import growing_delay, retry_while


class Flaky:
    """Raises from a script, then answers; remembers its calls, waits and complaints."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.waited: list[float] = []
        self.reported: list[tuple[int, str]] = []

    async def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def on_retry(self, failures: int, error: BaseException) -> None:
        self.reported.append((failures, str(error)))


def is_temporary(error: BaseException) -> bool:
    return isinstance(error, OSError)


def test_delays_grow_to_the_maximum_and_never_overflow() -> None:
    delay = growing_delay(0.2, 5)
    assert [delay(failures) for failures in range(1, 8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]
    assert delay(10**9) == 5
    assert growing_delay(1, 100, factor=3)(3) == 9


def test_jitter_takes_away_up_to_half() -> None:
    assert growing_delay(1, 5, jitter=lambda: 0.0)(1) == 0.5
    assert growing_delay(1, 5, jitter=lambda: 1.0)(9) == 5


async def test_temporary_errors_are_repeated_and_told() -> None:
    flaky = Flaky(OSError("one"), OSError("two"))
    delay = growing_delay(1, 5)
    assert await retry_while(is_temporary, flaky, delay=delay, on_retry=flaky.on_retry, sleep=flaky.sleep) == "done"
    assert (flaky.waited, flaky.reported) == ([1, 2], [(1, "one"), (2, "two")])


async def test_an_operation_may_be_any_function_that_gives_an_awaitable() -> None:
    flaky = Flaky(OSError("one"))
    assert (
        await retry_while(is_temporary, lambda: asyncio.ensure_future(flaky()), delay=lambda _: 0, sleep=flaky.sleep)
        == "done"
    )


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_other_errors_pass_through_as_they_are(error: BaseException) -> None:
    flaky = Flaky(OSError("one"), error)
    with pytest.raises(type(error)) as raised:
        await retry_while(is_temporary, flaky, delay=lambda _: 1.0, sleep=flaky.sleep)
    assert raised.value is error
    assert flaky.waited == [1.0]


async def test_after_the_last_attempt_its_error_is_raised() -> None:
    flaky = Flaky(*(OSError(str(number)) for number in range(9)))
    with pytest.raises(OSError, match="2"):
        await retry_while(is_temporary, flaky, delay=lambda _: 0.0, attempts=3, sleep=flaky.sleep)
    assert flaky.waited == [0.0, 0.0]


async def test_a_cancellation_ends_the_wait() -> None:
    flaky = Flaky(*(OSError("away") for _ in range(9)))
    waiting = asyncio.create_task(retry_while(is_temporary, flaky, delay=lambda _: 3600.0))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
