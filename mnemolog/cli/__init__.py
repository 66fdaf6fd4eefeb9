"""The command line: `mnemolog --help`."""

import gc
import sys
from collections.abc import Sequence
from typing import Final

# Looking for cycles every 700 objects, Python's default, takes a tenth of the CPU time of a worker, whose records form
# none, and of loading what a command uses.
GC_THRESHOLD: Final = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code.

    0 done; 1 failed, rejected, unknown, not in time, or found differences; 2 wrong usage or settings;
    3 a server is unavailable; 130 interrupted.
    """
    gc.set_threshold(GC_THRESHOLD)
    try:
        from mnemolog.cli.app import run  # noqa: PLC0415 - its modules are in this package

        code = run(arguments)
    except KeyboardInterrupt:  # while modules are loaded; a command tells what it left
        code = 130
    sys.exit(code)
