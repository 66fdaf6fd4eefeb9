"""Measure what each extra of the wheel installs: a table of MiB for docs/how-to/own-servers.md.

Needs the package registry of pip, and some minutes: each extra is installed into a fresh environment of its own.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIB = 1024 * 1024
MAX_CORE = 60
"""MiB of an application that only publishes and queries: a test of the package holds it."""


def build(folder: Path, *, source: Path = ROOT, target: str = "wheel") -> Path:
    """Build the wheel or the sdist of `source` into `folder`."""
    before = set(folder.iterdir())
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)  # noqa: S603 - our own build
    (built,) = set(folder.iterdir()) - before
    return built


def fresh_environment(folder: Path, requirement: str) -> Path:
    """Install `requirement` into a new environment with the versions of requirements.lock; its Python."""
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    constraints = folder / "constraints.txt"
    # Without the hashes, which pip would then ask for the wheel too.
    constraints.write_text("\n".join(re.findall(r"^[a-z0-9][^\\\n]*==[^\\\n]*", lock, re.MULTILINE)), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*command, "--constraint", str(constraints), requirement], check=True)  # noqa: S603 - as above
    return python


def installed_bytes(environment: Path) -> int:
    (packages,) = (environment / "venv" / "lib").glob("python*/site-packages")
    return sum(path.stat().st_size for path in packages.rglob("*") if path.is_file() and not path.is_symlink())


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ["", *(name for name in project["optional-dependencies"] if name != "dev")]
    print("| install | MiB |\n|---|---|")
    for extra in extras:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "dist").mkdir()
            wheel = build(folder / "dist")
            fresh_environment(folder, f"{wheel}[{extra}]" if extra else str(wheel))
            size = installed_bytes(folder) / MIB
        print(f"| `mnemolog{f'[{extra}]' if extra else ''}` | {size:.0f} |", flush=True)


if __name__ == "__main__":
    main()
