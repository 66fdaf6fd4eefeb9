"""Without any code of this project: kcat publishes turns and commands as documented JSON, psql reads the facts."""

import subprocess
from collections.abc import Callable

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
    '{"kind": "command", "command_id": "kcat-order-1", "scope": {"user_id": "anton"},'
    ' "issued_at": "2026-03-03T09:00:00+01:00",'
    ' "order": {"kind": "delete_all", "key": "home_city"}}'
)
QUERY = "SELECT text, status FROM facts WHERE user_id = 'amalia'"


async def test_kcat_publishes_and_psql_reads(shell: CommandLine) -> None:
    topic = f"{shell.settings['TOPIC_PREFIX']}conversation_turns"
    subprocess.run(
        [required_program("kcat"), "-P", "-b", shell.settings["KAFKA"], "-t", topic, "-k", "default/amalia"],
        input=TURN.encode(),
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    await eventually(rows_of(shell, QUERY))
    read = subprocess.run(
        [
            required_program("psql"),
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            shell.settings["POSTGRES"],
            "-c",
            QUERY,
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert read.stdout == "Amalia lives in Lisbon.|active\n"


async def test_a_turn_without_a_key_reaches_its_users_partition(shell: CommandLine) -> None:
    topic = f"{shell.settings['TOPIC_PREFIX']}conversation_turns"
    unkeyed = TURN.replace("kcat-1", "kcat-2").replace("amalia", "albert").replace("Amalia", "Albert")
    subprocess.run(
        [required_program("kcat"), "-P", "-b", shell.settings["KAFKA"], "-t", topic],
        input=unkeyed.encode(),
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    found = await eventually(rows_of(shell, "SELECT text FROM facts WHERE user_id = 'albert'"))
    assert found == [("Albert lives in Lisbon.",)]


def test_kcat_publishes_a_command(shell: CommandLine) -> None:
    turn = TURN.replace("kcat-1", "kcat-4").replace("amalia", "anton").replace("Amalia", "Anton")
    shell.json("publish", "-", "--wait", stdin=turn)
    subprocess.run(
        [
            required_program("kcat"),
            *("-P", "-X", "partitioner=murmur2_random", "-k", "default/anton"),
            *("-b", shell.settings["KAFKA"], "-t", f"{shell.settings['TOPIC_PREFIX']}conversation_turns"),
        ],
        input=COMMAND.encode(),
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert shell.json("status", "kcat-order-1", "--wait", "30")["facts_deleted"] == 1
    assert shell.json("facts", "--user", "anton") == []


def test_kcat_reads_the_log(shell: CommandLine) -> None:
    topic = f"{shell.settings['TOPIC_PREFIX']}memory_events"
    shell.json("publish", "-", "--wait", stdin=TURN.replace("kcat-1", "kcat-3"))
    read = subprocess.run(
        [required_program("kcat"), "-C", "-e", "-q", "-b", shell.settings["KAFKA"], "-t", topic],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert '"kcat-3"' in read.stdout


def rows_of(shell: CommandLine, query: str) -> Callable[[], list[tuple[object, ...]]]:
    def rows() -> list[tuple[object, ...]]:
        with psycopg.connect(shell.settings["POSTGRES"]) as connection:
            return connection.execute(query).fetchall()

    return rows
