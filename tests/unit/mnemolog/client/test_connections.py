"""Servers are found, connected to and measured."""

import asyncio
import gc
import json
import logging
import os
import stat
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prometheus_client import REGISTRY

from mnemolog import AsyncMemoryClient, MemoryClient, MnemologError, ServerUnavailableError, UnknownTurnError
from mnemolog.client.discovery import DISCOVERY_FILE, ServerAddresses, discovery_file, with_discovered_servers
from mnemolog.client.metrics import CATALOGUE, search_phase
from mnemolog.client.producer import RecordProducer
from mnemolog.common.logs import limit_noise
from mnemolog.errors import NotConnectedError, SettingsError
from mnemolog.projections.queries.audit import worker_problems
from mnemolog.settings import Settings
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.harnesses.offline_client import OfflineClient


@pytest.fixture(autouse=True)
def unset_server_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MNEMOLOG_KAFKA", "MNEMOLOG_POSTGRES", "MNEMOLOG_TOPIC_PREFIX"):
        monkeypatch.delenv(name, raising=False)


def connection(pid: int = os.getpid()) -> ServerAddresses:
    return ServerAddresses(kafka="k:1", postgres="postgresql://p", topic_prefix="x.", metrics_url=None, pid=pid)


def test_the_file_is_found_and_private_and_gone_afterwards(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with discovery_file(tmp_path, connection()):
        assert stat.S_IMODE((tmp_path / DISCOVERY_FILE).stat().st_mode) == 0o600
        found = with_discovered_servers(settings)
    assert (found.kafka, found.postgres, found.topic_prefix) == ("k:1", "postgresql://p", "x.")
    assert not (tmp_path / DISCOVERY_FILE).exists()


def test_what_is_set_goes_first_and_the_count_of_partitions_comes_with_the_servers(tmp_path: Path) -> None:
    counted = ServerAddresses.model_validate({**connection().model_dump(), "partitions": 4})
    with discovery_file(tmp_path, counted):
        assert with_discovered_servers(Settings(data_dir=tmp_path)).partitions == 4
        assert with_discovered_servers(Settings(data_dir=tmp_path, partitions=3)).partitions == 3
        found = with_discovered_servers(Settings(data_dir=tmp_path, kafka="mine:9092"))
        assert (found.kafka, found.postgres, found.partitions) == ("mine:9092", "postgresql://p", 12)
        path = tmp_path / DISCOVERY_FILE
        known = json.loads(path.read_text())
        path.write_text(json.dumps({key: value for key, value in known.items() if key != "partitions"}))
        assert with_discovered_servers(Settings(data_dir=tmp_path)).partitions == 12
    assert with_discovered_servers(Settings(data_dir=tmp_path, kafka="a:1", postgres="postgresql://b")).kafka == "a:1"


def test_where_nothing_runs_the_error_says_what_to_do(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    to_do = f"no stack runs over {tmp_path}: `mnemolog up --data {tmp_path}` runs one"
    with pytest.raises(NotConnectedError, match=to_do):
        with_discovered_servers(settings)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with discovery_file(tmp_path, connection(ended.pid)), pytest.raises(NotConnectedError, match="has ended"):
        with_discovered_servers(settings)
    (tmp_path / DISCOVERY_FILE).write_text("{")
    with pytest.raises(NotConnectedError, match="cannot be read"):
        with_discovered_servers(settings)


def test_an_invalid_address_is_named(tmp_path: Path) -> None:
    for given, words in (
        ({"kafka": "localhost", "postgres": "postgresql://b"}, "MNEMOLOG_KAFKA is 'localhost': write host:port"),
        (
            {"kafka": "a:1", "postgres": "sqlite://b"},
            r"MNEMOLOG_POSTGRES is not a valid database URL .*: write it like",
        ),
    ):
        with pytest.raises(SettingsError, match=words):
            with_discovered_servers(Settings.model_validate({"data_dir": tmp_path, **given}))


async def test_a_connecting_publisher_that_is_cancelled_leaves_nothing_open() -> None:
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0)
    connecting = asyncio.create_task(
        RecordProducer.connect(KafkaAddress(f"127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    )
    silent = await asyncio.wait_for(accepted.get(), 10)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    silent.close()
    await silent.wait_closed()
    server.close()
    await server.wait_closed()
    del connecting
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(one.message) for one in warned if "AIOKafkaProducer" in str(one.message)] == []


async def test_a_broker_that_says_nothing_is_not_waited_for_long() -> None:
    accepted: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    kafka = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with AsyncMemoryClient(kafka=kafka, publish_timeout=0.3) as memory:
        assert memory._connections._publish_timeout == 0.3
        with pytest.raises(ServerUnavailableError, match=f"Kafka at {kafka} cannot be reached"):
            await asyncio.wait_for(memory.add("I live in Bern.", user_id="alice"), 5)
    for writer in accepted:
        writer.close()
    silent.close()
    await silent.wait_closed()
    assert AsyncMemoryClient(kafka=kafka)._connections._publish_timeout == 10


async def test_what_the_broker_has_and_the_tables_not_yet_is_pending() -> None:
    class Late(OfflineClient):
        async def _query(self, query: Any, *_: Any, **__: Any) -> Any:
            if query is worker_problems:
                return []
            raise UnknownTurnError("default", "c1")

    memory = Late()
    found = await memory.status(await memory.add("I live in Bern.", user_id="alice"))
    assert (found.status, found.notes) == ("pending", ("the broker has it, and the tables not yet",))
    with pytest.raises(UnknownTurnError):
        await memory.status("c1")


AT = datetime(2026, 3, 1, tzinfo=UTC)
NOWHERE = Settings(postgres="postgresql://127.0.0.1:1/none", kafka="127.0.0.1:1")


def counted(operation: str, outcome: str) -> float:
    labels = {"operation": operation, "outcome": outcome}
    return REGISTRY.get_sample_value("mnemolog_client_query_seconds_count", labels) or 0


@pytest.mark.parametrize("operation", ["facts", "search", "diff", "entities.get", "admin.quality", "admin.short_ids"])
def test_a_call_that_reads_is_measured_once(operation: str) -> None:
    arguments: dict[str, list[Any]] = {
        "search": ["x"],
        "diff": [AT],
        "entities.get": ["Ana"],
        "admin.short_ids": [[UUID(int=1)]],
    }
    before = counted(operation, "error"), counted(operation, "ok")
    with MemoryClient(settings=NOWHERE) as memory, pytest.raises(MnemologError):
        attrgetter(operation)(memory.scope(user_id="alice"))(*arguments.get(operation, []))
    assert (counted(operation, "error"), counted(operation, "ok")) == (before[0] + 1, before[1])
    assert all(metric.name.startswith("mnemolog_client_") for metric in CATALOGUE)


def test_what_aiokafka_says_again_and_again_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="mnemolog")  # a command line in this process may have silenced it
    library = logging.getLogger("aiokafka")
    before, library.handlers[:] = library.handlers[:], []  # among them are those of pytest
    level = library.level
    library.setLevel(logging.NOTSET)
    try:
        limit_noise()
        limit_noise()
        for number in range(100):
            logging.getLogger("aiokafka.conn").error("Unable to connect, attempt %d", number)
        assert caplog.messages == ["kafka_trouble said='Unable to connect, attempt 0' lines_before=0"]
    finally:
        library.handlers[:] = before
        library.setLevel(level)
        library.propagate = True


def test_a_part_of_a_search_is_measured_also_where_it_fails() -> None:
    def seconds() -> float:
        return REGISTRY.get_sample_value("mnemolog_client_search_seconds_count", {"phase": "sql"}) or 0

    before = seconds()
    with search_phase("sql"):
        pass
    with pytest.raises(KeyError), search_phase("sql"):
        raise KeyError
    assert seconds() == before + 2
