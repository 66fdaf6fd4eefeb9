"""A second database for tests that run the same cases twice."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.support.polling import with_database


@pytest.fixture
def second_database(postgres_admin_url: str, template_database: str) -> Iterator[str]:
    """The URL of a migrated database besides `database`."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    identifier, template = sql.Identifier(name), sql.Identifier(template_database)
    with psycopg.connect(postgres_admin_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(identifier, template))
        yield with_database(postgres_admin_url, name)
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))
