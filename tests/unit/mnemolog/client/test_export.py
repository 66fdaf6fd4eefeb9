"""Into which file an export goes, and what is left of one that failed."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mnemolog import AsyncMemoryClient, QueryError, ServerUnavailableError
from mnemolog.client import queries


async def test_a_file_is_there_once_it_is_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @asynccontextmanager
    async def connection(_: object) -> AsyncIterator[None]:
        yield None

    def answer(*batches: list[bytes], failure: Exception | None = None) -> None:
        async def lines(*_: Any, **__: Any) -> AsyncIterator[list[bytes]]:
            for batch in batches:
                yield batch
            if failure:
                raise failure

        monkeypatch.setattr(queries, "exported_lines", lines)

    client, target = AsyncMemoryClient(), tmp_path / "facts.jsonl"
    monkeypatch.setattr(client._connections, "read_pool", type("Pool", (), {"connection": connection}))
    answer([b"1\n", b"2\n"], failure=ServerUnavailableError("away"))
    with pytest.raises(ServerUnavailableError):
        await client.export(target, user_id="alice")
    assert not target.exists()
    answer([b"1\n", b"2\n"], [b"3\n"])
    assert await client.export(str(target), user_id="alice") == 3
    assert target.read_bytes() == b"1\n2\n3\n"
    assert os.listdir(tmp_path) == ["facts.jsonl"]  # noqa: PTH208 - nothing else runs in this loop
    with pytest.raises(QueryError, match="cannot be written"):
        await client.export(tmp_path / "none" / "facts.jsonl", user_id="alice")
