"""The TypeScript client: types are made from the OpenAPI document and checked, its examples run under Node.

One is an assistant with the SDK of the Model Context Protocol for TypeScript, which shares no code with ours.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.harnesses.command_line import EXECUTABLE, CommandLine
from tests.support.paths import ROOT
from tests.support.programs import required_program

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
QUIET = ("--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error")


@pytest.fixture(scope="module")
def dist(shell: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client, built in a folder of its own."""
    required_program("node")
    npm = required_program("npm")
    root = tmp_path_factory.mktemp("clone")
    folder = root / "clients" / "typescript"
    shutil.copytree(ROOT / "clients" / "typescript", folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (root / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "openapi.json", root / "docs")
    try:
        shell.program(npm, "--prefix", folder, "ci", *QUIET)
    except AssertionError as error:
        pytest.skip(f"packages of npm could not be fetched: {str(error)[-300:]}")
    for script in ("types", "build"):
        shell.program(npm, "--prefix", folder, "run", script, "--silent")
    return folder / "dist"


def test_its_examples_run_under_node(shell: CommandLine, dist: Path) -> None:
    with shell.start("serve", "--without-keys", "--port", "0") as server:
        url = server.ready_message()["url"]
        shown, with_ai = (
            shell.program("node", dist / f"{name}.js", MNEMOLOG_URL=url) for name in ("example", "ai_example")
        )
        check_assistant(shell.program("node", dist / "mcp_example.js", f"{url}/mcp?user_id=node-http"))
        assert server.terminate() == 0
    assert shown.splitlines() == [
        "stored",
        "Alice lives in Bern.",
        "404 this fact is not known here: check its id, and whose it is",
    ]
    # What the model repeated is no evidence.
    assert with_ai.splitlines() == ["remembered", "Alice lives in Bern. 1"]


def test_stdout_has_the_protocol_alone_and_the_log_no_words_of_the_user(shell: CommandLine, dist: Path) -> None:
    command = ("node", dist / "mcp_example.js", EXECUTABLE, "mcp", "--user", "node-stdio")
    logged = ("bash", "-c", '"$@" 2> node-stdio.log', "bash")
    check_assistant(shell.program(*logged, *command, MNEMOLOG_LOG_LEVEL="debug"))
    assert "Porto" not in (shell.folder / "node-stdio.log").read_text()


def check_assistant(shown: str) -> None:
    tools, *answers = shown.splitlines()
    added, found, wrong = map(json.loads, answers)
    assert len(tools.split()) == 10
    assert [one["id"] for one in found["memories"]] == [one["id"] for one in added["added"]]
    assert "Porto" in found["memories"][0]["memory"]
    assert "query is missing" in wrong[0]["text"]
