from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mnemolog.embedded import jars
from mnemolog.embedded.jars import Jar, cache_folder, ensure_jars, read_lock
from mnemolog.errors import JarsUnavailableError

CONTENTS = {"one": b"first jar", "two": b"second jar"}
JARS = tuple(
    Jar(group="org.example", artifact=name, version="1.0", sha256=hashlib.sha256(content).hexdigest())
    for name, content in CONTENTS.items()
)


class CopyingFetch:
    """Fetches from memory, and counts."""

    def __init__(self, spoil: Callable[[int, bytes], bytes] = lambda _, content: content) -> None:
        self.fetched: list[str] = []
        self._spoil = spoil
        self._lock = threading.Lock()

    def __call__(self, jar: Jar, scratch: Path) -> Path:
        with self._lock:
            self.fetched.append(jar.artifact)
        path = scratch / "download"
        path.write_bytes(self._spoil(self.fetched.count(jar.artifact), CONTENTS[jar.artifact]))
        return path


def test_the_lock_names_kafka_and_every_sum() -> None:
    locked = read_lock()
    assert {"kafka_2.13", "kafka-clients", "slf4j-simple"} <= {jar.artifact for jar in locked}
    assert all(len(jar.sha256) == 64 for jar in locked)
    assert len({jar.file_name for jar in locked}) == len(locked)


def test_a_damaged_jar_is_fetched_again(tmp_path: Path) -> None:
    folder = ensure_jars(tmp_path, jars=JARS, fetch=CopyingFetch())
    (folder / "two-1.0.jar").write_bytes(b"second j")
    fetch = CopyingFetch()
    ensure_jars(tmp_path, jars=JARS, fetch=fetch)
    assert fetch.fetched == ["two"]
    assert (folder / "two-1.0.jar").read_bytes() == b"second jar"


def test_a_broken_download_is_tried_again(tmp_path: Path) -> None:
    fetch = CopyingFetch(spoil=lambda attempt, content: content if attempt > 1 else content[:-1])
    folder = ensure_jars(tmp_path, jars=JARS, fetch=fetch)
    assert sorted(fetch.fetched) == ["one", "one", "two", "two"]
    assert (folder / "one-1.0.jar").read_bytes() == b"first jar"


def test_a_jar_with_another_sum_never_gets_into_the_folder_and_what_the_network_said_is_told(tmp_path: Path) -> None:
    with pytest.raises(JarsUnavailableError, match=r"another sha256 .*check the network"):
        ensure_jars(tmp_path, jars=JARS, fetch=CopyingFetch(spoil=lambda _, content: content + b"!"))
    assert not list(tmp_path.rglob("*.jar"))

    def unreachable(jar: Jar, scratch: Path) -> Path:
        raise ConnectionError(f"no route to {jar.artifact} for {scratch.name}")

    with pytest.raises(JarsUnavailableError, match="no route to"):
        ensure_jars(tmp_path, jars=JARS, fetch=unreachable)


def test_what_a_killed_fetch_left_is_removed(tmp_path: Path) -> None:
    folder = ensure_jars(tmp_path, jars=JARS, fetch=CopyingFetch())
    (folder / "fetching-killed").mkdir()
    (folder / "fetching-killed" / "half").write_bytes(b"fir")
    (folder / "one-1.0.jar").unlink()
    ensure_jars(tmp_path, jars=JARS, fetch=CopyingFetch())
    assert {path.name for path in folder.iterdir()} == {"one-1.0.jar", "two-1.0.jar"}


def test_jars_are_fetched_once_however_many_ask_for_them(tmp_path: Path) -> None:
    fetch = CopyingFetch()
    steps: list[tuple[str, int, int]] = []

    def ensure() -> Path:
        return ensure_jars(tmp_path, jars=JARS, fetch=fetch, progress=lambda *step: steps.append(step))

    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(ensure) for _ in range(4)]
        (folder,) = {call.result() for call in calls}
    assert sorted(fetch.fetched) == ["one", "two"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "one-1.0.jar": b"first jar",
        "two-1.0.jar": b"second jar",
    }
    assert steps == [("fetching Kafka", 0, 2), ("fetching Kafka", 1, 2), ("fetching Kafka", 2, 2)]


def test_without_a_home_the_cache_is_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(not_a_folder / "cache"))
    assert cache_folder(tmp_path / "data") == tmp_path / "data" / "cache"


def test_a_fetch_during_the_installation_fails_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> Path:
        raise JarsUnavailableError("no network")

    monkeypatch.setattr(jars, "ensure_jars", away)
    with pytest.raises(SystemExit, match="Kafka could not be fetched: no network"):
        jars.main()
