"""The command line: `mnemolog --help`."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code.

    0 done; 1 failed or found differences (a timeout, audit findings); 2 wrong usage or settings;
    3 a server is unavailable; 130 interrupted.
    """
    from mnemolog.cli.app import run  # noqa: PLC0415 - its modules are in this package

    sys.exit(run(arguments))
