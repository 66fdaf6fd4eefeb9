"""What applications import works where there is no POSIX: simulated, for the project's own modules."""

import asyncio
import subprocess
import sys

import pytest

from mnemolog.client import base, discovery

PROGRAM = """
import importlib, os, sys
# Packages of others choose their own way at import: they are loaded first, ours under another name of the platform.
import aiokafka, asyncio, multiprocessing, orjson, pgvector.psycopg, prometheus_client, psycopg_pool, pydantic_settings
import rich.console, rich.live, rich.panel, rich.progress, rich.prompt, rich.table, rich.tree, structlog
import typer, typer.rich_utils, uuid_utils
sys.platform = "win32"
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "uvloop"):
    sys.modules[name] = None
for name in ("fork", "getuid", "geteuid", "getpgid", "killpg", "setsid", "uname", "nice"):
    delattr(os, name)
import mnemolog
for name in mnemolog.__all__:
    getattr(mnemolog, name)
importlib.import_module("mnemolog.cli.app")
with mnemolog.MemoryClient(settings=mnemolog.Settings()) as memory:
    print(type(memory._thread._loop).__name__)
"""


def test_every_public_name_and_the_command_line_can_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "_UnixSelectorEventLoop"  # the selector loop of this platform


@pytest.mark.parametrize("platform", ["win32", "linux", "darwin"])
def test_the_blocking_client_has_a_loop_that_psycopg_takes(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proactor = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: proactor)
    monkeypatch.setattr("mnemolog.client.base.sys.platform", platform)
    loop = base.new_event_loop()
    assert (loop is proactor) == (platform != "win32")
    assert isinstance(loop, asyncio.SelectorEventLoop)
    loop.close()
    proactor.close()


def test_a_process_is_not_asked_by_a_signal_where_that_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("mnemolog.client.discovery.sys.platform", "win32")
    monkeypatch.setattr("mnemolog.client.discovery.os.kill", never)
    assert discovery._is_running(4711)
