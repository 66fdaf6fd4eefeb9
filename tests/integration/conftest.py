"""What tests on a real Postgres share."""

from collections.abc import AsyncIterator

import pytest

from tests.support.harnesses.projected_database import ProjectedDatabase


@pytest.fixture
async def db(database: str) -> AsyncIterator[ProjectedDatabase]:
    """A migrated database of the test's own, and a projector over it."""
    async with ProjectedDatabase.open(database) as stored:
        yield stored
