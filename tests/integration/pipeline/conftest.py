"""One running worker with the offline provider for the tests of this folder: it takes seconds to start.

Each test that uses it has a tenant of its own. All tests here run in one event loop, in which the worker lives.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from mnemolog.streams.settings import StreamsSettings
from tests.support.databases import database_name, fresh_database
from tests.support.harnesses.worker_harness import TenantHarness, running_worker, worker_settings


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def shared_worker(
    bootstrap: str, postgres_admin_url: str, template_database: str
) -> AsyncIterator[StreamsSettings]:
    """The settings of a worker that runs; its expiry timer is quick."""
    with fresh_database(postgres_admin_url, template=template_database) as database:
        settings = worker_settings(bootstrap, database, f"{database_name(database)}-", expiry_interval=0.2)
        async with running_worker(settings):
            yield settings


@pytest.fixture
def tenant(shared_worker: StreamsSettings, topic_suffix: str) -> TenantHarness:
    """A tenant of the test's own on the shared worker."""
    return TenantHarness(shared_worker, f"tenant-{topic_suffix}")
