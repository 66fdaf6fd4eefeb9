"""How tests are shared out between processes (`pytest -n 2`)."""

from pathlib import PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped] # ships no types

from tests.support.paths import ROOT


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc] # as above
    """A process takes a whole module, or a whole folder where its tests share what they start (an `__init__.py`).

    They are taken in the order of collection, in which the long ones come first.
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        module = PurePosixPath(nodeid.partition("::")[0])
        return str(module.parent if (ROOT / module.parent / "__init__.py").exists() else module)
