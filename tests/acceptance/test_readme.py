"""What the README shows works as it stands, in a folder where `mnemolog up` runs."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harnesses.command_line import TIMEOUT_SECONDS, CommandLine
from tests.support.paths import ROOT
from tests.support.polling import eventually
from tests.support.programs import required_program

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]
README = ROOT / "README.md"


@pytest.fixture
def home_shell(data_folder: Path) -> Iterator[CommandLine]:
    """A folder like a clone of the project: with `.venv`, and with `up` running in it."""
    data_folder.mkdir(mode=0o711)
    (data_folder / ".venv").symlink_to(sys.prefix)
    shell = CommandLine(folder=data_folder)
    with shell.start("up") as up:
        connection = up.ready_message()
        yield CommandLine(
            folder=data_folder, settings={"KAFKA": connection["kafka"], "POSTGRES": connection["postgres"]}
        )
        assert up.terminate() == 0, up.log.read_text()


def block(language: str, words: str) -> str:
    """The README's block of code that has these words."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)
    (found,) = (code for code in blocks if words in code)
    return str(found)


def ran(shell: CommandLine, *command: str, stdin: str) -> str:
    done = subprocess.run(
        command,
        input=stdin,
        cwd=shell.folder,
        env=shell.environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_readme_as_it_stands(home_shell: CommandLine) -> None:
    unset = CommandLine(folder=home_shell.folder)
    shown = ran(unset, "bash", "-euo", "pipefail", stdin=block("bash", "publish -"))
    assert "1 lines read, 1 acknowledged" in shown
    assert "Alice lives in Bern." in shown
    assert "Alice lives in Bern." in ran(unset, sys.executable, "-", stdin=block("python", "SyncMemoryClient"))
    required_program("kcat")
    required_program("psql")
    ran(home_shell, "bash", "-euo", "pipefail", stdin=block("bash", "kcat -P"))
    query = block("sql", "FROM facts")

    def told() -> str:
        return ran(home_shell, "psql", "--no-psqlrc", home_shell.settings["POSTGRES"], stdin=query)

    answer = await eventually(lambda: "Alice lives in Munich." in told() and told())
    assert "superseded" in str(answer)
    assert "fact_replaced" in str(answer)
