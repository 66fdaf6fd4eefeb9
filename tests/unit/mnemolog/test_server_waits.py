"""A worker that starts while a server is away says what it waits for, at each attempt, and that the server is back."""

import pytest
from structlog.testing import capture_logs

from mnemolog import server_waits
from mnemolog.errors import ServerUnavailableError
from mnemolog.server_waits import wait_for_servers
from mnemolog.settings import Settings


async def test_attempts_are_logged_until_the_server_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    away = [ServerUnavailableError("Postgres is away")] * 2
    paused: list[float] = []
    waiting_for: dict[str, str] = {}

    async def create_topics(_: Settings) -> None: ...

    async def require_tables(_: Settings) -> None:
        if away:
            raise away.pop()

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        assert waiting_for == {"Postgres": "Postgres is away"}

    monkeypatch.setattr(server_waits, "create_topics", create_topics)
    monkeypatch.setattr(server_waits, "require_tables", require_tables)
    with capture_logs() as logs:
        await wait_for_servers(Settings(), waiting_for, sleep=sleep)
    assert [(one["event"], one["server"], one.get("attempts")) for one in logs] == [
        ("waiting_for_server", "Postgres", 1),
        ("waiting_for_server", "Postgres", 2),
        ("server_is_back", "Postgres", None),
    ]
    assert (len(paused), waiting_for) == (2, {})
