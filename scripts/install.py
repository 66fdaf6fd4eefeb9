"""Install the locked packages into the environment of the Python that runs this, and fetch Kafka's jars meanwhile.

    .venv/bin/python scripts/install.py          what `mnemolog` needs to run
    .venv/bin/python scripts/install.py dev      the tools for tests and checks as well

Needs nothing but Python and its pip. By uv the packages take seconds; where uv cannot be had, pip takes minutes.
Every package and every jar is checked by its sum.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "scripts" / "locks"
PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
UV = Path(sys.executable).with_name("uv")
UV_INSTALL = (UV, "pip", "install", "--quiet", "--python", sys.executable, "--compile-bytecode")

Installer = tuple[str | Path, ...]


def install(lock: Path) -> None:
    """Install the packages of `lock`, this project, and Kafka's jars."""
    with step("getting uv"):
        has_uv = run((*PIP, "--require-hashes", "--requirement", LOCKS / "uv.lock"))
    if not (has_uv and install_by(UV_INSTALL, lock)):
        print("uv cannot be used here: pip does it, which takes minutes", flush=True)
        if not install_by(PIP, lock):
            sys.exit("the packages could not be installed: see above, then try again")


def install_by(installer: Installer, lock: Path) -> bool:
    """Whether everything could be installed. Jars that could not be fetched are left to the first start."""
    locked = (*installer, "--require-hashes", "--requirement")
    with step("installing packages into .venv, fetching Kafka"):
        # Jars are fetched by what this lock has, while the other packages come.
        jars = start_fetching_jars() if run((*locked, LOCKS / "jars.lock")) else None
        try:
            done = run((*locked, lock)) and run((*installer, "--no-deps", "--no-build-isolation", "--editable", ROOT))
        finally:
            if jars:
                jars.wait()
    return done


def start_fetching_jars() -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "mnemolog.embedded.jars"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)  # noqa: S603 - our own module


def run(command: Installer) -> bool:
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0  # noqa: S603 - pip or uv with our own locks


@contextmanager
def step(name: str) -> Iterator[None]:
    print(f"{name} ...", flush=True)
    began = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run", "dev"], default="run")
    install(ROOT / ("requirements-dev.lock" if parser.parse_args().what == "dev" else "requirements.lock"))


if __name__ == "__main__":
    main()
