"""How tests are shared out between processes (`pytest -n auto`)."""

from pathlib import PurePosixPath
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped] # ships no types

from tests.support.paths import ROOT

MAX_PROCESSES: Final = 4
"""More have nothing to do while the longest folder, which is one process's, is run."""
PROCESS_BYTES: Final = 3 * 2**30
"""What a process takes at most: itself, a Kafka, a Postgres, and half a GiB of their data in memory."""
ONE_BY_ONE: Final = ("tests/properties/", "tests/simulation/")
"""Folders of long tests that share nothing."""


def process_count(cores: int, free_bytes: int) -> int:
    """How many processes `-n auto` starts: one more than cores, for as many idle two fifths of the time."""
    return max(1, min(cores + 1, MAX_PROCESSES, free_bytes // PROCESS_BYTES))


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc] # as above
    """A process takes a whole module, or a whole folder where its tests share what they start (an `__init__.py`).

    Of `ONE_BY_ONE` it takes a test. They are taken in the order of collection, in which the long ones come first.
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_BY_ONE):
            return nodeid
        module = PurePosixPath(nodeid.partition("::")[0])
        return str(module.parent if (ROOT / module.parent / "__init__.py").exists() else module)
