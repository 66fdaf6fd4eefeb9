"""The chat of `examples/`, as a user runs it, with a server that speaks the OpenAI protocol."""

import subprocess
import sys

import psycopg
import pytest

from mnemolog.schemas.turn import Turn
from tests.support.harnesses.command_line import TIMEOUT_SECONDS, CommandLine
from tests.support.paths import ROOT
from tests.support.servers.canned_replies import ChatRequest
from tests.support.servers.openai_server import OpenAiServer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def repeat_system_message(request: ChatRequest) -> str:
    """An answer that tells everything that the model was told about the user."""
    known = [message["content"] for message in request.body["messages"] if message["role"] == "system"]
    return " ".join(["You said:", *known]).replace("\n", " ")


def chat(shell: CommandLine, server: OpenAiServer, *lines: str) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "examples/chat.py", "uma", "some-model"],
        cwd=shell.folder,
        env={**shell.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "PYTHONPATH": str(ROOT)},
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return done.stdout


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
