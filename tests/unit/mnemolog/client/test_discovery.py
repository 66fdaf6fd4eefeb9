"""A running `mnemolog up` is found through the file it leaves; what is set explicitly goes before it."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mnemolog.client.discovery import DISCOVERY_FILE, ServerAddresses, discovery_file, with_discovered_servers
from mnemolog.errors import NotConnectedError, SettingsError
from mnemolog.settings import Settings


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
