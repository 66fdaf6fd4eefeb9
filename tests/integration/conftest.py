"""Servers and a worker that the tests of a module share."""

import uuid
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from tests.pipeline import settings_for
from tests.support import with_database
from tests.world import World

pytest.register_assert_rewrite("tests.scenes.stage", "tests.scenes.statements", "tests.scenes.settlements")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(bootstrap: str, postgres_admin_url: str, template_database: str) -> AsyncIterator[World]:
    """A running pipeline in a database of the module's own; its tests tell of different people."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_admin_url, autocommit=True) as admin:
        template = sql.Identifier(template_database)
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
        try:
            database = with_database(postgres_admin_url, name)
            async with World.started(settings_for(bootstrap, database, f"{name}-")) as running:
                yield running
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
