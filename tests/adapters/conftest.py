"""`make adapters` runs these tests with the frameworks; without them nothing here is collected."""

from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec

import pytest

from mnemolog.testing import AsyncInMemoryClient, InMemoryClient

collect_ignore_glob = [] if find_spec("langgraph") else ["test_*.py"]


@pytest.fixture
def memory() -> Iterator[InMemoryClient]:
    with InMemoryClient() as client:
        yield client


@pytest.fixture
async def async_memory() -> AsyncIterator[AsyncInMemoryClient]:
    async with AsyncInMemoryClient() as client:
        yield client
