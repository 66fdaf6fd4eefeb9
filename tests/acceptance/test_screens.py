"""docs/screens.md and tests/data/screens.txt are what the commands print; `make screens` writes them anew."""

import difflib
import re

import pytest

from scripts.screens import OTHERS, PAGE, masked, printed

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]


def test_the_page_and_the_other_screens_are_what_the_commands_print() -> None:
    for path, text in printed().items():
        expected, found = (masked(one).splitlines() for one in (text, path.read_text(encoding="utf-8")))
        difference = list(difflib.unified_diff(found, expected, path.name, "printed now", lineterm=""))
        assert not difference, "\n".join(difference)


def test_what_is_printed_fits_into_80_columns() -> None:
    """But commands, and what is copied: an address."""
    screens = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    screens.append(OTHERS.read_text(encoding="utf-8"))
    copied = re.compile(r"^\$ |postgresql://|> ")
    lines = [line for screen in screens for line in screen.splitlines() if not copied.search(line)]
    assert [line for line in lines if len(line) > 80] == []
