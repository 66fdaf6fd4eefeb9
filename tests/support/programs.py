"""Programs that are not Python packages and that only some tests run."""

import shutil
from typing import Final

import pytest

PACKAGES: Final = {
    "chromedriver": "chromium-driver",
    "chromium": "chromium",
    "javac": "default-jdk-headless",
    "kcat": "kcat",
    "node": "nodejs",
    "npm": "npm",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "psql": "postgresql-client",
}
"""The Debian package of each program; `.ci/run` installs them."""


def required_program(name: str) -> str:
    """The path of a program. Skips the test where it is missing, which in CI is a failure."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install {PACKAGES[name]})")
    return found


def missing_programs() -> str | None:
    """Which programs are missing and how to install them; None where all are there."""
    missing = [name for name in PACKAGES if shutil.which(name) is None]
    if not missing:
        return None
    packages = sorted({PACKAGES[name] for name in missing})
    return (
        f"missing programs: {', '.join(missing)}; the tests that run them are skipped. "
        f"To install them on Debian: apt-get install {' '.join(packages)}"
    )
