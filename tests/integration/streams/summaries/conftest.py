"""A conversation about a person, and a model that is asked for summaries."""

from collections.abc import AsyncIterator

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.summary_harness import SummaryHarness


@pytest.fixture
async def memory(database: str) -> AsyncIterator[SummaryHarness]:
    async with ProjectedDatabase.open(database) as stored, AsyncMemoryClient(postgres=database) as client:
        harness = SummaryHarness(stored, client, database)
        yield harness
        await harness.close()
