"""Starts, stops and restarts of real servers over real folders; `tests/acceptance/test_up.py` kills their owner."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped] # as above

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.errors import ServerFailedError, WrongStateError

TOPIC = "greetings"


async def _publish(bootstrap: str, value: bytes) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, 1, 1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(TOPIC, value)


async def _published(bootstrap: str) -> bytes:
    async with AIOKafkaConsumer(TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        record = await consumer.getone()
    return bytes(record.value)


async def _execute(url: str, query: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(query.encode())
        return await cursor.fetchall() if cursor.description else []


def _processes_below(folder: Path) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cwd"]) if (process.info["cwd"] or "").startswith(str(folder))]


async def test_two_folders_side_by_side_one_with_a_long_and_odd_name(data_folder: Path) -> None:
    data_folder.parent.chmod(0o700)  # Postgres is another user when the tests run as root
    deep = data_folder / ("deep" * 25) / "with späce, comma"
    async with (
        await EmbeddedStack.start(data_folder / "left", kafka=False, test=True) as left,
        await EmbeddedStack.start(deep, test=True) as right,
    ):
        await _publish(right.bootstrap, b"hello")
        await _execute(left.postgres_url, "CREATE TABLE side AS SELECT 'left' AS name")
        await _execute(right.postgres_url, "CREATE TABLE side AS SELECT 'right' AS name")
        assert await _execute(left.postgres_url, "SELECT name FROM side") == [("left",)]
        assert left.postgres_url.split("@")[0] != right.postgres_url.split("@")[0]


async def test_ports_that_were_taken_between_the_look_at_them_and_the_start_are_replaced(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await EmbeddedStack.start(data_folder, test=True) as stack:
        await _publish(stack.bootstrap, b"hello")
        first = (stack.bootstrap, stack.postgres_url)
        assert len(_processes_below(data_folder)) > 2
    assert not _processes_below(data_folder)
    monkeypatch.setattr("mnemolog.embedded.data_folder.is_free", lambda _: True)
    with ExitStack() as strangers:
        for port in json.loads((data_folder / "state.json").read_text())["ports"].values():
            strangers.enter_context(socket.create_server(("127.0.0.1", port)))
        async with await EmbeddedStack.start(data_folder, test=True) as stack:
            assert stack.bootstrap != first[0]
            assert stack.postgres_url != first[1]
            assert await _published(stack.bootstrap) == b"hello"


async def test_a_postgres_that_ends_by_itself_or_finds_a_strangers_pid_or_cannot_start(data_folder: Path) -> None:
    async with await EmbeddedStack.start(data_folder, kafka=False, test=True) as stack:
        with pytest.raises(WrongStateError, match="Kafka is not running"):
            _ = stack.bootstrap
        os.kill(stack.pids["postgres"], signal.SIGINT)
        with pytest.raises(ServerFailedError, match="postgres ended by itself"):
            await stack.watch()
    await stack.stop()
    with pytest.raises(WrongStateError, match="Postgres is not running"):
        _ = stack.postgres_url
    data = data_folder / "postgres" / "data"
    # Of Postgres's user: it would not care about a process that it may not touch.
    with subprocess.Popen(["sleep", "60"], user=data.stat().st_uid) as other:
        (data / "postmaster.pid").write_text(f"{other.pid}\n")
        async with await EmbeddedStack.start(data_folder, kafka=False, test=True) as stack:
            assert await _execute(stack.postgres_url, "SELECT 1") == [(1,)]
        other.kill()
    (data / "PG_VERSION").write_text("9\n")
    with pytest.raises(ServerFailedError, match=r"before it was ready; the last lines of .*\n.*FATAL"):
        await EmbeddedStack.start(data_folder, test=True)
    assert not _processes_below(data_folder)
