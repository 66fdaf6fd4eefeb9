"""The Kafka side of the stages.

Whoever imports it has aiokafka with a correction: a client that is cancelled while it asks for its first metadata would
leave the connection open that it asks on.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any

from aiokafka import client as _client  # type: ignore[import-untyped] # aiokafka ships no types


async def _create_conn(create: Any, *address: Any, **options: Any) -> Any:
    connection = await create(*address, **options)
    if "on_close" not in options:  # the client knows it for its first metadata only
        connection.send = partial(_send_or_close, connection, connection.send)
    return connection


async def _send_or_close(connection: Any, send: Any, *request: Any, **options: Any) -> Any:
    try:
        return await send(*request, **options)
    except asyncio.CancelledError:
        connection.close()
        raise


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


_client.create_conn = partial(_create_conn, _client.create_conn)
