"""Waiting for the first of several: the others end, an error is raised."""

import asyncio

import pytest

from mnemolog.common.cancellation import first_of


async def fail() -> None:
    raise ValueError("broken")


@pytest.mark.parametrize("seconds", [None, 0.01])
async def test_the_others_are_cancelled_when_the_first_has_ended_or_the_time_is_over(seconds: float | None) -> None:
    endless = asyncio.ensure_future(asyncio.Event().wait())
    soon = asyncio.sleep(0) if seconds is None else asyncio.Event().wait()
    await first_of(endless, soon, timeout=seconds)
    assert endless.cancelled()


async def test_the_error_of_the_first_is_raised_and_the_others_are_cancelled() -> None:
    endless = asyncio.ensure_future(asyncio.Event().wait())
    with pytest.raises(ValueError, match="broken"):
        await first_of(endless, fail())
    assert endless.cancelled()


async def test_who_waits_may_be_cancelled() -> None:
    endless = asyncio.ensure_future(asyncio.Event().wait())
    waiting = asyncio.ensure_future(first_of(endless))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert endless.cancelled()
