"""A database with many owners, for the plans of statements."""

from collections.abc import AsyncIterator

import pytest_asyncio
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from tests.support.databases import fresh_database
from tests.support.filled_scopes import fill_entities, fill_scopes
from tests.support.plans import SIZES, connected


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def filled_database(postgres_admin_url: str, template_database: str) -> AsyncIterator[str]:
    """110 000 facts, of 3000 small owners and a big one, with an entity for every second of their facts."""
    with fresh_database(postgres_admin_url, template=template_database) as url:
        fill_scopes(url, SIZES, dimensions=3)
        fill_entities(url, facts=2)
        async with await connected(url) as conn:
            await conn.execute("VACUUM ANALYZE")
        yield url


@pytest_asyncio.fixture
async def connection(filled_database: str) -> AsyncIterator[AsyncConnection[TupleRow]]:
    async with await connected(filled_database) as conn:
        yield conn
