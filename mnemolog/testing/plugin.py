"""The plugin that pytest loads where Mnemolog is installed; it imports the rest where a test asks for the fixture."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mnemolog.testing import InMemoryClient


@pytest.fixture
def mnemolog_memory() -> "Iterator[InMemoryClient]":
    """An empty memory without servers, closed behind the test."""
    from mnemolog.testing import InMemoryClient  # noqa: PLC0415 - loads the stages

    with InMemoryClient() as memory:
        yield memory
