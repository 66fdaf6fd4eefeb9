"""docs/screens.md is what the commands print; `make screens` writes it anew."""

import difflib

import pytest

from scripts.screens import PAGE, masked, page

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]


def test_the_page_is_what_the_commands_print() -> None:
    expected, found = (masked(text).splitlines() for text in (page(), PAGE.read_text(encoding="utf-8")))
    difference = list(difflib.unified_diff(found, expected, "docs/screens.md", "printed now", lineterm=""))
    assert not difference, "\n".join(difference)
