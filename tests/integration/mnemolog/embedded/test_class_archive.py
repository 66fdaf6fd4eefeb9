"""The archive of Kafka's classes: made by the first start, used by the next ones, never in the way of a start."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from mnemolog.embedded import kafka
from mnemolog.embedded.jars import cache_folder, ensure_jars, read_lock
from mnemolog.embedded.kafka import KafkaPlan
from mnemolog.embedded.stack import EmbeddedStack
from tests.support.polling import eventually

pytestmark = [pytest.mark.timeout(400)]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with the jars and without an archive; one is made as soon as the machine can."""
    monkeypatch.setattr(kafka, "ARCHIVE_NICENESS", 0)
    jars = ensure_jars(cache_folder(tmp_path), jars=read_lock())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cache_folder(tmp_path) / "kafka"
    shutil.copytree(jars, folder / jars.name)
    return folder


async def kafka_uses_archive(data_folder: Path, *, wait_for_archive: bool = False) -> bool:
    """Start and stop Kafka; whether it had an archive in its memory."""
    async with await EmbeddedStack.start(data_folder, postgres=False, test=True) as stack:
        if wait_for_archive and stack._background:
            await stack._background
        files = [mapped.path for mapped in psutil.Process(stack.pids["kafka"]).memory_maps()]
    return any(file.endswith(".jsa") for file in files)


def plan_of(folder: Path, jars: Path) -> KafkaPlan:
    return KafkaPlan(folder=folder, jars=jars, port=20_001, controller_port=20_002, log=folder / "log")


def archive_of(cache: Path) -> Path:
    (jars,) = (folder for folder in cache.iterdir() if folder.is_dir())
    return plan_of(cache, jars).archive


def archives(cache: Path) -> list[Path]:
    return list(cache.glob("*.jsa"))


async def test_an_archive_is_made_used_and_after_damage_made_anew(data_folder: Path, cache: Path) -> None:
    archive = archive_of(cache)
    archive.with_name(f"{archive.stem.rpartition('-')[0]}-0123456789abcdef.jsa").touch()  # an older one
    assert not await kafka_uses_archive(data_folder, wait_for_archive=True)
    assert archives(cache) == [archive]
    assert await kafka_uses_archive(data_folder)
    with archive.open("r+b") as file:
        file.seek(archive.stat().st_size // 2)
        file.write(b"\xff" * 300)
    assert not await kafka_uses_archive(data_folder)
    assert archives(cache) == []  # removed, and made anew as above


async def test_an_archive_that_ends_java_does_not_end_the_start(
    data_folder: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = kafka.java_executable()
    (tmp_path / "jre" / "bin").mkdir(parents=True)
    shutil.copy(java.parent.parent / "release", tmp_path / "jre")
    crashing = tmp_path / "jre" / "bin" / "java"
    crashing.write_text(
        f'#!/bin/sh\ncase "$*" in *-Xshare:on*) kill -SEGV $$;; esac\nexec {java} "$@"\n', encoding="utf-8"
    )
    crashing.chmod(0o755)
    monkeypatch.setattr(kafka, "java_executable", lambda: crashing)
    archive = archive_of(cache)
    archive.touch()
    assert not await kafka_uses_archive(data_folder)
    assert not archive.exists() or archive.stat().st_size


async def test_an_archive_that_cannot_be_made_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path, tmp_path / "jars")
    plan.jars.mkdir()
    plan.temporary.mkdir()
    (plan.temporary / kafka.CLASS_LIST).write_bytes(b"java/lang/Object\n")
    failing = replace(kafka._command(plan, ()), arguments=["false"])
    monkeypatch.setattr(kafka, "_command", lambda *_, **__: failing)
    await kafka.make_class_archive(plan, tmp_path.joinpath)
    plan.archive.with_suffix(".lock").unlink()
    plan.archive.with_suffix(".lock").mkdir()
    await kafka.make_class_archive(plan, tmp_path.joinpath)
    assert archives(tmp_path) == []


async def test_a_stop_ends_the_making_of_an_archive(data_folder: Path, cache: Path) -> None:
    def java_processes() -> int:
        """Those that work in the data folder: Kafka, and the making of an archive."""
        return sum((one.info["cwd"] or "").startswith(str(data_folder)) for one in psutil.process_iter(["cwd"]))

    async with await EmbeddedStack.start(data_folder, postgres=False, test=True):
        await eventually(lambda: java_processes() == 2)
    assert archives(cache) == []
    assert java_processes() == 0
