"""The Kafka side of the stages.

Whoever imports it has aiokafka with a correction: a client that is cancelled while it asks for its first metadata would
leave the connection open that it asks on.
"""

import asyncio
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


_client.create_conn = partial(_create_conn, _client.create_conn)
