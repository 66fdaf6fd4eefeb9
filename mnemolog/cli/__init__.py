"""The command line: `mnemolog --help`."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code.

    0 done; 1 failed, rejected, unknown, not in time, or found differences; 2 wrong usage or settings;
    3 a server is unavailable; 130 interrupted.
    """
    try:
        from mnemolog.cli.app import run  # noqa: PLC0415 - its modules are in this package

        code = run(arguments)
    except KeyboardInterrupt:  # while modules are loaded; a command tells what it left
        code = 130
    sys.exit(code)
