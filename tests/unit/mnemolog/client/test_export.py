"""Into which file an export goes, and what is left of one that failed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mnemolog import AsyncMemoryClient, QueryError, ServerUnavailableError
from mnemolog.client import queries as counts


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> AsyncMemoryClient:
    class Pool:
        @asynccontextmanager
        async def connection(self) -> AsyncIterator[None]:
            yield None

    made = AsyncMemoryClient()
    monkeypatch.setattr(made._connections, "read_pool", Pool)
    return made


def answer(monkeypatch: pytest.MonkeyPatch, *batches: list[bytes], failure: Exception | None = None) -> None:
    async def lines(*_: Any, **__: Any) -> AsyncIterator[list[bytes]]:
        for batch in batches:
            yield batch
        if failure:
            raise failure

    monkeypatch.setattr(counts, "exported_lines", lines)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_file_is_there_once_it_is_whole(
    client: AsyncMemoryClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = tmp_path / "facts.jsonl"
    answer(monkeypatch, [b"1\n", b"2\n"], failure=ServerUnavailableError("away"))
    with pytest.raises(ServerUnavailableError):
        await client.export(target, user_id="alice")
    assert not target.exists()
    answer(monkeypatch, [b"1\n", b"2\n"], [b"3\n"])
    assert await client.export(str(target), user_id="alice") == 3
    assert target.read_bytes() == b"1\n2\n3\n"
    assert names(tmp_path) == ["facts.jsonl"]


async def test_a_file_that_cannot_be_written_is_an_error_of_the_caller(
    client: AsyncMemoryClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer(monkeypatch, [b"1\n"])
    with pytest.raises(QueryError, match="cannot be written"):
        await client.export(tmp_path / "none" / "facts.jsonl", user_id="alice")
