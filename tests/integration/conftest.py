"""What tests on a real Kafka and a real Postgres share."""

from collections.abc import AsyncIterator

import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.worker_harness import worker_settings


@pytest.fixture
async def db(database: str) -> AsyncIterator[ProjectedDatabase]:
    """A migrated database of the test's own, and a projector over it."""
    async with ProjectedDatabase.open(database) as stored:
        yield stored


@pytest.fixture
def settings(bootstrap: str, database: str, topic_suffix: str) -> StreamsSettings:
    """For a worker of the test's own, with topics and a database of its own."""
    return worker_settings(bootstrap, database, f"{topic_suffix}-")
