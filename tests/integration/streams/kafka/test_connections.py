"""What aiokafka leaves open, over a real Kafka."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped] # ships no types
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped] # as above
from aiokafka.conn import AIOKafkaConnection  # type: ignore[import-untyped] # as above
from aiokafka.protocol.metadata import MetadataRequest  # type: ignore[import-untyped] # as above

from mnemolog.streams.kafka.readers import KafkaLogReader  # its package corrects aiokafka
from mnemolog.streams.kafka_address import KafkaAddress

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("client", [AIOKafkaConsumer, AIOKafkaProducer, AIOKafkaAdminClient])
async def test_a_start_that_is_cancelled_leaves_no_connection_open(
    bootstrap: str, client: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, send = asyncio.Event(), AIOKafkaConnection.send

    def send_until_metadata(connection: Any, request: Any, **options: Any) -> Awaitable[Any]:
        if not isinstance(request, type(MetadataRequest([]))):
            answer: Awaitable[Any] = send(connection, request, **options)
            return answer
        asked.set()
        return asyncio.get_running_loop().create_future()

    gc.collect()
    before = open_connections()
    with monkeypatch.context() as patched:
        patched.setattr(AIOKafkaConnection, "send", send_until_metadata)
        starting = asyncio.create_task(start(client(bootstrap_servers=bootstrap)))
        await asked.wait()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    assert open_connections() == before


@pytest.mark.parametrize("cancellations", [1, 3])
async def test_a_reader_that_is_cancelled_while_it_stops_leaves_no_connection_open(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, cancellations: int
) -> None:
    stopping, stop = asyncio.Event(), AIOKafkaConsumer.stop

    async def stop_slowly(consumer: Any) -> None:
        stopping.set()
        for _ in range(10):
            await asyncio.sleep(0)
        await stop(consumer)

    gc.collect()
    before = open_connections()
    reader = KafkaLogReader(KafkaAddress(bootstrap))
    await (await reader._connected_consumer()).topics()
    assert open_connections() > before
    monkeypatch.setattr(AIOKafkaConsumer, "stop", stop_slowly)
    closing = asyncio.create_task(reader.close())
    await stopping.wait()
    for _ in range(cancellations):
        closing.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(closing, return_exceptions=True)
    assert closing.cancelled()
    assert open_connections() == before


def open_connections() -> int:
    return sum(isinstance(one, AIOKafkaConnection) and one.connected() for one in gc.get_objects())


async def start(client: Any) -> None:
    try:
        await client.start()
    finally:
        await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())
