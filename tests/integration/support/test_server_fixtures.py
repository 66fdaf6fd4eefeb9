"""The fixtures that the other tests use."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

import psycopg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped] # as above
from psycopg.conninfo import make_conninfo

from tests.support import databases
from tests.support.databases import server_folder


async def test_kafka_takes_and_gives_a_record(bootstrap: str, topic_suffix: str) -> None:
    topic = f"greetings-{topic_suffix}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type="zstd") as producer:
        await producer.send_and_wait(topic, b"hello")
    async with AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        assert (await consumer.getone()).value == b"hello"


async def test_an_empty_database_has_pgvector_and_utf8(empty_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database) as connection:
        cursor = await connection.execute(
            "SELECT '[1,2]'::vector <-> '[1,4]', current_setting('server_encoding'), lower('Ä')"
        )
        assert await cursor.fetchone() == (2.0, "UTF8", "ä")


async def test_postgres_asks_for_the_password(postgres_admin_url: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await psycopg.AsyncConnection.connect(make_conninfo(postgres_admin_url, password=uuid.uuid4().hex))


@pytest.mark.parametrize("attempt", [1, 2])
async def test_every_test_has_a_migrated_database_of_its_own(database: str, attempt: int) -> None:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        cursor = await connection.execute("SELECT to_regclass('facts') IS NOT NULL, to_regclass('mine') IS NULL")
        assert await cursor.fetchone() == (True, True), attempt
        await connection.execute("CREATE TABLE mine ()")


@pytest.mark.parametrize(("needed", "exists", "is_used"), [(0, True, True), (2**60, True, False), (0, False, False)])
def test_servers_keep_their_data_in_memory_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needed: int, exists: bool, is_used: bool
) -> None:
    memory = tmp_path / "memory"
    if exists:
        memory.mkdir()
    monkeypatch.setattr(databases, "MEMORY_BYTES", needed)
    with server_folder(memory) as folder:
        assert folder.parent == (memory if is_used else Path(tempfile.gettempdir()))
    assert not folder.exists()


def test_folders_that_a_killed_run_has_left_in_memory_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "MEMORY_BYTES", 0)
    left, others = tmp_path / "mnemolog-tests-killed", tmp_path / "somebody-elses"
    for folder in (left, others):
        folder.mkdir()
        (folder / ".lock").touch()
    with server_folder(tmp_path) as mine, server_folder(tmp_path) as second:
        assert {*tmp_path.iterdir()} == {mine, second, others}
    assert {*tmp_path.iterdir()} == {others}
