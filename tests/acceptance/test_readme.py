"""The README's own snippets, run as a reader would run them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.commands import SECONDS, Shell

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def snippets(heading: str, language: str) -> list[str]:
    """The code blocks of one section, in order."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def run(shell: Shell, *command: str) -> str:
    """Run as in a second terminal of a reader whose servers are given."""
    environ = os.environ | {f"MNEMOLOG_{name}": value for name, value in shell.settings.items()}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_installed(script: str) -> str:
    return script.replace(".venv/bin/mnemolog", f"{sys.executable} -m mnemolog")


def test_publish_search_and_facts(shell: Shell) -> None:
    (script,) = (each for each in snippets("Use it", "bash") if "publish -" in each)
    output = run(shell, "bash", "-euc", as_installed(script))
    assert "lives in Bern" in output
    assert "allergic to nuts" in output


def test_the_python_client(shell: Shell) -> None:
    (script,) = snippets("Use it", "python")
    output = run(shell, sys.executable, "-c", script)
    assert "Alice lives in Bern." in output


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (Debian: apt-get install kcat)")
def test_a_foreign_kafka_client_and_sql(shell: Shell) -> None:
    (script,) = snippets("Without a line of ours", "bash")
    run(
        shell,
        "bash",
        "-euc",
        script.replace("conversation_turns", f"{shell.settings['TOPIC_PREFIX']}conversation_turns"),
    )
    run(
        shell,
        sys.executable,
        "-c",
        "from mnemolog import SyncMemoryClient as M\nwith M() as m: m.wait('t2', timeout=60)",
    )
    (queries,) = snippets("Without a line of ours", "sql")
    with psycopg.connect(shell.settings["POSTGRES"]) as connection:
        facts, events, turns = (connection.execute(query.encode()).fetchall() for query in queries.split(";")[:3])
    assert ("Alice lives in Munich.", "active") in [row[:2] for row in facts]
    assert events
    assert ("t2", "facts", None) in turns
