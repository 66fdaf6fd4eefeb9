"""A resolver and a command handler over the same tables."""

from collections.abc import AsyncIterator

import pytest

from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness


@pytest.fixture
async def resolver(db: ProjectedDatabase) -> AsyncIterator[ResolverHarness]:
    harness = ResolverHarness(db)
    yield harness
    await harness.close()


@pytest.fixture
def commands(db: ProjectedDatabase) -> CommandHarness:
    return CommandHarness(db)
