"""Checks of the files that a caller names or opens."""

from os import PathLike, fspath
from pathlib import Path
from typing import Final

from mnemolog.client.inputs.checks import ErrorType, check_text, kind_of

_MAX_PATH: Final = 4096
"""Characters of the longest path that a system takes."""


def path_of(file: str | PathLike[str], error: ErrorType) -> Path:
    """The path that is named. Raises `error` for what no file can be called."""
    name = check_text("file", fspath(file), error)
    if not Path(name).name or "\x00" in name or len(name) > _MAX_PATH:
        raise error(f"file is {name[:80]!r}: give the name of a file")
    return Path(name)


def check_file(file: object, method: str, error: ErrorType) -> None:
    """Raise `error` for what is no open file that has `method`."""
    if not callable(getattr(file, method, None)):
        raise error(f"file must be the name of a file, or a file that is open in binary mode, not {kind_of(file)}")
