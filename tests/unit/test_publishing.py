"""Connecting to a broker that does not answer."""

import asyncio
import gc
import warnings

import pytest

from mnemolog.publishing import Publisher


async def test_a_connecting_publisher_that_is_cancelled_leaves_nothing_open() -> None:
    accepted = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await asyncio.sleep(60)
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connecting = asyncio.create_task(Publisher.connect(f"127.0.0.1:{port}"))
    await asyncio.wait_for(accepted.wait(), 10)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    server.close()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del connecting
        gc.collect()
    assert [str(one.message) for one in told if "AIOKafkaProducer" in str(one.message)] == []
