"""One running pipeline for all tests of this folder: a worker takes seconds to start."""

import uuid
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import worker_settings
from tests.support.polling import with_database

pytest.register_assert_rewrite(
    "tests.support.cases.event_cases", "tests.support.cases.statement_cases", "tests.support.cases.settlement_cases"
)


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def harness(bootstrap: str, postgres_admin_url: str, template_database: str) -> AsyncIterator[PipelineHarness]:
    """A running pipeline in a database of its own; each test tells of different people."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_admin_url, autocommit=True) as admin:
        template = sql.Identifier(template_database)
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
        try:
            database = with_database(postgres_admin_url, name)
            async with PipelineHarness.started(worker_settings(bootstrap, database, f"{name}-")) as running:
                yield running
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(autouse=True)
def no_unexpected_questions(harness: PipelineHarness) -> Iterator[None]:
    """Fails a test in which the model was asked about a fact that nobody ruled on."""
    yield
    surprises = list(harness.model.unexpected_facts)
    harness.model.unexpected_facts.clear()
    assert surprises == []
