"""Sessions of accounts at Kafka are renewed on their connections (KIP-368), before the broker cuts them.

Importing it corrects aiokafka 0.14, which reads how long a session lasts and forgets it: with
`connections.max.reauth.ms` on the broker each of its connections would be cut at that age, in the midst of requests.
"""

import asyncio
import functools
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from aiokafka.conn import AIOKafkaConnection  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.protocol.admin import (  # type: ignore[import-untyped] # as above
    ApiVersionRequest,
    SaslAuthenticateRequest,
    SaslHandShakeRequest,
)

RENEW_AT: Final = 0.8
"""The share of a session's lifetime after which the next request renews it."""


@dataclass(slots=True)
class Session:
    renew_at: float = float("inf")
    """By the clock of the event loop."""
    renewals: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


SESSIONS: Final[WeakKeyDictionary[Any, Session]] = WeakKeyDictionary()
_send = AIOKafkaConnection.send


@functools.wraps(_send)
def _send_in_session(connection: Any, request: Any, expect_response: bool = True) -> Awaitable[Any]:
    if isinstance(request, SaslAuthenticateRequest):
        return _authenticate(connection, request)
    session = SESSIONS.get(connection)
    is_renewing = isinstance(request, ApiVersionRequest | SaslHandShakeRequest)
    if session is None or is_renewing or asyncio.get_running_loop().time() < session.renew_at:
        sent: Awaitable[Any] = _send(connection, request, expect_response)
        return sent
    return _send_renewed(connection, session, request, expect_response)


async def _authenticate(connection: Any, request: Any) -> Any:
    answer = await _send(connection, request)
    if lifetime := getattr(answer, "session_lifetime_ms", 0):
        session = SESSIONS.setdefault(connection, Session())
        session.renew_at = asyncio.get_running_loop().time() + RENEW_AT * lifetime / 1000
    return answer


async def _send_renewed(connection: Any, session: Session, request: Any, expect_response: bool) -> Any:
    async with session.lock:  # the broker takes nothing else between the requests of a renewal
        if asyncio.get_running_loop().time() >= session.renew_at:
            await connection._do_sasl_handshake()  # noqa: SLF001 - aiokafka calls it at the connection alone
            session.renewals += 1
    return await _send(connection, request, expect_response)


AIOKafkaConnection.send = _send_in_session
