"""Clients inside servers, workers and notebooks: loaded before the fork, in several processes, ended by a signal."""

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
import pytest_asyncio

from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.settings import StreamsSettings
from tests.support.paths import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
SECONDS = 60
WORKERS = 3
EXPECTED = {"status": "pending", "facts": 0}
PROGRAM = """
import json, os
from mnemolog import AsyncMemoryClient, MemoryClient

memory, awaited = MemoryClient(), AsyncMemoryClient()
{before}

def answer(sent, facts):
    return {{"pid": os.getpid(), "status": sent.status, "facts": len(facts)}}

def asked():
    return answer(memory.add("I live in Bern.", user_id="alice"), memory.facts(user_id="alice"))

def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(asked()).encode()]

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        body = answer(await awaited.add("I live in Bern.", user_id="alice"), await awaited.facts(user_id="alice"))
        await send({{"type": "http.response.start", "status": 200, "headers": []}})
        await send({{"type": "http.response.body", "body": json.dumps(body).encode()}})
"""
USED = 'memory.add("I like tea.", user_id="alice"); memory.facts(user_id="alice")  # its connections are open'
CELERY = """
from celery import Celery
app = Celery("app", broker="filesystem://", backend="file://{folder}")
app.conf.broker_transport_options = {{name: "{folder}" for name in ("data_folder_in", "data_folder_out")}}
app.conf.broker_transport_options["store_processed"] = False
app.conf.worker_hijack_root_logger = False
ask = app.task(asked, name="ask")
"""
CALLER = """
import json
import app
sent = [app.ask.delay() for _ in range(60)]
print(json.dumps([one.get(timeout=50) for one in sent]))
"""
NOTEBOOK = (
    "from mnemolog import AsyncMemoryClient, MemoryClient\nfrom mnemolog.testing import *",
    'memory = MemoryClient()\nprint(len(memory.facts(user_id="alice")), memory.add("Hi.", user_id="alice").status)',
    "awaited = AsyncMemoryClient()",
    'print(len(await awaited.facts(user_id="alice")), (await awaited.add("Hi.", user_id="alice")).status)',
    'import asyncio\nprint(len(await asyncio.to_thread(memory.facts, user_id="alice")))',
    'with InMemoryClient() as own:\n    print(own.add("I live in Bern.", user_id="a", wait=True).added[0].text)',
    'async with AsyncInMemoryClient() as own:\n    print((await own.add("I like tea.", user_id="a")).status)',
)
PRINTED = ["", "0 pending\n", "", "0 pending\n", "0\n", "The user lives in Bern.\n", "pending\n"]
RUN_NOTEBOOK = """
import json, sys
import nbformat
from nbclient import NotebookClient
cells = [nbformat.v4.new_code_cell(source) for source in json.load(sys.stdin)]
NotebookClient(notebook := nbformat.v4.new_notebook(cells=cells), timeout=50, kernel_name="python3").execute()
outputs = [one for cell in notebook.cells for one in cell.outputs]
print(json.dumps(["".join(one.get("text", str(one)) for one in cell.outputs) for cell in notebook.cells]))
"""


class Application:
    """A folder with a program, and the environment in which it finds the servers."""

    def __init__(self, folder: Path, settings: StreamsSettings) -> None:
        self.folder = folder
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": f"{folder}:{ROOT}",
            "PYTHONWARNINGS": "default::ResourceWarning",
            "MNEMOLOG_KAFKA": settings.kafka or "",
            "MNEMOLOG_POSTGRES": settings.postgres or "",
            "MNEMOLOG_TOPIC_PREFIX": settings.topic_prefix,
        }

    @contextmanager
    def running(self, *command: str, allowed: Sequence[str] = ()) -> Iterator[None]:
        """A process, which has to end in time and without a word when it is asked to."""
        run = [sys.executable, *command]
        server = subprocess.Popen(run, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True)
        try:
            yield
            server.send_signal(signal.SIGTERM)
            _, said = server.communicate(timeout=SECONDS)
            assert server.returncode in (0, -signal.SIGTERM), said
            ours = [line for line in said.splitlines() if not any(part in line for part in allowed)]
            assert not re.search("Traceback|Warning|Unclosed|never awaited", "\n".join(ours)), said
        finally:
            server.kill()

    def printed(self, program: str, said: str = "") -> Any:
        run = [sys.executable, "-W", "ignore", "-c", program]
        done = subprocess.run(
            run, cwd=self.folder, env=self.environment, input=said, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout)


@pytest_asyncio.fixture
async def application(settings: StreamsSettings, tmp_path: Path) -> Application:
    await ensure_topics(settings.kafka_address, partitions=settings.partitions, prefix=settings.topic_prefix)
    return Application(tmp_path, settings)


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


def check_answers(answers: list[dict[str, Any]]) -> None:
    assert len({one.pop("pid") for one in answers}) > 1
    assert answers == [EXPECTED] * len(answers)


SERVERS = {
    "gunicorn": (USED, ["-m", "gunicorn", "--preload", f"--workers={WORKERS}", "--bind=127.0.0.1:{port}", "app:wsgi"]),
    "uvicorn": ("", ["-m", "uvicorn", f"--workers={WORKERS}", "--port={port}", "--lifespan=off", "app:asgi"]),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_client_serves_in_every_process_and_ends_quietly(name: str, application: Application) -> None:
    before, command = SERVERS[name]
    (application.folder / "app.py").write_text(PROGRAM.format(before=before))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    own = (f"laddr=('127.0.0.1', {port})>", "Enable tracemalloc")  # the server leaves its sockets open
    with application.running(*(part.format(port=port) for part in command), allowed=own):
        get(port)
        with ThreadPoolExecutor(12) as threads:
            check_answers(list(threads.map(get, [port] * 60)))


def test_a_client_that_was_used_before_celery_forks_works_in_its_processes(application: Application) -> None:
    program = PROGRAM.format(before=USED) + CELERY.format(folder=application.folder / "queue")
    (application.folder / "queue").mkdir()
    (application.folder / "app.py").write_text(program)
    options = ("--pool=prefork", f"--concurrency={WORKERS}", "--loglevel=warning", "--without-mingle")
    with application.running("-m", "celery", "-A", "app", "worker", *options, allowed=("SecurityWarning",)):
        check_answers(application.printed(CALLER))


def test_both_clients_work_in_a_notebook(application: Application) -> None:
    """Its cells run in an event loop that runs already."""
    assert application.printed(RUN_NOTEBOOK, json.dumps(NOTEBOOK)) == PRINTED
