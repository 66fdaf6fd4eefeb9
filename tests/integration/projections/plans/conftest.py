"""A database with many owners, for the plans of statements."""

from collections.abc import AsyncIterator

import pytest_asyncio
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from tests.support.databases import fresh_database
from tests.support.filled_scopes import fill_scopes
from tests.support.plans import SIZES, connected


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def filled_database(postgres_admin_url: str, template_database: str) -> AsyncIterator[str]:
    """More than 50 000 facts, of 1500 small owners and a big one."""
    with fresh_database(postgres_admin_url, template=template_database) as url:
        fill_scopes(url, SIZES, dimensions=3)
        yield url


@pytest_asyncio.fixture
async def connection(filled_database: str) -> AsyncIterator[AsyncConnection[TupleRow]]:
    async with await connected(filled_database) as conn:
        yield conn
