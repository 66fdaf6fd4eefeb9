"""The project's promises about itself: versions agree, exceptions have reasons, pages name what exists."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import mnemolog.client.metrics
import mnemolog.projections.metrics
import mnemolog.server.metrics
import mnemolog.streams.metrics
from scripts import generate
from tests.support.paths import ROOT

KNOWN_LABELS = {
    "by", "direction", "error", "event", "figures", "found_by", "how", "model", "operation", "outcome", "partition",
    "phase", "pool", "possible_twin", "prompt_version", "purpose", "rank", "reason", "result", "route", "settlement",
    "stage", "status", "step", "topic", "type",
}  # fmt: skip
# Written so that this file does not hold what it looks for.
REGISTRIES = re.compile(r"python[h]osted\.org|py[p]i\.org|maven\.(org|apache)|npm[j]s\.|deb\.debian\.")
SILENCED = re.compile(r"# (noqa: [A-Z0-9, ]*[A-Z0-9]|type: ignore\[[a-z, -]+\])(.*)$")


@cache
def tracked(*patterns: str) -> tuple[Path, ...]:
    """Files of the repository; in an unpacked source archive, where git does not know, all of them."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    except (subprocess.CalledProcessError, FileNotFoundError):
        listed = [str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.rglob(pattern)]
    return tuple(ROOT / name for name in listed if (ROOT / name).is_file() and not name.startswith(".venv"))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def project() -> dict[str, Any]:
    return tomllib.loads(text_of(ROOT / "pyproject.toml"))


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    released = re.findall(
        r"^## \[(.+?)\] - (?:Unreleased|\d{4}-\d\d-\d\d)$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE
    )
    assert released[0] == project()["project"]["version"]


def test_every_wish_of_the_makefile_is_phony_and_explained() -> None:
    makefile = text_of(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == targets
    assert targets >= {"help", "setup", "demo", "up", "test", "lint", "bench", "chaos", "generate", "clean"}
    assert set(re.findall(r"(?:^|`)make ([a-z]+)\b", text_of(ROOT / ".ci/run"), re.MULTILINE)) <= targets


def test_no_tracked_file_names_a_registry() -> None:
    assert [name_of(path) for path in tracked() if REGISTRIES.search(text_of(path))] == []


def test_every_declared_package_is_locked_with_its_sums_and_no_address() -> None:
    lock = text_of(ROOT / "requirements-dev.lock")
    declared = project()["project"]
    wanted = [
        *declared["dependencies"],
        *(line for extra in declared["optional-dependencies"].values() for line in extra),
    ]
    names = {re.split(r"[\[<>=~! ]", line)[0] for line in wanted} - {declared["name"]}
    assert names <= set(re.findall(r"^([a-z0-9_.-]+)==", lock, re.MULTILINE))
    packages = re.split(r"^(?=[a-z])", lock, flags=re.MULTILINE)[1:]
    assert [package.split("\n")[0] for package in packages if "--hash=sha256:" not in package] == []
    assert not re.search(r"https?://|--index|--find-links", lock)


def test_users_install_the_same_versions_without_development_tools() -> None:
    users, all_packages = (pins(text_of(ROOT / name)) for name in ("requirements.lock", "requirements-dev.lock"))
    assert users < all_packages
    names = {pin.split("==")[0] for pin in users}
    extras = project()["project"]["optional-dependencies"]
    for_users = [line for extra, lines in extras.items() if extra not in ("all", "dev") for line in lines]
    assert {re.split(r"[\[<>=~! ]", line)[0] for line in for_users} <= names
    assert not names & {"babel", "mypy", "pytest", "ruff", "uv"}


def pins(lock: str) -> set[str]:
    """The packages of a lock file with their versions."""
    return set(re.findall(r"^[a-z0-9.-]+==[^ ]+", lock, re.MULTILINE))


def test_each_exception_from_ruff_has_a_reason() -> None:
    section = text_of(ROOT / "pyproject.toml").split("[tool.ruff.lint]")[1].split("[tool.ruff.lint.pydocstyle]")[0]
    codes = [line for line in section.splitlines() if re.match(r'\s+"[A-Z]+\d*"', line)]
    assert codes
    assert [line for line in codes if not re.search(r"# \S+", line)] == []


def _silent(path: Path) -> Iterator[str]:
    """Lines that silence a check and give no reason, neither there nor in a comment above."""
    lines = text_of(path).splitlines()
    for number, (before, line) in enumerate(pairwise(["", *lines]), start=1):
        if (match := SILENCED.search(line)) and not match[2].strip() and not before.strip().startswith("#"):
            yield f"{name_of(path)}:{number}: {match[1]}"


def test_what_silences_a_check_says_why() -> None:
    assert [line for path in tracked("*.py") for line in _silent(path)] == []


def test_each_query_has_a_name_and_says_what_it_is_for() -> None:
    for path in tracked("projections/sql/*.sql"):
        head, *queries = re.split(r"^-- name: ", text_of(path), flags=re.MULTILINE)
        assert not re.sub(r"^--.*$", "", head, flags=re.MULTILINE).strip(), name_of(path)
        assert queries, name_of(path)
        assert [query[:40] for query in queries if not re.match(r"[a-z_]+\n-- \S+ .*\n", query)] == [], name_of(path)
        names = [query.split()[0] for query in queries]
        assert len(names) == len(set(names)), name_of(path)


def test_each_file_of_the_schema_says_what_it_is_for() -> None:
    for path in tracked("projections/migrations/**.sql"):
        assert re.fullmatch(r"(\d{4}_)?[a-z_]+\.sql", path.name)
        assert re.match(r"-- \S+ ", text_of(path)), name_of(path)


def test_no_metric_has_a_label_for_a_person_or_a_record() -> None:
    catalogues = (
        module.metrics.CATALOGUE
        for module in (mnemolog.client, mnemolog.server, mnemolog.streams, mnemolog.projections)
    )
    assert {label for catalogue in catalogues for metric in catalogue for label in metric.labels} <= KNOWN_LABELS


def test_generated_files_are_as_their_sources_say() -> None:
    assert list(generate.differences(ROOT)) == []
