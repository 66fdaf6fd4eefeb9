"""Without any code of this project: kcat publishes turns and commands as documented JSON, and reads the log.

`test_documentation.py` has kcat publish a turn with a key and psql read the facts.
"""

import subprocess

import psycopg
import pytest

from tests.support.harnesses.command_line import TIMEOUT_SECONDS, CommandLine
from tests.support.polling import eventually
from tests.support.programs import required_program

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

TURN = (
    '{"turn_id": "kcat-1", "scope": {"user_id": "amalia"}, "occurred_at": "2026-03-02T09:00:00+01:00",'
    ' "messages": [{"role": "user", "name": "Amalia", "content": "I live in Lisbon."}]}'
)
COMMAND = (
    '{"kind": "command", "command_id": "kcat-order-1", "scope": {"user_id": "amalia"},'
    ' "issued_at": "2026-03-03T09:00:00+01:00",'
    ' "order": {"kind": "delete_all", "key": "home_city"}}'
)


def kcat(shell: CommandLine, topic: str, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [
            *(required_program("kcat"), "-b", shell.settings["KAFKA"]),
            *("-t", f"{shell.settings['TOPIC_PREFIX']}{topic}", *arguments),
        ],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return done.stdout


async def test_a_turn_without_a_key_reaches_its_users_partition(shell: CommandLine) -> None:
    unkeyed = TURN.replace("kcat-1", "kcat-2").replace("amalia", "albert").replace("Amalia", "Albert")
    kcat(shell, "conversation_turns", "-P", stdin=unkeyed)

    def rows() -> list[tuple[object, ...]]:
        with psycopg.connect(shell.settings["POSTGRES"]) as connection:
            return connection.execute("SELECT text FROM facts WHERE user_id = 'albert'").fetchall()

    assert await eventually(rows) == [("Albert lives in Lisbon.",)]


def test_kcat_publishes_a_command_and_reads_the_log(shell: CommandLine) -> None:
    shell.json("publish", "-", "--wait", stdin=TURN)
    keyed = ("-P", "-X", "partitioner=murmur2_random", "-k", "default/amalia")
    kcat(shell, "conversation_turns", *keyed, stdin=COMMAND)
    assert len(shell.json("status", "kcat-order-1", "--wait", "30")["deleted"]) == 1
    assert shell.json("facts", "--user", "amalia") == []
    assert '"kcat-1"' in kcat(shell, "memory_events", "-C", "-e", "-q")
