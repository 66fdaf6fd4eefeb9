"""The programs of `examples/` beside a running stack; `make adapters` runs those of a framework."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import httpx
import psycopg
import pytest

from mnemolog.embedded.jars import cache_folder, ensure_jars, read_lock
from mnemolog.schemas.turn import Turn
from tests.support.harnesses.command_line import CommandLine
from tests.support.paths import ROOT
from tests.support.programs import required_program
from tests.support.servers.canned_replies import ChatRequest
from tests.support.servers.openai_server import OpenAiServer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
EXAMPLES = ROOT / "examples"
PYTHONPATH = f"{ROOT}{os.pathsep}{EXAMPLES}"


def repeat_system_message(request: ChatRequest) -> str:
    """An answer that tells everything that the model was told about the user."""
    known = [message["content"] for message in request.body["messages"] if message["role"] == "system"]
    return " ".join(["You said:", *known]).replace("\n", " ")


def environ_of(shell: CommandLine, **variables: str) -> dict[str, str]:
    return {**shell.environ, "PYTHONPATH": PYTHONPATH, **variables}


def run(shell: CommandLine, *command: str | Path, stdin: str = "", **variables: str) -> str:
    return shell.program(*command, stdin=stdin, PYTHONPATH=PYTHONPATH, **variables)


def chat(shell: CommandLine, server: OpenAiServer, *lines: str) -> str:
    model = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
    return run(shell, sys.executable, EXAMPLES / "chat.py", "uma", "some-model", stdin="\n".join(lines), **model)


def test_the_chat_remembers_and_what_it_repeats_is_no_evidence(shell: CommandLine) -> None:
    with OpenAiServer(repeat_system_message) as server:
        server.keep_bodies = True
        assert chat(shell, server, "I live in Bern.") == "You said:\n"
        assert [message["role"] for message in server.bodies[0]["messages"]] == ["user"]
        known = wait_for_facts(shell)
        assert "lives in Bern" in chat(shell, server, "Where do I live?", "Where in Bern do I live?")
        system, asked = server.bodies[1]["messages"]
        assert (system["role"], asked) == ("system", {"role": "user", "content": "Where do I live?"})
        assert "lives in Bern" in system["content"]
        shell.run("add", "Goodbye.", "--user", "uma", "--wait")  # behind the turns of the chat, in their order
        assert shell.json("facts", "--user", "uma") == known
    assert [len(turn.recalled) for turn in turns_of_the_chat(shell)] == [0, 2, 2]


def turns_of_the_chat(shell: CommandLine) -> list[Turn]:
    """Those that have an answer, in their order."""
    query = "SELECT body FROM mnemolog_journal.turn_journal WHERE user_id = 'uma' ORDER BY log_offset"
    with psycopg.connect(shell.settings["POSTGRES"]) as connection:
        turns = [Turn.model_validate(body) for (body,) in connection.execute(query).fetchall()]
    return [turn for turn in turns if len(turn.messages) > 1]


def wait_for_facts(shell: CommandLine) -> object:
    shell.run("add", "Hello.", "--user", "uma", "--wait")  # behind the turn of the chat
    known = shell.json("facts", "--user", "uma")
    assert len(known) == 1
    return known


async def test_the_chat_over_http_remembers_each_user(shell: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in shell.settings.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    with OpenAiServer(repeat_system_message) as server:
        for name, value in {
            "MODEL": "some-model",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": server.base_url,
        }.items():
            monkeypatch.setenv(name, value)
        app = runpy.run_path(str(EXAMPLES / "fastapi_chat.py"))["app"]
        transport = httpx.ASGITransport(app)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, timeout=60) as browser:

            async def say(user_id: str, text: str) -> str:
                reply = await browser.post(f"http://127.0.0.1/users/{user_id}/chat", json={"text": text})
                return str(reply.json())

            assert await say("http-1", "I live in Bern.") == "You said:"
            await app.state.memory.add("Hello.", user_id="http-1", wait=True)  # behind the turn of the chat
            assert "lives in Bern" in await say("http-1", "Where do I live?")
            assert await say("http-2", "Where do I live?") == "You said:"


def test_a_producer_in_java(shell: CommandLine) -> None:
    required_program("javac")  # a runtime alone does not run sources
    jars = ensure_jars(cache_folder(ROOT / ".mnemolog"), jars=read_lock())
    command = ("java", "-cp", f"{jars}/*", EXAMPLES / "Producer.java", "juno", "I live in Bern.")
    turn_id = run(shell, *command).strip()
    end = shell.json("status", turn_id, "--user", "juno", "--wait", "30")
    assert [fact["text"] for fact in end["added"]] == ["The user lives in Bern."]


TASKS = """
from celery_tasks import app, remember

folder = {"data_folder_in": "queue", "data_folder_out": "queue", "processed_folder": "queue"}
app.conf.update(broker_url="filesystem://", broker_transport_options=folder)
"""


def test_celery_publishes_a_message_once(shell: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "tasks.py").write_text(TASKS)
    here = CommandLine(folder=tmp_path, settings=shell.settings)
    said = "import tasks\nfor _ in range(2): tasks.remember.delay('celia', 'I live in Bern.', 'message-1')"
    run(here, sys.executable, "-c", said)
    worker = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--concurrency", "2", "--loglevel", "info"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(worker, cwd=tmp_path, env=environ_of(here), stdout=log, stderr=log)
        try:
            end = shell.json("status", "message-1", "--user", "celia", "--wait", "60")
        finally:
            process.terminate()
            process.wait(30)
    assert (end["status"], [fact["value"] for fact in shell.json("facts", "--user", "celia")]) == ("stored", ["Bern"])
    assert "Traceback" not in (tmp_path / "log").read_text()
