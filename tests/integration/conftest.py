"""What tests on a real Postgres share."""

from collections.abc import AsyncIterator

import pytest

from tests.stored import Stored


@pytest.fixture
async def db(database: str) -> AsyncIterator[Stored]:
    """A migrated database of the test's own, and a projector over it."""
    async with Stored.open(database) as stored:
        yield stored
