"""The Kafka side of the stages.

Importing it corrects aiokafka: a client that is cancelled while it asks for its first metadata would leave the
connection open that it asks on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, client  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped] # as above


async def _create_conn(create: Any, *address: Any, **options: Any) -> Any:
    connection = await create(*address, **options)
    if "on_close" not in options:  # the client knows it for its first metadata only
        send = connection.send

        async def send_or_close(*request: Any, **more: Any) -> Any:
            try:
                return await send(*request, **more)
            except asyncio.CancelledError:
                connection.close()
                raise

        connection.send = send_or_close
    return connection


client.create_conn = partial(_create_conn, client.create_conn)


async def finish(stopping: Awaitable[object]) -> None:
    """Wait until a client has stopped, however often this is cancelled meanwhile; a cancellation is raised afterwards.

    A client that is cancelled while it stops leaves its connections open, and cannot be stopped again.
    """
    task, cancelled = asyncio.ensure_future(stopping), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    try:
        task.result()
    finally:
        if cancelled is not None:
            raise cancelled


@asynccontextmanager
async def connected_admin(bootstrap: str) -> AsyncIterator[Any]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        yield admin
    finally:
        await finish(admin.close())


@asynccontextmanager
async def connected_consumer(bootstrap: str | Sequence[str], **options: Any) -> AsyncIterator[Any]:
    """A consumer without a group; `options` are those of aiokafka."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **options)
    try:
        await consumer.start()
        yield consumer
    finally:
        await finish(consumer.stop())
