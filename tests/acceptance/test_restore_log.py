"""A power cut under `mnemolog up`: its log is shorter than its tables, and `restore-log` gives it back what it lost."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.databases import server_folder
from tests.support.harnesses.command_line import CommandLine, turn_json
from tests.support.polling import eventually
from tests.support.servers.power_cut import cut_log

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(900)]
QUICK = {"SESSION_TIMEOUT": "3", "HEARTBEAT_INTERVAL": "0.5", "METRICS_PORT": "0"}
PARTITIONS = 4
USERS = ("ana", "ben", "cleo", "dan", "eva", "finn")
CITIES = ("Bern", "Rome", "Oslo")


@pytest.fixture
def shell() -> Iterator[CommandLine]:
    with server_folder() as folder:
        (folder / ".venv").symlink_to(sys.prefix)
        yield CommandLine(folder=folder, settings=QUICK)


def turns(cities: tuple[str, ...]) -> str:
    return "\n".join(
        turn_json(f"{user}-{city}", f"I live in {city}.", user=user, at=f"2026-03-0{day}T09:00:00+01:00")
        for day, city in enumerate(cities, start=1)
        for user in USERS
    )


async def test_after_a_power_cut_restore_log_starts_the_servers_of_up_and_the_log_is_whole_again(
    shell: CommandLine,
) -> None:
    with shell.start("up") as up:
        up.ready_message()
        assert shell.json("publish", "-", "--wait", stdin=turns(CITIES))["ends"] == {"facts": len(USERS) * len(CITIES)}
        servers = psutil.Process(up.process.pid).children(recursive=True)
        up.process.kill()
    await eventually(lambda: not any(server.is_running() for server in servers), timeout=120)
    cut(shell.folder / ".mnemolog")

    with shell.start("up") as up:
        assert up.process.wait(300) == 2, up.log.read_text()
    assert "mnemolog restore-log" in " ".join(up.log.read_text().split())

    shown = shell.run("restore-log", "--verify-only", "--json")
    assert (shown.code, len(shown.json["losses"])) == (1, PARTITIONS)
    restored = shell.json("restore-log")
    assert (restored["losses"], restored["appended"]) == (shown.json["losses"], True)

    with shell.start("up") as up:
        up.ready_message()
        assert shell.json("publish", "-", "--wait", stdin=turns((*CITIES, "Paris")))["ends"] == {"facts": 24}
        assert shell.json("rebuild", "--verify-only")["equal"]
        assert up.terminate() == 0


def cut(data: Path) -> None:
    """Half of the newest commits of each partition."""
    for partition in range(PARTITIONS):
        cut_log(data / "kafka", "memory_events", partition, share=0.5)
