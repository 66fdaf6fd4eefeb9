"""Where the recorded LoCoMo dialogues lie."""

import os
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def default_folder() -> Path:
    """The folder that MNEMOLOG_TEST_DIALOGUES names, or else that of the data beside the repository."""
    return Path(os.environ.get("MNEMOLOG_TEST_DIALOGUES") or ROOT.parent / "shared" / "data" / "locomo")


def locomo_folder() -> Path:
    """The dialogues' folder. Skips the test where there is none: they may not be copied into this repository."""
    folder = default_folder()
    if not (folder / "observations.jsonl").is_file():
        pytest.skip(f"no LoCoMo dialogues in {folder}; set MNEMOLOG_TEST_DIALOGUES to their folder")
    return folder
