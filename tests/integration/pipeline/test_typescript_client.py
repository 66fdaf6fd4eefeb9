"""The TypeScript client: types are made from the OpenAPI document and checked, its examples run under Node."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mnemolog.server.serve import serving
from mnemolog.settings import Settings
from mnemolog.streams.settings import StreamsSettings
from tests.support.paths import ROOT
from tests.support.programs import required_program

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]
SECONDS = 120
QUIET = ("--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error")


def run(folder: Path, *command: str, **variables: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The client, built in a folder of its own."""
    required_program("node")
    npm = required_program("npm")
    folder = tmp_path / "clients" / "typescript"
    shutil.copytree(ROOT / "clients" / "typescript", folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "openapi.json", tmp_path / "docs")
    try:
        run(folder, npm, "ci", *QUIET)
    except AssertionError as error:
        pytest.skip(f"packages of npm could not be fetched: {str(error)[-300:]}")
    run(folder, npm, "run", "types", "--silent")
    run(folder, npm, "run", "build", "--silent")
    return folder


async def test_its_examples_run_under_node(shared_worker: StreamsSettings, built: Path) -> None:
    settings = Settings.model_validate(shared_worker.model_dump() | {"http_port": 0, "http_rate": 0})
    async with serving(settings, without_keys=True) as url:
        shown, with_ai = [
            await asyncio.to_thread(run, built, "node", f"dist/{name}.js", MNEMOLOG_URL=url)
            for name in ("example", "ai_example")
        ]
    assert shown.splitlines() == [
        "stored",
        "Alice lives in Bern.",
        "404 this fact is not known here: check its id, and whose it is",
    ]
    # What the model repeated is no evidence.
    assert with_ai.splitlines() == ["remembered", "Alice lives in Bern. 1"]
