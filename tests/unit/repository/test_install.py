"""`make` installs by uv, and by pip where uv cannot be had."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from scripts import install


class RecordedCalls:
    """Stands for pip and uv: notes each call, and fails those that contain one of some words."""

    def __init__(self, *failing: str) -> None:
        self.calls: list[str] = []
        self._failing = failing

    def __call__(self, command: install.Installer) -> bool:
        self.calls.append(" ".join(Path(part).name if "/" in str(part) else str(part) for part in command))
        return not any(word in self.calls[-1] for word in self._failing)


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fetches of jars that were begun."""
    begun: list[str] = []
    monkeypatch.setattr(install, "start_fetching_jars", lambda: begun.append("jars"))
    return begun


def test_uv_installs_what_is_locked(fetches: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = RecordedCalls()
    monkeypatch.setattr(install, "run", calls)
    install.install(install.ROOT / "requirements.lock")
    by_pip, *by_uv = calls.calls
    assert by_pip.endswith("--require-hashes --requirement uv.lock")
    assert [call.split()[0] for call in by_uv] == ["uv"] * 3
    assert [call.split()[-1] for call in by_uv] == ["jars.lock", "requirements.lock", install.ROOT.name]
    assert all("--require-hashes" in call or "--no-deps" in call for call in calls.calls)
    assert fetches == ["jars"]


@pytest.mark.parametrize("failing", ["uv.lock", "uv pip"])
def test_without_uv_pip_does_it(
    failing: str, fetches: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = RecordedCalls(failing)
    monkeypatch.setattr(install, "run", calls)
    install.install(install.ROOT / "requirements-dev.lock")
    assert [call.split()[-1] for call in calls.calls[-3:]] == ["jars.lock", "requirements-dev.lock", install.ROOT.name]
    assert all("-m pip install" in call for call in calls.calls[-3:])
    assert "uv cannot be used here: pip does it" in capsys.readouterr().out
    assert fetches == ["jars"]


def test_packages_that_cannot_be_had_end_it(fetches: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "run", RecordedCalls("install"))
    with pytest.raises(SystemExit, match="could not be installed: see above"):
        install.install(install.ROOT / "requirements.lock")
    assert fetches == []


def test_fetching_jars_needs_only_what_its_lock_has() -> None:
    """It runs while the other packages are installed."""
    lock = (install.LOCKS / "jars.lock").read_text()
    there = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)} | {"mnemolog"}
    owners = packages_distributions()
    missing = [module for module, names in owners.items() if there.isdisjoint(map(canonicalize_name, names))]
    program = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); import mnemolog.embedded.jars, jgo.maven"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
