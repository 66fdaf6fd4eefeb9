"""Clients inside the servers of applications: loaded before the fork, in several processes, ended by a signal."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.settings import StreamsSettings
from tests.support.paths import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
SECONDS = 30
WORKERS = 3
PROGRAM = """
import json, os
from mnemolog import AsyncMemoryClient, MemoryClient

memory, awaited = MemoryClient(), AsyncMemoryClient()
{before}

def answer(sent, facts):
    return json.dumps({{"pid": os.getpid(), "status": sent.status, "facts": len(facts)}}).encode()

def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [answer(memory.add("I live in Bern.", user_id="alice"), memory.facts(user_id="alice"))]

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        body = answer(await awaited.add("I live in Bern.", user_id="alice"), await awaited.facts(user_id="alice"))
        await send({{"type": "http.response.start", "status": 200, "headers": []}})
        await send({{"type": "http.response.body", "body": body}})
"""
USED = 'memory.add("I like tea.", user_id="alice"); memory.facts(user_id="alice")  # its connections are open'
SERVERS = {
    "gunicorn": (USED, ["-m", "gunicorn", "--preload", f"--workers={WORKERS}", "--bind=127.0.0.1:{port}", "app:wsgi"]),
    "uvicorn": ("", ["-m", "uvicorn", f"--workers={WORKERS}", "--port={port}", "--lifespan=off", "app:asgi"]),
}


@contextmanager
def running(folder: Path, settings: StreamsSettings, command: Sequence[str]) -> Iterator[int]:
    """The port of a server, which has to end in time and without a word when it is asked to."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "PYTHONPATH": f"{folder}:{ROOT}",
        "PYTHONWARNINGS": "default::ResourceWarning",
        "MNEMOLOG_KAFKA": settings.kafka or "",
        "MNEMOLOG_POSTGRES": settings.postgres or "",
        "MNEMOLOG_TOPIC_PREFIX": settings.topic_prefix,
    }
    run = [sys.executable, *(part.format(port=port) for part in command)]
    server = subprocess.Popen(run, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield port
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=SECONDS)
        assert server.returncode in (0, -signal.SIGTERM), said
        own = (f"laddr=('127.0.0.1', {port})>", "Enable tracemalloc")  # the server leaves its sockets open
        ours = [line for line in said.splitlines() if not any(part in line for part in own)]
        assert not re.search("Traceback|Warning|Unclosed|never awaited", "\n".join(ours)), said
    finally:
        server.kill()


def get(port: int) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        try:
            connection.request("GET", "/")
            answer = connection.getresponse()
            assert answer.status == 200
            return dict(json.loads(answer.read()))
        except ConnectionError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        finally:
            connection.close()


@pytest.mark.parametrize("name", SERVERS)
async def test_a_client_serves_in_every_process_and_ends_quietly(
    name: str, settings: StreamsSettings, tmp_path: Path
) -> None:
    before, command = SERVERS[name]
    (tmp_path / "app.py").write_text(PROGRAM.format(before=before))
    await ensure_topics(settings.kafka_address, partitions=settings.partitions, prefix=settings.topic_prefix)
    with running(tmp_path, settings, command) as port:
        get(port)
        with ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(get, [port] * 60))
    assert len({one.pop("pid") for one in answers}) > 1
    assert answers == [{"status": "pending", "facts": 0}] * 60
