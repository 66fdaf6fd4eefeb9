"""A dry run whose model's server is away or slow says what it waits for, and its error names the last failure."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.errors import WaitTimeoutError
from mnemolog.settings import Settings
from mnemolog.streams.runtime import dry_run
from tests.support.servers.openai_server import OpenAiServer

pytestmark = pytest.mark.postgres

MOVED = "I moved to Ulm."


@pytest.fixture
def closed_address() -> Iterator[str]:
    """An address that refuses connections: taken, and not listened at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def client_of(database: str, base_url: str, **settings: Any) -> AsyncMemoryClient:
    return AsyncMemoryClient(settings=Settings(postgres=database, provider="openai", base_url=base_url, **settings))


async def first_report(client: AsyncMemoryClient) -> str:
    """What a dry run says first that it waits for; it is given up then."""
    said: asyncio.Queue[str] = asyncio.Queue()
    running = asyncio.create_task(client.dry_run(MOVED, user_id="alice", on_wait=said.put_nowait))
    try:
        return await asyncio.wait_for(said.get(), 60)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_the_error_names_the_server_and_why_it_fails(database: str, closed_address: str) -> None:
    async with client_of(database, closed_address) as client:
        with pytest.raises(WaitTimeoutError) as caught:
            await client.dry_run(MOVED, user_id="alice", timeout=2)
    words = str(caught.value)
    assert f"did not finish within 2 s: it waits for the model's server ({closed_address})" in words
    assert "no server answers, or its answers break off: start it, or correct MNEMOLOG_BASE_URL (connection: " in words


async def test_a_server_that_has_not_answered_yet_is_named(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "REPORT_SECONDS", 0.05)
    with OpenAiServer(lambda _: "", latency=60) as server:
        async with client_of(database, server.base_url) as client:
            assert await first_report(client) == f"a reply of the model's server ({server.base_url})"


async def test_what_the_callback_raises_is_raised(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise LookupError("no screen")

    monkeypatch.setattr(dry_run, "REPORT_SECONDS", 0.05)
    with OpenAiServer(lambda _: '{"facts": []}', latency=1) as server:
        async with client_of(database, server.base_url) as client:
            with pytest.raises(LookupError, match="no screen"):
                await client.dry_run(MOVED, user_id="alice", on_wait=fail)
