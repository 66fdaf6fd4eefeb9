"""A client that stops is waited for, whatever becomes of the one who waits."""

import asyncio

import pytest

from mnemolog.streams.kafka import finish


async def test_a_cancellation_is_raised_also_where_the_client_fails_to_stop() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def stop() -> None:
        begun.set()
        await go_on.wait()
        raise ConnectionError

    waiting = asyncio.create_task(finish(stop()))
    await begun.wait()
    waiting.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_error_of_the_client_is_raised() -> None:
    async def stop() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await finish(stop())
