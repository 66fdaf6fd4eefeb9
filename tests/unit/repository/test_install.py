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


@pytest.mark.parametrize("failing", ["nothing", "uv.lock", "uv pip", "install"])
def test_uv_installs_what_is_locked_and_pip_where_it_cannot(
    failing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = RecordedCalls(failing)
    fetches: list[str] = []
    monkeypatch.setattr(install, "run", calls)
    monkeypatch.setattr(install, "start_fetching_jars", lambda: fetches.append("jars"))
    lock = install.ROOT / "requirements.lock"
    if failing == "install":
        with pytest.raises(SystemExit, match="could not be installed: see above"):
            install.install(lock)
        assert fetches == []
        return
    install.install(lock)
    assert fetches == ["jars"]
    assert calls.calls[0].endswith("--require-hashes --requirement uv.lock")
    last = calls.calls[-3:]
    assert [call.split()[-1] for call in last] == ["jars.lock", "requirements.lock", install.ROOT.name]
    assert all(("uv pip" if failing == "nothing" else "-m pip install") in call for call in last)
    assert all("--require-hashes" in call or "--no-deps" in call for call in calls.calls)
    assert ("uv cannot be used here: pip does it" in capsys.readouterr().out) == (failing != "nothing")


def test_fetching_jars_needs_only_what_its_lock_has() -> None:
    """It runs while the other packages are installed."""
    lock = (install.LOCKS / "jars.lock").read_text()
    there = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)} | {"mnemolog"}
    owners = packages_distributions()
    missing = [module for module, names in owners.items() if there.isdisjoint(map(canonicalize_name, names))]
    program = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); import mnemolog.embedded.jars, jgo.maven"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
