"""A worker that starts while Kafka or Postgres is away waits for them with growing pauses, and says what for."""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Final

from mnemolog.admin import create_topics, require_tables
from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay
from mnemolog.errors import ServerUnavailableError
from mnemolog.settings import Settings

FIRST_DELAY_SECONDS: Final = 1.0
MAX_DELAY_SECONDS: Final = 30.0

log = get_logger(__name__)


async def wait_for_servers(
    settings: Settings,
    waiting_for: MutableMapping[str, str],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Return when Kafka has the topics and Postgres the tables; the topics are created where they are missing.

    `waiting_for` has the error of a server while it is away. Raises what waiting cannot change: `SettingsError` for
    an account that is refused or a database without tables, `StartRefused` for topics that differ.
    """
    checks: dict[str, Callable[[], Awaitable[object]]] = {
        "Kafka": partial(create_topics, settings),
        "Postgres": partial(require_tables, settings),
    }
    delay = growing_delay(FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, jitter=random.random)

    async def wait_for(server: str) -> None:
        failures = 0
        while True:
            try:
                await checks[server]()
            except ServerUnavailableError as error:
                unknown = await _unknown_hosts(settings.kafka or "") if server == "Kafka" else ""
                waiting_for[server] = f"{error}{unknown}"
                failures += 1
                log.warning("waiting_for_server", server=server, attempts=failures, error=waiting_for[server])
                await sleep(delay(failures))
            else:
                break
        if waiting_for.pop(server, None):
            log.info("server_is_back", server=server)

    async with asyncio.TaskGroup() as group:
        for server in checks:
            group.create_task(wait_for(server))


async def _unknown_hosts(bootstrap: str) -> str:
    """The unknown names among the addresses, in words: Kafka's client does not tell them."""
    unknown = []
    for address in bootstrap.split(","):
        name = address.rpartition(":")[0]
        try:
            await asyncio.get_running_loop().getaddrinfo(name.strip("[]"), None)
        except socket.gaierror:
            unknown.append(name)
    return f"; unknown name: {', '.join(unknown)}" if unknown else ""
