"""Connecting to a broker that does not answer."""

import asyncio
import gc
import warnings

import pytest

from mnemolog.client.producer import RecordProducer


async def test_a_connecting_publisher_that_is_cancelled_leaves_nothing_open() -> None:
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0)
    connecting = asyncio.create_task(RecordProducer.connect(f"127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    silent = await asyncio.wait_for(accepted.get(), 10)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    silent.close()
    await silent.wait_closed()
    server.close()
    await server.wait_closed()
    del connecting
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(one.message) for one in warned if "AIOKafkaProducer" in str(one.message)] == []
