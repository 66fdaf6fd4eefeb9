"""How a command gets its settings, its client and its event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from mnemolog.client.client import MemoryClient
    from mnemolog.settings import Settings

R = TypeVar("R")


def cli_settings(**given: Any) -> "Settings":
    """The settings with what the command line gives; what it leaves out (None) is read from the environment."""
    from mnemolog.settings import load_settings  # noqa: PLC0415 - as all of this module: only commands that run pay

    return load_settings(**{name: value for name, value in given.items() if value is not None})


def discovered_settings(**given: Any) -> "Settings":
    """The same with the servers of a running `up` where none are set. Raises `NotConnectedError`."""
    from mnemolog.client.discovery import with_discovered_servers  # noqa: PLC0415 - see above

    return with_discovered_servers(cli_settings(**given))


def call_client(call: Callable[["MemoryClient"], Awaitable[R]], *, tenant: str | None = None) -> R:
    """Put one question to a client of its own."""

    async def work() -> R:
        from mnemolog.client.client import MemoryClient  # noqa: PLC0415 - see above

        async with MemoryClient.from_settings(discovered_settings(tenant=tenant)) as client:
            return await call(client)

    return run_async(work())


def run_async(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a command's work to its end, with the drivers' own chatter left out: errors say it once."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    return asyncio.run(coroutine)
