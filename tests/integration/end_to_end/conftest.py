"""One running pipeline for all tests of this folder: a worker takes seconds to start."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.support.databases import database_name, fresh_database
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import worker_settings


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def harness(bootstrap: str, postgres_admin_url: str, template_database: str) -> AsyncIterator[PipelineHarness]:
    """A running pipeline in a database of its own; each test is about people of its own."""
    with fresh_database(postgres_admin_url, template=template_database) as database:
        settings = worker_settings(bootstrap, database, f"{database_name(database)}-")
        async with PipelineHarness.started(settings) as running:
            yield running


@pytest.fixture(autouse=True)
def no_unexpected_questions(harness: PipelineHarness) -> Iterator[None]:
    """Fails a test in which the model was asked about a fact that no test scripted a decision for."""
    yield
    unexpected = list(harness.model.unexpected_facts)
    harness.model.unexpected_facts.clear()
    assert unexpected == []
