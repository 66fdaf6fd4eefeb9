"""People who are named in turns of one user, and the client that reads what is known of them."""

from collections.abc import AsyncIterator

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from tests.support.harnesses.named_people import NamedPeople, named_people


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database) as people:
        yield people


@pytest.fixture
async def memory(database: str) -> AsyncIterator[AsyncMemoryClient]:
    async with AsyncMemoryClient(postgres=database) as memory:
        yield memory
