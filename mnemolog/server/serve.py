"""Runs the server: what it needs at the start, its socket, and its end."""

import asyncio
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Final

import uvicorn

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.connections import ReadPool
from mnemolog.errors import SettingsError
from mnemolog.extras import is_installed
from mnemolog.server.app import build_app
from mnemolog.server.gate import Gate
from mnemolog.server.keys import KeyStore
from mnemolog.server.tokens import TokenReader
from mnemolog.settings import Settings

MAKE_KEY: Final = "make a key by `mnemolog keys create NAME`, or set MNEMOLOG_JWKS_URL"
_STARTED_SECONDS: Final = 0.01
_KEY_CONNECTIONS: Final = 2


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # whoever runs it has handlers of its own


def is_loopback(host: str) -> bool:
    """Whether a host is an address of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@asynccontextmanager
async def serving(settings: Settings, *, without_keys: bool, any_port: bool = False) -> AsyncIterator[str]:
    """Serve while the context lasts; gives the URL. Settings name Kafka and Postgres.

    Port 0 takes a free one, and so does `any_port` where the one that is set is taken.

    At the end requests that wait are answered, started ones are finished for `drain_grace` seconds. Raises
    `SettingsError` where nobody could or everybody may use the server, or the port is taken.
    """
    if without_keys and not is_loopback(settings.http_host):
        raise SettingsError(
            f"{settings.http_host} is reached from other machines, so everybody could read all memory: {MAKE_KEY}, or "
            "serve on 127.0.0.1 (MNEMOLOG_HTTP_HOST)"
        )
    pool = ReadPool(
        settings.postgres or "", size=_KEY_CONNECTIONS, statement_timeout=settings.postgres_statement_timeout
    )
    keys = KeyStore(pool, now=lambda: datetime.now(UTC))
    tokens = TokenReader(settings) if settings.jwks_url else None
    try:
        if not without_keys and tokens is None and not await keys.has_valid():
            raise SettingsError(f"nobody could use the server, because there is no key: {MAKE_KEY}")
        async with AsyncMemoryClient(settings=settings) as client:
            gate = Gate(
                client,
                tenant=settings.tenant,
                keys=None if without_keys else keys,
                tokens=None if without_keys else tokens,
                rate=settings.http_rate,
            )
            app = build_app(client, gate, max_body=settings.http_max_body, page_commands=settings.http_page_commands)
            async with AsyncExitStack() as stack:
                if is_installed("mcp"):
                    from mnemolog.server.tools import offering_tools  # noqa: PLC0415 - of the extra `mcp`

                    await stack.enter_async_context(offering_tools(app, gate, settings.mcp_tools))
                listener = stack.enter_context(_listening(settings.http_host, settings.http_port, any_port=any_port))
                server = _Server(
                    uvicorn.Config(
                        app,
                        log_config=None,
                        access_log=False,
                        server_header=False,
                        lifespan="off",
                        timeout_graceful_shutdown=round(settings.drain_grace),
                    )
                )
                running = asyncio.create_task(server.serve(sockets=[listener]))
                try:
                    while not server.started and not running.done():  # noqa: ASYNC110 - uvicorn has a flag alone
                        await asyncio.sleep(_STARTED_SECONDS)
                    host, port = listener.getsockname()[:2]
                    yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
                finally:
                    app.state.draining.set()
                    server.should_exit = True
                    await running
    finally:
        await keys.close()


def _listening(host: str, port: int, *, any_port: bool) -> socket.socket:
    """A socket that takes connections. Raises `SettingsError`."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if any_port:
            return _listening(host, 0, any_port=False)
        why = os.strerror(error.errno or 0)
        raise SettingsError(
            f"HTTP cannot be served on {host}:{port} ({why}): set MNEMOLOG_HTTP_PORT to another port, or to 0 for a "
            "free one; MNEMOLOG_HTTP_HOST is the address"
        ) from error
